"""Whether the Pods of a node that hold GPUs would fit on other nodes: counted as nodes and Pods change.

A Pod is placed as a whole on one node, the largest first, each where the fewest GPUs stay free. What one admission is
given, the next ones do not see any more, in its pass and in later ones, as long as its Pods are still to move.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from operator import attrgetter

from remediator.core.case import Case, Phase
from remediator.core.job import Job
from remediator.core.node import Gpus, Node, Status, Taint
from remediator.core.shared_gpus import CardPod
from remediator.core.sharing import shares

MOST_LOOKED_AT = 500  # nodes, for one Pod
# What one node may offer, whatever it says: no machine has more GPUs, nor 8 GPUs more MIG devices.
MOST_OF_ONE_NODE = 64
_REPELLING = frozenset({"NoSchedule", "NoExecute"})
_SHARED = ".shared"  # how the device plugin may call a resource that it replicates
Taints = frozenset[Taint]
_NO_TAINTS: Taints = frozenset()  # of nearly all nodes: one object, since Python makes one of 216 bytes for each


@dataclass(frozen=True, slots=True)
class PodHolding:
    """What one Pod holds. `asks`: the requirements on attributes of GPUs, as two annotations say them.

    `daemon`: a DaemonSet made it. `cards`: memory of GPUs that it shares. Most that hold nothing are one fact.
    """

    node: str = ""
    gpus: Gpus = ()
    gang: Job | None = None  # that it is of
    uid: str = ""
    cpu: int = 0  # in thousandths of a core
    asks: tuple[str, str] = ("", "")
    daemon: bool = False
    cards: CardPod | None = None

    @property
    def version(self) -> str:
        """None: no write of ours is ever awaited."""
        return ""


NOTHING = PodHolding()


@dataclass(frozen=True, slots=True)
class EndingPod(PodHolding):
    """What a Pod holds that somebody has deleted: its containers run until its kubelet has ended them.

    `place`: its node, also where it holds nothing there. `ends`: when its grace is over.
    """

    place: str = ""
    ends: datetime | None = None


def ending(held: PodHolding, place: str, ends: datetime | None) -> EndingPod:
    """What a Pod holds, as one that is to end."""
    shares = held.asks, held.daemon, held.cards
    return EndingPod(held.node, held.gpus, held.gang, held.uid, held.cpu, *shares, place, ends)


@dataclass(frozen=True, slots=True)
class _SpareRoom:
    """What a node offers to Pods that come: nothing where it takes none. `shared`: it has GPUs that do not count."""

    gpus: Gpus
    taints: Taints
    shared: bool


class SpareGpus:
    """The GPUs that are free on nodes that take Pods. What it costs to ask does not depend on how many nodes there are.

    A Pod whose requests cannot be read counts as one without GPUs: it must not hold the repair of others.
    """

    def __init__(self) -> None:
        self._rooms: dict[str, _SpareRoom] = {}
        self._shared: set[str] = set()  # nodes with GPUs that Pods share
        self._pods: defaultdict[str, Counter[Gpus]] = defaultdict(Counter)  # by node: what Pods hold, and how many do
        self._used: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._by_free: defaultdict[str, defaultdict[int, dict[str, None]]] = defaultdict(lambda: defaultdict(dict))

    def put_node(self, name: str, node: Node | None) -> None:
        """A node as it is now; None takes it out."""
        room = _room(node) if node is not None and _takes_pods(node) else None
        if room == self._rooms.get(name):
            return
        self._list(name, False)
        self._rooms.pop(name, None)
        self._shared.discard(name)
        if room is not None and room.shared:
            self._shared.add(name)
        if room is not None:
            self._rooms[name] = room
            self._list(name, True)

    def put_pod(self, old: PodHolding | None, new: PodHolding | None) -> None:
        """A Pod holds something else now."""
        for holding, change in ((old, -1), (new, 1)):
            if holding is None or not holding.gpus:
                continue
            self._list(holding.node, False)
            pods, used = self._pods[holding.node], self._used[holding.node]
            pods[holding.gpus] += change
            used.update({name: count * change for name, count in holding.gpus})
            if pods[holding.gpus] <= 0:
                del pods[holding.gpus]
            if not pods:
                del self._pods[holding.node], self._used[holding.node]
            self._list(holding.node, True)

    @property
    def any_shared(self) -> bool:
        """Whether nodes that take Pods have GPUs that do not count, since Pods share them."""
        return bool(self._shared)

    def held_on(self, node: str) -> list[Gpus]:
        """What each Pod on a node holds."""
        return list(self._pods.get(node, Counter()).elements())

    def free(self, node: str, resource: str) -> int:
        """How many GPUs of a resource are free on a node that takes Pods."""
        room, used = self._rooms.get(node), self._used.get(node)
        offered = next((count for name, count in room.gpus if name == resource), 0) if room else 0
        return offered - (used[resource] if used else 0)

    def taints(self, node: str) -> Taints:
        """What keeps Pods off a node."""
        room = self._rooms.get(node)
        return room.taints if room else frozenset()

    def with_room(self, resource: str, count: int) -> Iterator[str]:
        """The nodes on which so many are free, those with the fewest first."""
        free: Mapping[int, Mapping[str, None]] = self._by_free.get(resource, {})
        for number in sorted(number for number in free if number >= count):
            yield from free[number]

    def _list(self, name: str, listed: bool) -> None:
        for resource, _ in self._rooms[name].gpus if name in self._rooms else ():
            nodes = self._by_free[resource][self.free(name, resource)]
            if listed:
                nodes[name] = None
            else:
                nodes.pop(name, None)
            if not nodes:
                del self._by_free[resource][self.free(name, resource)]


def _takes_pods(node: Node) -> bool:
    """Whether new Pods may go there, and no repair is near."""
    return node.ready is Status.TRUE and not (node.unschedulable or node.marks or node.degraded or node.opted_out)


def _room(node: Node) -> _SpareRoom:
    whole = _whole(node)
    return _SpareRoom(whole, repelling(node), len(whole) < len(node.gpus))


def _whole(node: Node) -> Gpus:
    """What Pods may have for themselves there. Replicas of a GPU or MIG device that Pods share are not spare."""
    return tuple(
        (name, min(count, MOST_OF_ONE_NODE))
        for name, count in node.gpus
        if not name.endswith(_SHARED) and not shares(node, name)
    )


def repelling(node: Node) -> Taints:
    """The taints that keep Pods off a node."""
    taints = (taint for taint in node.taints if taint.effect in _REPELLING)
    return frozenset(Taint(taint.key, taint.value, taint.effect) for taint in taints) or _NO_TAINTS


class SpareTaking:
    """What is given away of the free GPUs. `spare` None: nobody knows what is free.

    `leaving`: the nodes that earlier passes have taken. What still runs there moves, too, and its places are given away
    before anybody asks, whatever the policies of their cases say. A node that was given Pods of another has them to
    move, too, where it is emptied later in the pass.
    """

    def __init__(self, spare: SpareGpus | None, leaving: Iterable[Node] = ()) -> None:
        self._spare = spare
        self._leaving = sorted(leaving, key=attrgetter("name"))  # whose Pods have no place yet
        self._coming: defaultdict[str, list[Gpus]] = defaultdict(list)  # what other nodes were given to move here
        self._given: Counter[tuple[str, str]] = Counter()  # the sum of that, by node and resource
        self._gone = {node.name for node in self._leaving}  # nodes that are emptied themselves

    def lacking(self, node: Node) -> str:
        """Why the Pods of a node would not all find a place; "" where they would."""
        if self._spare is None:
            return "nobody here knows which GPUs are free"
        self._settle(self._spare)
        pods = self._pods(self._spare, node)
        plan = self._plan(self._spare, node, pods)
        if len(plan) == len(pods):
            return ""
        words = ", ".join(f"{count} of {name}" for name, count in pods[len(plan)])
        fit = f"{len(plan)} of the {len(pods)} Pods with GPUs on {node.name} fit elsewhere"
        shared = "; nodes whose GPUs are shared do not count" if self._spare.any_shared else ""
        return f"{fit}; no other node that would take the next one has {words} free{shared}"

    def take(self, node: Node) -> None:
        """The node is emptied: the places of its Pods are not free any more for whoever asks later."""
        if node.name not in self._gone:
            self._leaving.append(node)
            self._gone.add(node.name)

    def _settle(self, spare: SpareGpus) -> None:
        """Give places away to what leaves, as far as there are any."""
        while self._leaving:
            node = self._leaving.pop(0)
            for place, gpus in self._plan(spare, node, self._pods(spare, node)):
                self._coming[place].append(gpus)
                self._given.update({(place, name): count for name, count in gpus})

    def _pods(self, spare: SpareGpus, node: Node) -> list[Gpus]:
        return largest_first([*spare.held_on(node.name), *self._coming.get(node.name, ())])

    def _plan(self, spare: SpareGpus, node: Node, pods: Iterable[Gpus]) -> list[tuple[str, Gpus]]:
        """Where these Pods of a node go, one after the other, up to the first that has no place."""
        plan: list[tuple[str, Gpus]] = []
        planned: Counter[tuple[str, str]] = Counter()
        for gpus in pods:
            place = self._place(spare, node, gpus, planned)
            if place is None:
                break
            plan.append((place, gpus))
            planned.update({(place, name): count for name, count in gpus})
        return plan

    def _place(self, spare: SpareGpus, node: Node, gpus: Gpus, planned: Counter[tuple[str, str]]) -> str | None:
        """The node with the fewest free GPUs that has room for a Pod of this one, and no taint that this one lacks."""
        (resource, count), *_ = gpus
        borne, given = repelling(node), self._given
        for name in islice(spare.with_room(resource, count), MOST_LOOKED_AT):
            if name == node.name or name in self._gone or not spare.taints(name) <= borne:
                continue
            if all(
                spare.free(name, each) - given.get((name, each), 0) - planned.get((name, each), 0) >= need
                for each, need in gpus
            ):
                return name
        return None


def leaving_nodes(cases: Iterable[Case]) -> list[str]:
    """The nodes whose Pods may still have to move: those that a case has taken. What a person has stays as it is."""
    return [case.node for case in cases if case.open and case.claimed and case.phase is not Phase.ESCALATED]


def largest_first(pods: Iterable[Gpus]) -> list[Gpus]:
    """What Pods hold, the most GPUs first."""
    return sorted(pods, key=lambda gpus: (-sum(count for _, count in gpus), gpus))
