"""The policies that a replay compares: our scores, and what others do."""

from collections.abc import Mapping

from remediator.scheduler.packing.points import POINTS, PlacementOutcome, Score, fullness, gain_step
from remediator.scheduler.packing.replay.engine import ScoringPolicy
from remediator.scheduler.packing.room import CARD
from remediator.scheduler.packing.workload import Workload

OURS = "fgd"


def requested_to_capacity(outcome: PlacementOutcome) -> int:
    """0 to 100, as the plugin of kube-scheduler scores GPUs by a line from an empty node to a full one."""
    capacity = outcome.cards * CARD
    return 100 * (capacity - outcome.rest) // capacity if capacity else 100


def policies(pinned: Workload) -> Mapping[str, ScoringPolicy]:
    """By name. `pinned`: the workload of the whole list, which some of them know beforehand."""
    rows = (
        ScoringPolicy(OURS, POINTS[Score.FGD]),
        ScoringPolicy("fgd, pinned", POINTS[Score.FGD], pinned),
        ScoringPolicy("fgd, GPU Pods only", POINTS[Score.FGD], gpus_only=True),
        ScoringPolicy("fgd-blend", POINTS[Score.BLEND]),
        ScoringPolicy("packing", POINTS[Score.PACKING], {}),
        ScoringPolicy("RequestedToCapacityRatio", requested_to_capacity, {}, gpus_only=True),
        ScoringPolicy("BestFit", fullness, {}),
        ScoringPolicy("FGD", gain_step, pinned),
        ScoringPolicy("FGD, first node", gain_step, pinned, first=True),
    )
    return {row.name: row for row in rows}
