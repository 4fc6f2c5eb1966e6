"""The prepared answers about every node for one shape of Pod. A request only looks up names."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Self

from remediator.scheduler import protocol
from remediator.scheduler.score import score
from remediator.scheduler.verdict import FAILED, STRANGER, UNRESOLVABLE, NodeState, Shape, VerdictReason, verdict


class Hosts(dict[str, bytes]):
    """Entries of a HostPriorityList by node; a node that is not there gets the score of a stranger, and is not kept."""

    def __init__(self, stranger: int) -> None:
        self.stranger = stranger

    def __missing__(self, name: str) -> bytes:
        return protocol.host(name, self.stranger)


class Answers:
    """Entries of the lists of an answer by node: `failed` and `unresolvable` only of refused nodes, `hosts` of any."""

    def __init__(self, shape: Shape, rows: Mapping[str, NodeState], only_scores: bool = False) -> None:
        self.shape, self.only_scores = shape, only_scores
        self.failed: dict[str, bytes] = {}
        self.unresolvable: dict[str, bytes] = {}
        self.hosts = Hosts(verdict_and_score(STRANGER, shape, only_scores)[1])
        for name, row in rows.items():
            self._enter(name, row)

    def copy(self) -> Self:
        """Answers of their own that begin as these."""
        other = type(self)(self.shape, {}, self.only_scores)
        other.failed.update(self.failed)
        other.unresolvable.update(self.unresolvable)
        other.hosts.update(self.hosts)
        return other

    def put(self, name: str, row: NodeState | None) -> None:
        """Take in what is now so of one node; None for one that is gone."""
        for entries in (self.failed, self.unresolvable, self.hosts):
            entries.pop(name, None)
        if row is not None:
            self._enter(name, row)

    def _enter(self, name: str, row: NodeState) -> None:
        reason, points = verdict_and_score(row, self.shape, self.only_scores)
        self.hosts[name] = protocol.host(name, points)
        if reason in UNRESOLVABLE:
            self.unresolvable[name] = protocol.refusal(name, UNRESOLVABLE[reason])
        elif reason in FAILED:
            self.failed[name] = protocol.refusal(name, FAILED[reason])


@lru_cache(maxsize=4096)
def verdict_and_score(row: NodeState, shape: Shape, only_scores: bool) -> tuple[VerdictReason, int]:
    """Verdict and score. Thousands of nodes share few rows, and a new shape must be answered at once."""
    reason = verdict(row, shape, only_scores)
    return reason, score(reason, row, shape)
