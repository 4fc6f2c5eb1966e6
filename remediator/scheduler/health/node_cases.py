"""The cases that placing goes by, of each node."""

from collections.abc import Collection, Iterable
from datetime import datetime

from remediator.core.case import Case
from remediator.scheduler.health.case_summary import CaseSummary, counts, summary


class NodeCases:
    """Follows cases. Of those that placing does not go by any more, of which there are thousands, it keeps nothing."""

    def __init__(self) -> None:
        self._by_node: dict[str, dict[str, CaseSummary]] = {}  # and by the key of the case

    def of(self, node: str) -> Collection[CaseSummary]:
        """Those of one node."""
        return self._by_node.get(node, {}).values()

    def nodes(self) -> Iterable[str]:
        """The nodes that have some."""
        return self._by_node

    def moved(self, key: str, old: Case | None, new: Case | None, now: datetime) -> list[str]:
        """A case as it was, and as it is now; the nodes for which that changes anything, as most writes do not."""
        before = self._by_node.get(old.node, {}).get(key) if old is not None else None
        after = _counting(new, now)
        if before == after:
            return []
        if before is not None:
            self._forget(key, before.node)
        if after is not None:
            self._by_node.setdefault(after.node, {})[key] = after
        return [case.node for case in (before, after) if case is not None]

    def forget_old(self, node: str, now: datetime) -> None:
        """Those of a node that time alone has taken out of placing."""
        for key in [key for key, case in self._by_node.get(node, {}).items() if not counts(case, now)]:
            self._forget(key, node)

    def _forget(self, key: str, node: str) -> None:
        cases = self._by_node.get(node, {})
        cases.pop(key, None)
        if not cases:
            self._by_node.pop(node, None)


def _counting(case: Case | None, now: datetime) -> CaseSummary | None:
    short = summary(case) if case is not None else None
    return short if short is not None and counts(short, now) else None
