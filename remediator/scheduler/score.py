"""How much one node is preferred for one Pod: health, then what the Pod prefers, then packing, in one integer.

kube-scheduler adds `score × weight × 10` to the sum of its plugins (at most 1,200 with the default weights). It
documents the range 0 to 10 and checks no range, only that scores are integers. Eleven levels are too few: of nodes
with the same score it takes any.

`fgd` uses a range in which no plugin undoes a step: tier·10⁶ + preferences·10⁵ + fragmentation·10³ + fullness.
`fgd-blend` squeezes this into 0 to 99, for who wants what users prefer to count beside it. `packing` is
(requested + used) / capacity in 0 to 10, and less than that on nodes of lower tiers.

Pods that ask for memory of shared GPUs are packed by card instead: the node whose card they leave the fullest, so that
whole cards stay free for Pods that need much.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from remediator.core.node import Gpus
from remediator.scheduler.attributes.catalog import NodeAttributes
from remediator.scheduler.packing.fragmentation import Fragmentation
from remediator.scheduler.packing.placement import best
from remediator.scheduler.packing.points import BLENDED, FINE, POINTS, RATIO, STEPS, PlacementOutcome, Score
from remediator.scheduler.packing.room import CARD, NodeRoom, Task
from remediator.scheduler.packing.workload import Workload
from remediator.scheduler.reasons import VerdictReason
from remediator.scheduler.row import NodeState
from remediator.scheduler.shared.cards import choose
from remediator.scheduler.verdict import Shape

BEST = 4  # of the tiers
LIKED = 9  # steps of what a Pod prefers
MOST_ROOMS = 8192  # of rows that are remembered, each for all shapes
MOST_CARDS = 256  # of one node and resource that are looked at, whatever the node says
TIER: Mapping[VerdictReason, int] = {
    VerdictReason.FIT: 4,
    VerdictReason.REPAIRED: 3,
    VerdictReason.FEW_FAILURES: 3,
    VerdictReason.SOME_FAILURES: 2,
    VerdictReason.MANY_FAILURES: 1,
    VerdictReason.HEALTH_UNKNOWN: 1,
    VerdictReason.UNKNOWN_NODE: 1,
    VerdictReason.DETECTORS_SILENT: 0,
    VerdictReason.WAITING: 0,
    VerdictReason.ONLY_SCORED: 0,
}


class Scoring(NamedTuple):
    """What a site has chosen. `workload`: None to learn it from the cluster's own Pods."""

    score: Score = Score.FGD
    workload: Workload | None = None


LEARNT = Scoring()


class _Fold(NamedTuple):
    """How one integer is made. `most`: points of packing; `points`: of a Pod without GPUs on a node with none."""

    most: int
    tier: int  # what one is worth
    lowest: int  # score of the lowest tier, and of what is refused

    def halved(self, points: int, met: int, of: int) -> int:
        """As much for what a Pod prefers as for packing."""
        return (self.most * met // of + points) // 2 if of else points

    def nearer(self, score: int, level: int, levels: int) -> int:
        """More than packing alone gives, by the level of a domain; packing counts for the other half."""
        steps, apart = self.most + 1, (self.most - 1) // 2  # most points of packing alone
        within = (score - self.lowest) % steps
        return score - within + within * (apart + 1) // steps + (self.most - apart) * level // levels


_FOLD: Mapping[Score, _Fold] = {
    Score.FGD: _Fold(STEPS * FINE - 1, (LIKED + 1) * STEPS * FINE, 0),
    Score.BLEND: _Fold(BLENDED, BLENDED + 1, 0),
    Score.PACKING: _Fold(RATIO, RATIO + 1, -BEST * (RATIO + 1)),
}


class Scorer:
    """Scores by one way, and one workload: two are never equal, so that what is remembered of one is its own."""

    def __init__(self, score: Score = Score.FGD, fragmentation: Fragmentation | None = None) -> None:
        self.score, self._fold, self._points = score, _FOLD[score], POINTS[score]
        self.fragmentation = fragmentation or Fragmentation({})

    @property
    def sees_facts(self) -> bool:
        """Whether nodes with other labels may get other scores for Pods that ask for no attributes."""
        return self.fragmentation.sees_facts

    def worst(self, reason: VerdictReason) -> int:
        """The least that a node with this verdict gets."""
        return self._fold.lowest + TIER[reason] * self._fold.tier

    def of(self, reason: VerdictReason, row: NodeState, shape: Shape) -> int:
        """The lowest score for what is refused; else more by tier, by what the Pod prefers and by packing."""
        fold = self._fold
        if reason not in TIER:
            return fold.lowest
        points, preferred = self._packing(row, shape), len(shape.attributes.preferred)
        met = shape.attributes.liked(row.facts, shape.resources) if preferred else 0
        if self.score is Score.FGD:
            points += LIKED * met // (preferred or 1) * STEPS * FINE
        else:
            points = fold.halved(points, met, preferred)
        return self.worst(reason) + points

    def nearer(self, score: int, level: int, levels: int) -> int:
        """The score of a node for a Pod of a gang: its tier stays; a domain counts before packing.

        With `fgd`, what the Pod prefers stays, too. `level`: that of the narrowest preferred domain that the node is
        in, 0 for none; `levels`: how many there are.
        """
        return self._fold.nearer(score, level, levels) if levels else score

    def _packing(self, row: NodeState, shape: Shape) -> int:
        if shape.memory.memory and not shape.gpus:
            return self._of_memory(row, shape)
        outcome = self._outcome(row, shape)
        if outcome is None:
            return 0
        return self._points(outcome) if outcome.cards else self._fold.most

    def _of_memory(self, row: NodeState, shape: Shape) -> int:
        """More the fuller the Pod leaves the cards that it would be given; of equal ones the fullest node first."""
        given = choose(row.cards.free, shape.memory) if row.cards is not None else None
        if row.cards is None or not given:
            return 0
        free, sizes = dict(row.cards.free), row.cards.sizes
        cards = _full(sum(free[card] - memory for card, memory in given), sum(sizes[card] for card, _ in given))
        node = _full(sum(room for room in free.values()) - shape.memory.memory, sum(row.cards.well))
        return int(self._fold.most * (cards * (FINE - 1) + node) / FINE)

    def _outcome(self, row: NodeState, shape: Shape) -> PlacementOutcome | None:
        """What a Pod does to a node, its cards of other kinds too. None where it asks for cards that nobody lists.

        Without cards where it asks for none and the node has none.
        """
        tasks, gain, rest, cards = _by_resource(shape), 0.0, 0, 0
        for room in _rooms(row.cpu, row.total, row.used, row.facts):
            task = tasks.get(room.resource)
            placement = best(room, task or Task(shape.cpu), self.fragmentation)
            if placement is None:
                continue
            gain += placement.outcome.gain
            if task is not None or not shape.gpus:
                rest, cards = rest + placement.outcome.rest, cards + room.cards
        return None if shape.gpus and not cards else PlacementOutcome(gain, row.cpu - shape.cpu, rest, cards)


def _full(left: int, size: int) -> float:
    """0 to 1: how little is left of so much. A card from which more was given than it has is full."""
    return 1.0 if left <= 0 else max(0.0, 1 - left / size)


@lru_cache(1024)
def tasks_of(shape: Shape) -> tuple[Task, ...]:
    """What a Pod asks of each kind of GPUs; of CPU alone where it asks for none."""
    if not shape.gpus:
        return (Task(shape.cpu),)
    return tuple(Task(shape.cpu, count, CARD, name, shape.attributes.must) for name, count in shape.gpus)


@lru_cache(1024)
def _by_resource(shape: Shape) -> Mapping[str, Task]:
    """The same by resource; what asks for no cards is of none."""
    return {task.resource: task for task in tasks_of(shape)}


@lru_cache(MOST_ROOMS)
def _rooms(cpu: int, total: Gpus, used: Gpus, facts: NodeAttributes) -> tuple[NodeRoom, ...]:
    """Of each resource that a node has; of one whose GPUs are gone, none. The same for all shapes of Pods."""
    taken = dict(used)
    return tuple(
        NodeRoom(cpu, (CARD,) * min(count - taken.get(name, 0), MOST_CARDS), min(count, MOST_CARDS), name, facts)
        for name, count in total
        if count
    )
