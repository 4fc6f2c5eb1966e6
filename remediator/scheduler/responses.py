"""The prepared answers about every node for one shape of Pod. A request only looks up names."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, Self

from remediator.scheduler import protocol
from remediator.scheduler.attributes.catalog import NO_FACTS
from remediator.scheduler.attributes.selector import ANYTHING
from remediator.scheduler.gang import rooms
from remediator.scheduler.gang.preference import Preference, preferred
from remediator.scheduler.gang.rooms import Rooms
from remediator.scheduler.gang.topology import Topology
from remediator.scheduler.score import Scorer
from remediator.scheduler.verdict import FAILED, STRANGER, UNRESOLVABLE, NodeState, Shape, VerdictReason, verdict

MOST_ROWS = 4096  # whose verdict is remembered: thousands of nodes share few, and a new shape must be answered at once


class _Judged(NamedTuple):
    """What is said of all nodes of one row. `refused`: the list in which they stand; None for none.

    `apart`: the score outside of each preferred domain; `room`: for how many Pods of a gang.
    """

    score: int
    apart: int
    room: int
    refused: dict[str, bytes] | None
    words: str


class Hosts(dict[str, bytes]):
    """Entries of a HostPriorityList by node; a node that is not there gets the score of a stranger, and is not kept."""

    def __init__(self, stranger: int) -> None:
        self.stranger = stranger

    def __missing__(self, name: str) -> bytes:
        return protocol.host(name, self.stranger)


class Nearer(Hosts):
    """The same for nodes of a preferred domain: made of the scores when somebody asks, and kept until these change."""

    def __init__(self, points: Mapping[str, int], scorer: Scorer, level: int, levels: int) -> None:
        super().__init__(0)
        self._points, self._scorer, self._level, self._levels = points, scorer, level, levels

    def score_by(self, scorer: Scorer, stranger: int) -> None:
        """From now on."""
        self._scorer, self.stranger = scorer, stranger
        self.clear()

    def __missing__(self, name: str) -> bytes:
        points = self._scorer.nearer(self._points.get(name, self.stranger), self._level, self._levels)
        entry = self[name] = protocol.host(name, points)
        return entry


class Answers:
    """Entries of the lists of an answer by node: `failed` and `unresolvable` only of refused nodes, `hosts` of any."""

    def __init__(
        self,
        shape: Shape,
        rows: Mapping[str, NodeState],
        scorer: Scorer,
        only_scores: bool = False,
        topology: Topology | None = None,
    ) -> None:
        """`topology`: the domains that a Pod of a gang may prefer; `nearer[0]` is for those of the widest kind."""
        self.shape, self.only_scores = shape, only_scores
        self._topology = topology or Topology(())
        self.rooms = Rooms(self._topology)
        self.failed: dict[str, bytes] = {}
        self.unresolvable: dict[str, bytes] = {}
        self.hosts = Hosts(0)
        self._points: dict[str, int] = {}  # of a shape of gangs
        levels = self._topology.levels if shape.gang else 0
        self.nearer = tuple(Nearer(self._points, scorer, level + 1, levels) for level in range(levels))
        self._stranger = verdict(STRANGER, shape, only_scores)
        self._judged: dict[NodeState, _Judged] = {}
        self.score_by(scorer)
        for name, row in rows.items():
            self._enter(name, row)

    def copy(self) -> Self:
        """Answers of their own that begin as these."""
        other = type(self)(self.shape, {}, self._scorer, self.only_scores, self._topology)
        other.failed.update(self.failed)
        other.unresolvable.update(self.unresolvable)
        other.hosts.update(self.hosts)
        other._points.update(self._points)
        other.rooms = self.rooms.copy()
        return other

    def strangers(self, names: Iterable[str]) -> dict[str, bytes]:
        """Refusals of those of these nodes that nobody has told us of; empty where these are let through."""
        if self._stranger not in UNRESOLVABLE:
            return {}
        words = self._words(self._stranger)
        return {name: protocol.refusal(name, words) for name in names if name not in self.hosts}

    def score_by(self, scorer: Scorer) -> None:
        """From now on; scores that stand stay until `put`."""
        self._scorer = scorer
        self._judged.clear()
        stranger = self._judge(STRANGER)
        self.hosts.stranger = stranger.apart
        for entries in self.nearer:
            entries.score_by(scorer, stranger.score)

    def put(self, name: str, row: NodeState | None) -> None:
        """Take in what is now so of one node; None for one that is gone."""
        for entries in (self.failed, self.unresolvable, self.hosts, *self.nearer):
            entries.pop(name, None)
        if row is None:
            self._points.pop(name, None)
            self.rooms.put(name, 0)
        else:
            self._enter(name, row)

    def _enter(self, name: str, row: NodeState) -> None:
        if row.facts is not NO_FACTS and self.shape.attributes is ANYTHING and not self._scorer.sees_facts:
            row = row._replace(facts=NO_FACTS)  # nobody asks for them, and nodes differ in them
        if not self.shape.memory.memory and not self.shape.gpus:
            row = row._replace(cards=None)
        if row.mps is not None and not self.shape.mps:
            row = row._replace(mps=None)
        judged = self._judged.get(row)
        if judged is None:
            if len(self._judged) >= MOST_ROWS:
                self._judged.clear()
            judged = self._judged[row] = self._judge(row)
        if self.nearer:
            self._points[name] = judged.score
            self.rooms.put(name, judged.room)
        self.hosts[name] = protocol.host(name, judged.apart)
        if judged.refused is not None:
            judged.refused[name] = protocol.refusal(name, judged.words)

    def _judge(self, row: NodeState) -> _Judged:
        reason = verdict(row, self.shape, self.only_scores)
        points = self._scorer.of(reason, row, self.shape)
        apart = self._scorer.nearer(points, 0, len(self.nearer))
        room = rooms.fits(reason, row, self.shape) if self.nearer else 0
        if reason in UNRESOLVABLE:
            return _Judged(points, apart, room, self.unresolvable, self._words(reason))
        return _Judged(points, apart, room, self.failed if reason in FAILED else None, FAILED.get(reason, ""))

    def preference(self, siblings: Iterable[str], size: int) -> Preference:
        """The domains that a Pod of a gang prefers, whose Pods are on the nodes of `siblings`."""
        near = [domain for node in siblings for domain in self._topology.of(node)]
        return preferred(near, {} if near else self.rooms.now(), size)

    def prioritized(self, names: Iterable[str], preference: Preference) -> Iterator[bytes]:
        """The entries of these nodes for a Pod of a gang."""
        table: dict[str, Hosts] = {}
        for domain in preference.domains:
            table.update(dict.fromkeys(self._topology.members(domain), self.nearer[domain.level - 1]))
        hosts = self.hosts
        return (table.get(name, hosts)[name] for name in names)

    def _words(self, reason: VerdictReason) -> str:
        mistake = self.shape.attributes.mistake if reason is VerdictReason.ATTRIBUTES_MALFORMED else ""
        return f"{UNRESOLVABLE[reason]}: {mistake}" if mistake else UNRESOLVABLE[reason]
