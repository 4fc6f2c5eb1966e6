"""Places Pods one after the other, as kube-scheduler would by the scores of a policy alone. Pure; chance is given."""

from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import NamedTuple

from remediator.scheduler.packing.fragmentation import Fragmentation
from remediator.scheduler.packing.placement import best
from remediator.scheduler.packing.points import PlacementOutcome
from remediator.scheduler.packing.replay.trace import Arrival, TraceNode
from remediator.scheduler.packing.room import NodeRoom
from remediator.scheduler.packing.workload import Learner, Workload


class ScoringPolicy(NamedTuple):
    """How nodes are scored, by what workload, and which of equal ones is taken."""

    name: str
    points: Callable[[PlacementOutcome], int]
    workload: Workload | None = None  # None: learnt from what has been placed
    first: bool = False  # of equal nodes the first, not any
    gpus_only: bool = False  # Pods without GPUs get any node


class ScoreBoard:
    """Scores of all nodes for one kind of Pod. A node that has changed is scored anew when somebody asks."""

    def __init__(self, size: int) -> None:
        self.scores = [-1] * size
        self.seen = 0  # of the changes


class ReplayFleet:
    """Nodes that fill up under a policy."""

    def __init__(self, machines: Sequence[TraceNode], policy: ScoringPolicy, chance: Random) -> None:
        self.rooms = [machine.room for machine in machines]
        self.memory = [machine.memory for machine in machines]
        self._policy, self._chance = policy, chance
        self._learner = Learner() if policy.workload is None else None
        self._fragmentation = Fragmentation(policy.workload or {})
        self._boards: dict[Arrival, ScoreBoard] = {}
        self._changed: list[int] = []

    def place(self, arrival: Arrival) -> tuple[int, NodeRoom] | None:
        """Put it on a node: which, and what was free there before. None where it fits nowhere."""
        at = self._chosen(self._board(arrival).scores)
        placement = None if at is None else best(self.rooms[at], arrival.task, self._fragmentation)
        if at is None or placement is None:
            return None
        before, self.rooms[at] = self.rooms[at], placement.room
        self.memory[at] -= arrival.memory
        self._changed.append(at)
        if self._learner is not None and self._learner.note([arrival.task]):
            self._fragmentation = Fragmentation(self._learner.workload)
            self._boards.clear()
        return at, before

    def _chosen(self, scores: list[int]) -> int | None:
        top = max(scores)
        if top < 0:
            return None
        if self._policy.first:
            return scores.index(top)
        return self._chance.choice([at for at, score in enumerate(scores) if score == top])

    def _board(self, arrival: Arrival) -> ScoreBoard:
        board = self._boards.get(arrival)
        if board is None:
            board = self._boards[arrival] = ScoreBoard(len(self.rooms))
            stale: Iterable[int] = range(len(self.rooms))
        else:
            stale = dict.fromkeys(self._changed[board.seen :])
        for at in stale:
            board.scores[at] = self._score(at, arrival)
        board.seen = len(self._changed)
        return board

    def _score(self, at: int, arrival: Arrival) -> int:
        """-1 where it does not fit."""
        if not self.takes(at, arrival):
            return -1
        if self._policy.gpus_only and not arrival.task.cards:
            return 0
        placement = best(self.rooms[at].rounded, arrival.task, self._fragmentation)
        return self._policy.points(placement.outcome) if placement else -1

    def takes(self, at: int, arrival: Arrival) -> bool:
        """Whether the Pod fits there: the part of kube-scheduler's own filters."""
        return self.memory[at] >= arrival.memory and self.rooms[at].holds(arrival.task)

    def scores(self, arrival: Arrival) -> dict[int, int]:
        """Of each node that takes it."""
        return {at: score for at, score in enumerate(self._board(arrival).scores) if score >= 0}
