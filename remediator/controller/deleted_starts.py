"""Starts of cases that somebody has deleted since: they count for the breaker all the same, until its window is over.

They are kept as an annotation of the Lease, which is written anyway, so that the next leader knows them, too.
"""

from collections.abc import Iterable
from datetime import datetime

from remediator.controller.cache import ClusterCache
from remediator.core import names
from remediator.core.absence import APART
from remediator.core.breaker import Breaker, Start, starts
from remediator.kube.runtime.leader import Leader

MOST = 1000  # that are written; an annotation has room for them


class DeletedStarts:
    """Keeps `cache.deleted_starts` for the leader."""

    def __init__(self, cache: ClusterCache, leader: Leader, breaker: Breaker) -> None:
        self._cache, self._leader, self._breaker = cache, leader, breaker
        self._known: frozenset[Start] = frozenset()
        self._began = False

    def look(self, now: datetime) -> None:
        """Keep the starts of cases that have gone since the last look. Before every admission."""
        _, notes = self._leader.before
        noted = frozenset() if self._began else read(notes.get(names.DELETED_STARTS, ""), now)
        known = self._known | self._cache.deleted_starts | noted
        deleted = frozenset(
            start for start in known if self._breaker.recent([start.at], now) and self._cache.case(start.case) is None
        )
        if deleted != self._cache.deleted_starts or noted:
            self._leader.note(names.DELETED_STARTS, text(deleted))
        self._cache.deleted_starts, self._began = deleted, True
        recent = [case for case in self._cache.cases if case.ended is None or case.ended > now - self._breaker.window]
        self._known = frozenset(Start(at, case.uid) for case in recent for at in starts([case]))

    def end(self) -> None:
        """We no longer lead."""
        self._began = False


def text(deleted: Iterable[Start]) -> str:
    """What `read` reads again: the newest of them."""
    newest = sorted(deleted)[-MOST:]
    return ",".join(f"{start.case}/{start.at.isoformat()}" for start in newest)


def read(noted: str, now: datetime) -> frozenset[Start]:
    """What `text` has written, as far as it lies in the past: who wrote it may have a clock that is ahead of ours."""
    deleted = set[Start]()
    for entry in noted.split(",")[:MOST]:
        case, _, time = entry.partition("/")
        try:
            at = datetime.fromisoformat(time)
        except ValueError:
            continue
        if at.tzinfo and at <= now + APART:
            deleted.add(Start(at, case))
    return frozenset(deleted)
