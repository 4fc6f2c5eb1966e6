"""What a node offers of NVIDIA's Multi-Process Service (MPS): by its labels, and by a Condition. Pure.

That a node offers it, its labels say: NVIDIA's device plugin where it shares GPUs so, or its administrator. MPS limits
what each process may use of a GPU only from Volta on (compute capability 7.0). Whether its daemon works says the
Condition MpsUnhealthy, of our detector or of another one.
"""

from datetime import datetime
from enum import StrEnum

from remediator.core.names import GPU_MPS
from remediator.core.node import Node, Status
from remediator.core.trust import untimely
from remediator.scheduler.attributes.catalog import ATTRIBUTES, WHOLE, facts_of

CONDITION = "MpsUnhealthy"
STRATEGY = "nvidia.com/gpu.sharing-strategy"
VOLTA = (7,)


class Mps(StrEnum):
    """What is so of a node that offers MPS; the last two are words of verdicts."""

    USABLE = "MpsUsable"
    TOO_OLD = "MpsTooOld"
    UNHEALTHY = "MpsUnhealthy"


def mps(node: Node, now: datetime) -> Mps | None:
    """None of a node that does not offer it, or whose GPUs nobody knows.

    That nobody has looked at the daemon lately does not make it unhealthy.
    """
    if node.labels.get(STRATEGY) != "mps" and node.labels.get(GPU_MPS) != "true":
        return None
    capability = facts_of(node.labels).of(ATTRIBUTES["computeCapability"], WHOLE)
    if not isinstance(capability, tuple):
        return None
    if capability < VOLTA:
        return Mps.TOO_OLD
    daemon = node.conditions.get(CONDITION)
    sick = daemon is not None and daemon.status is Status.TRUE and CONDITION not in dict(untimely(node, now))
    return Mps.UNHEALTHY if sick else Mps.USABLE
