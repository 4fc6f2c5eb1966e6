"""Which Pods a cluster runs: learnt from its own, where each weighs less the more have come after it, or given."""

from collections.abc import Iterable, Mapping

from remediator.scheduler.packing.room import Task

HALF_LIFE = 20_000  # Pods after which one weighs half as much
MOST_KINDS = 1024  # of tasks that are counted
COVERED = 0.95  # the rarest tasks are left out: together they are less than the rest
LOOK_AFTER = range(10, 1000)  # Pods between two looks at whether the workload is another: a twentieth of all
NOTICEABLE = 0.05  # the part of a workload that must be other tasks
_LARGEST = 1e100

Workload = Mapping[Task, float]  # shares that add up to 1; empty where nothing is known


def shares(weights: Mapping[Task, float], covered: float = COVERED) -> dict[Task, float]:
    """The most frequent tasks that make up so much of all, as shares of these."""
    left = covered * sum(weights.values())
    kept: dict[Task, float] = {}
    for task in sorted(weights, key=lambda task: (-weights[task], task.cards, task.milli, task.cpu)):
        if left <= 0:
            break
        kept[task] = weights[task]
        left -= weights[task]
    total = sum(kept.values())
    return {task: weight / total for task, weight in kept.items()}


def distance(some: Workload, others: Workload) -> float:
    """The part of one workload that is other tasks than the other: 0 for the same, 1 for nothing in common.

    >>> distance({Task(1): 0.5, Task(2): 0.5}, {Task(1): 0.75, Task(3): 0.25})
    0.5
    """
    return sum(abs(some.get(task, 0.0) - others.get(task, 0.0)) for task in {*some, *others}) / 2


class Learner:
    """Counts tasks, and says when they have become another workload. Every Pod weighs a little more than the last."""

    def __init__(self) -> None:
        self.workload: Workload = {}
        self._weights: dict[Task, float] = {}
        self._next = 1.0  # what the next Pod weighs
        self._noted, self._unseen = 0, 0  # Pods, in all and since the last look

    def note(self, tasks: Iterable[Task]) -> bool:
        """Count what has been placed; whether `workload` is another one now."""
        for task in tasks:
            self._weights[task] = self._weights.get(task, 0.0) + self._next
            self._next *= 2 ** (1 / HALF_LIFE)
            self._unseen += 1
        if self._unseen < min(LOOK_AFTER.stop, max(LOOK_AFTER.start, self._noted // 20)):
            return False
        self._noted, self._unseen = self._noted + self._unseen, 0
        self._tidy()
        fresh = shares(self._weights)
        if distance(fresh, self.workload) <= (NOTICEABLE if self.workload else 0.0):
            return False
        self.workload = fresh
        return True

    def _tidy(self) -> None:
        """Keep the heaviest, as numbers of a size that a float holds."""
        if len(self._weights) <= MOST_KINDS and self._next < _LARGEST:
            return
        heaviest = sorted(self._weights.items(), key=lambda row: -row[1])[:MOST_KINDS]
        self._weights = {task: weight / self._next for task, weight in heaviest}
        self._next = 1.0
