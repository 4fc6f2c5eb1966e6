"""The failures of the last weeks, by node and by board: kept change by change, so that asking costs little."""

from collections.abc import Collection, Iterable
from datetime import datetime

from remediator.core.case import Case
from remediator.scheduler.health.history import FORGOTTEN, PastFailure, count, failure, of_node


class FailureBook:
    """Follows cases by name."""

    def __init__(self) -> None:
        self._of_case: dict[str, PastFailure] = {}
        self._by_node: dict[str, dict[str, None]] = {}
        self._by_board: dict[str, dict[str, None]] = {}

    def put(self, name: str, case: Case | None, now: datetime) -> bool:
        """A case as it is now; None for one that is gone. Whether that changes what is kept."""
        new = failure(case) if case is not None else None
        new = new if new is not None and now - new.ended < FORGOTTEN else None
        if new == self._of_case.get(name):
            return False
        self._drop(name)
        if new is not None:
            self._of_case[name] = new
            for index, keys in self._indexes(new):
                for key in keys:
                    index.setdefault(key, {})[name] = None
        return True

    def of(self, node: str) -> list[PastFailure]:
        """All that count for a node."""
        own = self._by_node.get(node)
        return of_node(self._all(own), self._of_board) if own else []

    def counted(self, node: str, repairing: Collection[str], now: datetime) -> float:
        """What the failures of a node count together now."""
        return count(self.of(node), repairing, now) if node in self._by_node else 0.0

    def forget_old(self, node: str, now: datetime) -> None:
        """Drop those of a host that time has taken out."""
        for known in self._all(tuple(self._by_node.get(node, ()))):
            if now - known.ended >= FORGOTTEN:
                self._drop(known.case)

    def nodes(self) -> Collection[str]:
        """The nodes that have any."""
        return self._by_node.keys()

    def _of_board(self, board: str) -> Iterable[PastFailure]:
        return self._all(self._by_board.get(board, ()))

    def _all(self, names: Iterable[str]) -> list[PastFailure]:
        return [self._of_case[name] for name in names]

    def _indexes(self, known: PastFailure) -> tuple[tuple[dict[str, dict[str, None]], Iterable[str]], ...]:
        return (self._by_node, (known.node,)), (self._by_board, known.boards)

    def _drop(self, name: str) -> None:
        known = self._of_case.pop(name, None)
        for index, keys in self._indexes(known) if known is not None else ():
            for key in keys:
                del index[key][name]
                if not index[key]:
                    del index[key]
