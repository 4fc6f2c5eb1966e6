"""The prepared answers about every node for one shape of Pod. A request only looks up names.

Refusals are made when a node is seen; its score when somebody asks for it, and then kept. What is said of a node
depends on its row alone, and thousands of nodes share few rows: each is judged once, and scored once.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Self

from remediator.scheduler import protocol
from remediator.scheduler.asked import AskedNames
from remediator.scheduler.attributes.catalog import NO_FACTS
from remediator.scheduler.attributes.selector import ANYTHING
from remediator.scheduler.gang import rooms
from remediator.scheduler.gang.preference import Preference, preferred
from remediator.scheduler.gang.rooms import GangRooms
from remediator.scheduler.gang.topology import Topology
from remediator.scheduler.prepared import FilteredNames, PreparedParts
from remediator.scheduler.reasons import FAILED, UNRESOLVABLE, VerdictReason
from remediator.scheduler.row import STRANGER, NodeState
from remediator.scheduler.score import Scorer
from remediator.scheduler.verdict import Shape, verdict

MOST_ROWS = 4096  # whose verdict is remembered: thousands of nodes share few, and a new shape must be answered at once


@dataclass(slots=True, eq=False)
class _JudgedRow:
    """What is said of all nodes of one row. `refused`: the list in which they stand; None for none.

    `words`: why, as JSON; `room`: for how many Pods of a gang.
    """

    row: NodeState
    reason: VerdictReason
    room: int
    refused: dict[str, bytes] | None
    words: bytes


class Hosts(dict[str, bytes]):
    """Entries of a HostPriorityList by node, each made when somebody asks for it, and kept until it is taken out.

    They are for nodes of the preferred domain of a level; 0 for those outside of each. A node that is not in `judged`
    gets the score of a stranger, and is not kept.
    """

    def __init__(self, judged: Mapping[str, _JudgedRow], shape: Shape, level: int, levels: int) -> None:
        super().__init__()
        self._of, self._shape, self._level, self._levels = judged.get, shape, level, levels
        self._tails: dict[_JudgedRow, bytes] = {}
        self._stranger = b""

    def score_by(self, scorer: Scorer, stranger: _JudgedRow) -> None:
        """What is made from now on."""
        self._scorer = scorer
        self._tails.clear()
        self._stranger = self._scored(stranger)

    def __missing__(self, name: str) -> bytes:
        judged = self._of(name)
        if judged is None:
            return protocol.host(name, self._stranger)
        entry = self[name] = protocol.host(name, self._tails.get(judged) or self._tail(judged))
        return entry

    def _tail(self, judged: _JudgedRow) -> bytes:
        if len(self._tails) >= MOST_ROWS:
            self._tails.clear()
        tail = self._tails[judged] = self._scored(judged)
        return tail

    def _scored(self, judged: _JudgedRow) -> bytes:
        points = self._scorer.of(judged.reason, judged.row, self._shape)
        return protocol.score(self._scorer.nearer(points, self._level, self._levels))


class ExtenderAnswers:
    """Entries of the lists of an answer by node: `failed` and `unresolvable` only of refused nodes, `hosts` of any.

    No part of it knows the whole, so that the megabytes of a shape are free as soon as nobody holds it: cycles would
    wait a day for Python's collector (collector.py).
    """

    def __init__(
        self,
        shape: Shape,
        rows: Mapping[str, NodeState],
        scorer: Scorer,
        only_scores: bool = False,
        topology: Topology | None = None,
    ) -> None:
        """`topology`: the domains that a Pod of a gang may prefer; `nearer[0]` is for those of the widest kind."""
        self.shape, self.only_scores, self._scorer = shape, only_scores, scorer
        self._topology = topology or Topology(())
        self.rooms = GangRooms(self._topology)
        self.failed: dict[str, bytes] = {}
        self.unresolvable: dict[str, bytes] = {}
        self._judged: dict[str, _JudgedRow] = {}  # by node
        self._by_row: dict[NodeState, _JudgedRow] = {}
        self._levels = self._topology.levels if shape.gang else 0
        self.hosts, *nearer = (Hosts(self._judged, shape, level, self._levels) for level in range(self._levels + 1))
        self.nearer = tuple(nearer)
        self._filtered: PreparedParts[FilteredNames] | None = None
        self._scored: PreparedParts[bytes] | None = None
        self._stranger = verdict(STRANGER, shape, only_scores)
        self.score_by(scorer)
        met: dict[int, _JudgedRow] = {}  # by identity: nodes that are alike share a row, and to compare rows takes long
        for name, row in rows.items():
            self._enter(name, met.get(id(row)) or met.setdefault(id(row), self._judged_row(row)))

    def copy(self) -> Self:
        """Answers of their own that begin as these."""
        other = type(self)(self.shape, {}, self._scorer, self.only_scores, self._topology)
        other.failed.update(self.failed)
        other.unresolvable.update(self.unresolvable)
        other.hosts.update(self.hosts)
        other._judged.update(self._judged)
        other.rooms = self.rooms.copy()
        return other

    def filtered(self, names: list[str], again: AskedNames | None) -> list[FilteredNames]:
        """What is left of these names; `again`: the same, if they were asked about before."""
        if again is None:
            return [self._filter(dict.fromkeys(names))]
        if self._filtered is None or not self._filtered.are_of(again):
            self._filtered = PreparedParts(again)
        return self._filtered.all(again, self._filter)

    def scored(self, names: list[str], again: AskedNames | None) -> list[bytes]:
        """The entries of these names, of one that is sent twice one: kube-scheduler adds up the scores of a name."""
        if again is None:
            return [self._score(dict.fromkeys(names))]
        if self._scored is None or not self._scored.are_of(again):
            self._scored = PreparedParts(again)
        return self._scored.all(again, self._score)

    def _filter(self, names: dict[str, None]) -> FilteredNames:
        failed, unresolvable = self.failed.keys() & names.keys(), self.unresolvable.keys() & names.keys()
        strangers = self._strangers(names)
        passed = names.copy()
        for name in (*failed, *unresolvable, *strangers):
            del passed[name]
        left = list(passed)
        return FilteredNames(
            left,
            protocol.quoted_all(left),
            b",".join([self.failed[name] for name in failed]),
            b",".join([*(self.unresolvable[name] for name in unresolvable), *strangers.values()]),
            frozenset(failed | unresolvable),
            len(failed),
            len(unresolvable) + len(strangers),
        )

    def _score(self, names: dict[str, None]) -> bytes:
        return b",".join(map(self.hosts.__getitem__, names))

    def _strangers(self, names: Iterable[str]) -> dict[str, bytes]:
        """Refusals of those of these nodes that nobody has told us of; empty where these are let through."""
        if self._stranger not in UNRESOLVABLE:
            return {}
        words = self._words(self._stranger)
        return {name: protocol.refusal(name, words) for name in names if name not in self._judged}

    def score_by(self, scorer: Scorer) -> None:
        """From now on; scores that stand stay until `renew`."""
        self._scorer, self._scored = scorer, None
        self._by_row.clear()
        stranger = self._judge(STRANGER)
        for entries in (self.hosts, *self.nearer):
            entries.score_by(scorer, stranger)
        for entries in self.nearer:
            entries.clear()

    def renew(self, name: str, row: NodeState | None) -> None:
        """The same as `put`, with the score of a node that takes such Pods."""
        self.put(name, row)
        if name in self._judged and self._judged[name].refused is None:
            self.hosts[name]  # makes it

    def put(self, name: str, row: NodeState | None) -> None:
        """Take in what is now so of one node; None for one that is gone."""
        for prepared in (self._filtered, self._scored):
            if prepared is not None:
                prepared.moved(name)
        for entries in (self.failed, self.unresolvable, self.hosts, *self.nearer):
            entries.pop(name, None)
        if row is None:
            self._judged.pop(name, None)
            self.rooms.put(name, 0)
        else:
            self._enter(name, self._judged_row(row))

    def _enter(self, name: str, judged: _JudgedRow) -> None:
        self._judged[name] = judged
        if self.nearer:
            self.rooms.put(name, judged.room)
        if judged.refused is not None:
            judged.refused[name] = protocol.refusal(name, judged.words)

    def _judged_row(self, row: NodeState) -> _JudgedRow:
        return self._by_row.get(row) or self._new(row)

    def _new(self, row: NodeState) -> _JudgedRow:
        """Of a row that is new: nodes often differ only in what nobody asks for."""
        if len(self._by_row) >= MOST_ROWS:
            self._by_row.clear()
        seen = row
        if row.facts is not NO_FACTS and self.shape.attributes is ANYTHING and not self._scorer.sees_facts:
            seen = seen._replace(facts=NO_FACTS)
        if row.cards is not None and not self.shape.memory.memory and not self.shape.gpus:
            seen = seen._replace(cards=None)
        if row.mps is not None and not self.shape.mps:
            seen = seen._replace(mps=None)
        judged = self._by_row[row] = self._by_row[seen] = self._by_row.get(seen) or self._judge(seen)
        return judged

    def _judge(self, row: NodeState) -> _JudgedRow:
        reason = verdict(row, self.shape, self.only_scores)
        room = rooms.fits(reason, row, self.shape) if self.nearer else 0
        refused = self.unresolvable if reason in UNRESOLVABLE else self.failed if reason in FAILED else None
        return _JudgedRow(row, reason, room, refused, self._words(reason))

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

    def _words(self, reason: VerdictReason) -> bytes:
        mistake = self.shape.attributes.mistake if reason is VerdictReason.ATTRIBUTES_MALFORMED else ""
        words = UNRESOLVABLE.get(reason) or FAILED.get(reason, "")
        return protocol.words(f"{words}: {mistake}" if mistake else words)
