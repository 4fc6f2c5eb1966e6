"""What the breakers of budgets go by: which attempts ended in vain on whose nodes, and which have started lately.

Attempts are gathered from the cases that have changed since the last pass, and all of a day where one begins to lead or
a budget asks for the first time; what was gathered is kept in the status of the budgets.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from remediator.controller.cache import ClusterCache
from remediator.core import failures
from remediator.core.breaker import DisruptiveStart
from remediator.core.case import Case
from remediator.core.policy import AttemptRecord
from remediator.kube.runtime.turns import sliced

SLICE = 25  # cases between two turns of the loop


class BudgetAttempts:
    """Follows cases. What a pass costs depends on how many have changed."""

    def __init__(self, cache: ClusterCache) -> None:
        self._cache = cache
        self._changed: dict[str, None] = {}  # names of cases
        self._asking: frozenset[tuple[str, str, int]] = frozenset()
        self._records: dict[str, tuple[AttemptRecord, ...]] = {}
        cache.cases.on_view(self._moved)

    def clear(self) -> None:
        """Forget what was gathered: who leads next looks at all cases of a day."""
        self._asking, self._records = frozenset(), {}

    def of(self, budget: str) -> Sequence[AttemptRecord]:
        """The newest attempts on nodes of a budget, as far as cases have told of them here up to now."""
        self._cache.cases.settle()
        changed, self._changed = self._changed, {}
        names = {name for name, *_ in self._asking}
        for name in changed if names else ():
            self._take(name, names)
        return self._records.get(budget, ())

    async def refresh(self, now: datetime) -> None:
        """Take in the cases that have changed; others run in between, and what they change comes when it is asked for.

        The first time these are all of a day.
        """
        self._cache.cases.settle()
        asking = _asking(self._cache)
        if not asking:
            self.clear()
            self._changed.clear()
            return
        changed, self._changed = self._changed, {}
        if asking != self._asking:
            changed = {case.name: None for case in self._cache.cases_since(now - failures.COUNTS_FOR)}
            self._asking = asking
        names = {name for name, *_ in asking}
        async for name in sliced(changed, SLICE):
            self._take(name, names)

    def _take(self, name: str, asking: set[str]) -> None:
        case = self._cache.cases.get(name)
        records = tuple(failures.records([case] if case else ()))
        for budget in over(self._cache, case.node, case.uid) if case and records else ():
            if budget in asking:
                self._records[budget] = failures.merged(self._records.get(budget, ()), records)

    def _moved(self, old: Case | None, new: Case | None) -> None:
        if new is not None and new.attempts:
            self._changed[new.name] = None
        elif new is None and old is not None:
            self._changed.pop(old.name, None)


def _asking(cache: ClusterCache) -> frozenset[tuple[str, str, int]]:
    """The budgets that go by failures, as they are defined now."""
    asking = (each for each in cache.budgets if each.breaker is not None and each.breaker.most is not None)
    return frozenset((each.name, each.uid, each.generation) for each in asking)


def over(cache: ClusterCache, node: str, case: str) -> Iterator[str]:
    """The budgets over a node now, and those that have an entry of the case."""
    known = cache.nodes.get(node)
    yield from {*(cache.nodes_by.index.over(known) if known else ()), *cache.entries.of(case)}


def starts_under(cache: ClusterCache, starts: Iterable[DisruptiveStart]) -> Mapping[str, list[datetime]]:
    """Which of these starts count for the breaker of each budget that has one."""
    asking = {each.name for each in cache.budgets if each.breaker is not None and each.breaker.by_rate}
    by_budget: defaultdict[str, list[datetime]] = defaultdict(list)
    for start in starts if asking else ():
        for name in over(cache, start.node, start.case):
            if name in asking:
                by_budget[name].append(start.at)
    return by_budget
