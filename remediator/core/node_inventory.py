"""What a node is known to have, kept outside the node: what it counts, what is learnt from that, what it lacks. Pure.

A program on the node counts devices, mounts and addresses, and says so by the Condition DeviceInventory. What it has
once had is kept in a NodeInventory, so that a reboot after which a device is not there any more is no recovery. Kinds
are words of the program: one that is not among KINDS is learnt, too.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from remediator.core.clocks import AHEAD
from remediator.core.device_count import DEVICE_INVENTORY, DEVICES_MISSING, KINDS, MOST_KINDS, DeviceCount
from remediator.core.idle_result import GpuResult, IdleResult
from remediator.core.node import Node, NodeCondition, Status
from remediator.core.own_condition import OwnCondition
from remediator.core.reboot_loop import Boots
from remediator.core.selector import Selector

COMPLETE, UNREAD = "DevicesComplete", "DevicesUnread"
KEPT = timedelta(days=30)  # that what is known of a node outlives it: it may register again
FRESH = timedelta(minutes=15)  # an older count says nothing of now
COUNTING = timedelta(hours=1)  # a node that has counted so lately before its case counts again when it is well
LASTING = timedelta(hours=24)  # what a node has lacked for so long before its case is not what the case is about
Counts = Mapping[str, int]
_REASONS = {"nfs-mounts": "NfsNotMounted", "ram": "MemoryMissing"}  # of others it is the kind, and Missing
DECLARED = frozenset({"mounts", "nfs-mounts"})  # by the node itself: what it cannot read it cannot declare either
# What a sound node may leave out, though it had it: a Pod may have a network card, and ports are counted themselves.
MAY_BE_LEFT_OUT = DECLARED | {"nic-rates", "port-rates"}
BEFORE = {"ram": "memory"}  # what detectors that do not know the kind yet count in its place, as after a roll-back


@dataclass(frozen=True, slots=True)
class Inventory:
    """One NodeInventory: of a node, or, with a selector, of every node of a group.

    `expected` is what a user says; `learnt` the most that was ever counted since it was last `forgotten`, on a machine
    with this `board` ("": its kubelet does not tell), whose Node has the uid `node_uid`. `gone_since`: since when there
    is no such node.
    """

    name: str
    node: str = ""
    selector: Selector | None = None
    expected: Counts = field(default_factory=dict)
    forget_before: datetime | None = None
    learnt: Counts = field(default_factory=dict)
    digest: str = ""
    since: datetime | None = None
    board: str = ""
    node_uid: str = ""
    gone_since: datetime | None = None
    tested: IdleResult | None = None  # the newest test of the idle node that said anything
    tested_gpus: tuple[GpuResult, ...] = ()
    boots: Boots | None = None  # None until the controller has seen in which boot the node is
    unreadable: bool = False  # only its head and its node are known
    uid: str = ""
    version: str = field(default="", compare=False)

    def selects(self, node: Node) -> bool:
        """Whether it is about this node."""
        return self.node == node.name if self.selector is None else self.selector.matches(node.labels)

    def is_of_another(self, node: Node) -> bool:
        """Whether what was learnt is of another machine, which had the name before the node registered under it.

        A board that was replaced under a Node that stayed changes nothing: the machine should have what it had.
        """
        made_again = bool(self.node_uid) and self.node_uid != node.uid
        return made_again and bool(self.board and node.board) and self.board != node.board

    def forgotten(self, now: datetime) -> bool:
        """Whether a user wants what was learnt so far to be forgotten, and it has not been yet.

        A time that has not come forgets nothing yet: nothing could be kept until then.
        """
        before = self.forget_before
        return before is not None and before <= now and (self.since is None or self.since < before)


def fresh(node: Node, now: datetime) -> DeviceCount | None:
    """What the node counts now; None where nobody can tell."""
    condition = node.conditions.get(DEVICE_INVENTORY)
    spoken = condition is not None and condition.status is Status.TRUE and _heard(condition, now)
    return node.counted if spoken else None


def counted_at(node: Node) -> datetime:
    """When the node last counted. Only of a node of which `fresh` gives something."""
    return node.conditions[DEVICE_INVENTORY].heartbeat


def counted_since(node: Node, before: datetime | None) -> bool:
    """Whether the node has counted since its count of then, by its own clock; `before` None: it had none.

    Only of a node of which `fresh` gives something.
    """
    return before is None or counted_at(node) > before


def silent(node: Node, before: datetime | None, opened: datetime, now: datetime) -> bool:
    """Whether a node that counted has not done so again: nobody can tell whether it still has what it had.

    Args:
        node: As it is now.
        before: Its last count when something was done to it, by its own clock; None where it had none.
        opened: When its case was opened.
        now: Aware UTC.
    """
    if before is None or before < opened - COUNTING:
        return False
    return fresh(node, now) is None or not counted_since(node, before)


def _heard(condition: NodeCondition, now: datetime) -> bool:
    return -AHEAD <= now - condition.heartbeat < FRESH


def learn(before: Inventory, seen: DeviceCount, counted_at: datetime, now: datetime) -> Inventory:
    """What is to be kept: of each kind the most ever counted. What the node declares itself is not learnt.

    What a user has forgotten is not learnt again from a count that is older: it is what they have forgotten.
    """
    forgotten = before.forgotten(now)
    if forgotten and before.forget_before is not None and counted_at < before.forget_before:
        return before
    learnt: Counts = {} if forgotten else before.learnt
    declared = dict(seen.declares)
    most = {kind: max(count, learnt.get(kind, 0)) for kind, count in seen.has if kind not in declared}
    kept = {kind: count for kind, count in learnt.items() if kind not in declared}
    after = dict(sorted((kept | most).items())[:MOST_KINDS])
    digest = before.digest if seen.unread and not forgotten else seen.digest  # that of all that there is
    same = not forgotten and after == dict(before.learnt) and digest == before.digest
    return before if same else replace(before, learnt=after, digest=digest, since=now)


def of_machine(kept: Inventory, node: Node) -> Inventory:
    """What is kept, as it is of the machine that has the name now: one that is another begins anew.

    Which Node it is of is kept with the board that this Node told: one that does not tell it may be another machine.
    """
    if kept.is_of_another(node):
        kept = replace(kept, learnt={}, digest="", since=None, tested=None, tested_gpus=())
    return replace(kept, board=node.board, node_uid=node.uid) if node.board else kept


def should_have(
    node: Node | None, own: Inventory | None, groups: Iterable[Inventory], seen: DeviceCount | None, now: datetime
) -> Counts:
    """How many of each kind there should be: what a user says of the node, else of its group, else what it declares
    itself, else the most that it ever had. Where several groups speak of a kind the most counts. `node`: None where it
    is gone. `seen`: None where it has not counted lately.
    """
    other = own is not None and node is not None and own.is_of_another(node)
    learnt = own.learnt if own is not None and not other and not own.forgotten(now) else {}
    of_groups: dict[str, int] = {}
    for group in groups:
        if node is not None and group.selector is not None and group.selects(node):
            of_groups |= {kind: max(count, of_groups.get(kind, 0)) for kind, count in group.expected.items()}
    return {**learnt, **dict(seen.declares if seen else ()), **of_groups, **(own.expected if own is not None else {})}


def lacking(seen: DeviceCount, wanted: Counts) -> dict[str, tuple[int, int]]:
    """By kind what there is and what there should be, where that is more. A kind without a number lacks nothing."""
    has = dict(seen.has)
    short = {kind: (has[kind], count) for kind, count in wanted.items() if kind in has and has[kind] < count}
    return dict(sorted(short.items(), key=lambda item: (_rank(item[0]), item[0])))


def unread(seen: DeviceCount, wanted: Counts) -> tuple[str, ...]:
    """Which kinds there should be that could not be read now, or are left out: nobody knows whether they are there."""
    unsure = {kind for kind in seen.unread if wanted.get(kind) or kind in DECLARED}
    counted = {kind for kind, most in wanted.items() if most and kind in KINDS and kind not in MAY_BE_LEFT_OUT}
    has = dict(seen.has)
    left_out = {kind for kind in counted - has.keys() if BEFORE.get(kind) not in has}
    return tuple(sorted(unsure | left_out, key=lambda kind: (_rank(kind), kind)))


def _rank(kind: str) -> int:
    return KINDS.index(kind) if kind in KINDS else len(KINDS)


def phrase(short: Mapping[str, tuple[int, int]]) -> str:
    """The numbers, as a sentence has them.

    >>> phrase({"gpus": (7, 8), "mounts": (2, 3)})
    'gpus 7 of 8, mounts 2 of 3'
    """
    return ", ".join(f"{kind} {have} of {should}" for kind, (have, should) in short.items())


def own_condition(node: str, seen: DeviceCount, wanted: Counts) -> OwnCondition:
    """What the Condition DevicesMissing of a node should say; its reason: the first kind that it lacks."""
    if short := lacking(seen, wanted):
        reason = _reason(next(iter(short)))
        return OwnCondition(DEVICES_MISSING, Status.TRUE, reason, f"fewer than known: {phrase(short)}")
    if unsure := unread(seen, wanted):
        uncounted = f"the node could not count its {', '.join(unsure)}"
        return OwnCondition(DEVICES_MISSING, Status.UNKNOWN, UNREAD, f"{uncounted}{if_for_good(node, seen, unsure)}")
    return OwnCondition(DEVICES_MISSING, Status.FALSE, COMPLETE, "the node has what it is known to have")


def if_for_good(node: str, seen: DeviceCount, unsure: Iterable[str]) -> str:
    """What a person does where a sound node names some of these kinds no more, as the end of a sentence; "" for none.

    >>> if_for_good("gpu-1", DeviceCount((), unread=("gpus",)), ("gpus",))
    ''
    """
    silent = ", ".join(kind for kind in unsure if kind not in seen.unread)
    remedy = "say 0 in spec.expected of its NodeInventory, or forget what was learnt by spec.forgetBefore"
    command = f"remediator inventory {node} --reset"
    return f"; it names no {silent}: if that is for good, {remedy} ({command})" if silent else ""


def _reason(kind: str) -> str:
    return _REASONS.get(kind, f"{kind.title().replace('-', '')}Missing")


def new_to_case(node: Node, opened: datetime) -> bool:
    """Whether what the node lacks, or could not count, may be what its case is about: it is not so for long before."""
    condition = node.conditions.get(DEVICES_MISSING)
    stands = condition is not None and condition.status is not Status.FALSE
    return not (stands and condition is not None and condition.since <= opened - LASTING)
