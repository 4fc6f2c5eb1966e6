"""Starts of cases that somebody has deleted since: they count for the breaker all the same, until its window is over.

They are kept as an annotation of the Lease, which is written anyway, so that the next leader knows them, too. Those of
cases that are over or being deleted stand there beforehand: who leads may die between the end of a case and a renewal.
Of a case that somebody removed by force while nobody led, its operations tell, and its entries in the ledgers.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime

from remediator.controller.cache import ClusterCache
from remediator.core import names
from remediator.core.absence import APART
from remediator.core.breaker import Breaker, DisruptiveStart, starts
from remediator.core.budget_breaker import longest
from remediator.core.case import Case
from remediator.core.operation import Operation
from remediator.kube.runtime.leader import Leader

MOST, MOST_TEXT = 1000, 200_000  # that are written; an annotation has room for them


class DeletedStarts:
    """Keeps `cache.deleted_starts` for the leader."""

    def __init__(self, cache: ClusterCache, leader: Leader, breaker: Breaker) -> None:
        self._cache, self._leader, self._breaker = cache, leader, breaker
        self._began = False
        self._noted: frozenset[DisruptiveStart] = frozenset()
        self._leaving: frozenset[DisruptiveStart] = frozenset()  # of cases that may soon be gone

    def gone(self, case: Case, now: datetime) -> None:
        """Keep the starts of a case at the moment at which we lose sight of it: an admission pass may be under way."""
        self._keep(frozenset(starts([case]) or self._entered(case.uid, case.node)), now)

    def begin(self, now: datetime) -> None:
        """Keep what the leader before has noted, and what is left of cases that nobody knows. Before every pass."""
        if self._began:
            return
        self._began, self._noted = True, frozenset()
        known = self._cache.deleted_starts | read(self._leader.before[1].get(names.DELETED_STARTS, ""), now)
        cases = {start.case for start in known}
        self._keep(known.union(start for start in self._left_behind(now) if start.case not in cases), now)

    def _left_behind(self, now: datetime) -> Iterator[DisruptiveStart]:
        """What operations say, and of a case that has none, the first of its entries."""
        since, operated = now - self._counting.window - APART, set[str]()
        for operation in self._cache.operations:
            uid = operation.case_uid
            if uid and operation.created > since and _disturbs(operation) and self._cache.case(uid) is None:
                operated.add(uid)
                yield DisruptiveStart(operation.created, uid, operation.node)
        for uid in self._cache.entries:
            if uid not in operated and self._cache.case(uid) is None:
                yield from self._entered(uid)

    def _entered(self, uid: str, node: str = "") -> list[DisruptiveStart]:
        since = self._cache.entries.since(uid)
        return [] if since is None else [DisruptiveStart(since, uid, node)]

    @property
    def _counting(self) -> Breaker:
        """The breaker that counts starts for the longest, that of the fleet or of a budget."""
        return replace(self._breaker, window=longest(self._cache.budgets, self._breaker.window))

    def look(self, now: datetime) -> None:
        """Note what the next leader must know, and drop what does not count any more. Before every admission."""
        since = now - self._counting.window - APART  # a case that ended earlier has no start that counts
        known = self._cache.cases_since(since)
        leaving = (case for case in known if case.deleting or (case.ended and case.ended > since))
        self._leaving = frozenset(starts(leaving))
        self._keep(frozenset(), now)

    def end(self) -> None:
        """We no longer lead."""
        self._began = False

    def _keep(self, more: frozenset[DisruptiveStart], now: datetime) -> None:
        known, since = self._cache.deleted_starts | more, now - self._counting.window
        self._cache.deleted_starts = frozenset(
            start for start in known if start.at > since and self._cache.case(start.case) is None
        )
        noted = self._cache.deleted_starts.union(start for start in self._leaving if start.at > since)
        if self._began and noted != self._noted:
            self._leader.note(names.DELETED_STARTS, text(noted))
            self._noted = noted


def _disturbs(operation: Operation) -> bool:
    """Whether it has disturbed its node, or may yet."""
    return operation.finished is None or operation.drain_started is not None or operation.intent_at is not None


def text(deleted: Iterable[DisruptiveStart]) -> str:
    """What `read` reads again: the newest of them."""
    newest = [f"{start.case}/{start.at.isoformat()}/{start.node}" for start in sorted(deleted)[-MOST:]]
    while sum(len(entry) + 1 for entry in newest) > MOST_TEXT:
        newest = newest[len(newest) // 4 + 1 :]
    return ",".join(newest)


def read(noted: str, now: datetime) -> frozenset[DisruptiveStart]:
    """What `text` has written, as far as it lies in the past: who wrote it may have a clock that is ahead of ours."""
    deleted = set[DisruptiveStart]()
    for entry in noted.split(",")[:MOST]:
        case, _, rest = entry.partition("/")
        time, _, node = rest.partition("/")
        try:
            at = datetime.fromisoformat(time)
        except ValueError:
            continue
        if at.tzinfo and at <= now + APART:
            deleted.add(DisruptiveStart(at, case, node))
    return frozenset(deleted)
