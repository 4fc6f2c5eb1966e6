"""The policies that a replay compares: our scores, and what others do."""

from collections.abc import Mapping

from remediator.scheduler.packing.points import POINTS, Outcome, Score, fullness, gain_step
from remediator.scheduler.packing.replay.engine import Policy
from remediator.scheduler.packing.room import CARD
from remediator.scheduler.packing.workload import Workload

OURS = "fgd"


def requested_to_capacity(outcome: Outcome) -> int:
    """0 to 100, as the plugin of kube-scheduler scores GPUs by a line from an empty node to a full one."""
    capacity = outcome.cards * CARD
    return 100 * (capacity - outcome.rest) // capacity if capacity else 100


def policies(pinned: Workload) -> Mapping[str, Policy]:
    """By name. `pinned`: the workload of the whole list, which some of them know beforehand."""
    rows = (
        Policy(OURS, POINTS[Score.FGD]),
        Policy("fgd, pinned", POINTS[Score.FGD], pinned),
        Policy("fgd, GPU Pods only", POINTS[Score.FGD], gpus_only=True),
        Policy("fgd-blend", POINTS[Score.BLEND]),
        Policy("packing", POINTS[Score.PACKING], {}),
        Policy("RequestedToCapacityRatio", requested_to_capacity, {}, gpus_only=True),
        Policy("BestFit", fullness, {}),
        Policy("FGD", gain_step, pinned),
        Policy("FGD, first node", gain_step, pinned, first=True),
    )
    return {row.name: row for row in rows}
