"""Where the Pods of each gang are, kept change by change."""

from collections import Counter
from collections.abc import Iterable

from remediator.core.job import Job
from remediator.core.spare import PodHolding


class Siblings:
    """Follows the Pods that hold GPUs."""

    def __init__(self) -> None:
        self._nodes: dict[Job, Counter[str]] = {}

    def moved(self, old: PodHolding | None, new: PodHolding | None) -> None:
        """A Pod holds something else now."""
        for holding, change in ((old, -1), (new, 1)):
            if holding is None or holding.gang is None:
                continue
            nodes = self._nodes.setdefault(holding.gang, Counter())
            nodes[holding.node] += change
            if not nodes[holding.node]:
                del nodes[holding.node]
            if not nodes:
                del self._nodes[holding.gang]

    def of(self, gang: Job) -> Iterable[str]:
        """The node of each Pod of a gang."""
        return self._nodes.get(gang, Counter()).elements()
