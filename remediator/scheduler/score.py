"""How much one node is preferred for one Pod: health first, then packing, in one integer from 0 to 99.

kube-scheduler adds `score × weight × 10` to the sum of its plugins (at most 1,200 with the default weights). It
documents the range 0 to 10 and does not check it. Eleven levels are too few for health and packing; a hundred are
enough, since a node has few levels of whole GPUs (9 on a node of eight). A wider range would outweigh what users
prefer. `weight` sets how much our scores count beside the plugins.
"""

from collections.abc import Mapping

from remediator.scheduler.verdict import NodeState, Shape, VerdictReason

STEPS = 24  # of packing, within one tier
BESIDE_GPUS = 16  # for a Pod without GPUs on a node that has some
TIER: Mapping[VerdictReason, int] = {
    VerdictReason.FIT: 75,
    VerdictReason.REPAIRED: 50,
    VerdictReason.HEALTH_UNKNOWN: 25,
    VerdictReason.UNKNOWN_NODE: 25,
    VerdictReason.WAITING: 0,
    VerdictReason.ONLY_SCORED: 0,
}


def score(reason: VerdictReason, row: NodeState, shape: Shape) -> int:
    """0 for what is refused; else the tier of the verdict, and up to 24 more the fuller the node is afterwards."""
    return TIER[reason] + _packing(row, shape) if reason in TIER else 0


def _packing(row: NodeState, shape: Shape) -> int:
    """Of a node's GPUs of the kinds that are asked for, the share in use once the Pod is there."""
    if not shape.gpus:
        return BESIDE_GPUS if any(count for _, count in row.total) else STEPS
    mine = row.of(shape.gpus)
    total = sum(have for have, _, _ in mine)
    held = sum(used + asked for _, used, asked in mine)
    return STEPS * min(held, total) // total if total else 0
