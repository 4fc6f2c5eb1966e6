"""When health only scores: a wrong policy or detector, or a pause of everything, must not take a cluster's GPUs away.

Nodes that a case holds, that are quarantined or that we have cordoned stay refused: they are few, and work on them may
be lost. Pure.
"""

from enum import StrEnum
from typing import NamedTuple

from remediator.scheduler.reasons import HEALTH
from remediator.scheduler.row import NodeState

MOST_REFUSED, MOST_PERCENT = 5, 20  # more than both, and health only scores
AGAIN_REFUSED, AGAIN_PERCENT = 3, 15  # no more than one of these, and health refuses again


class OpenReason(StrEnum):
    """Why health only scores."""

    PAUSED = "Paused"
    TOO_MANY = "TooManyUnhealthy"


class Tally(NamedTuple):
    """How many nodes have GPUs, and how many of these health refuses, or would if it did not only score."""

    gpu_nodes: int = 0
    refused: int = 0

    def plus(self, row: NodeState | None, count: int) -> "Tally":
        """With `count` more nodes of this row, or fewer."""
        if row is None or not row.total:
            return self
        return Tally(self.gpu_nodes + count, self.refused + count * (row.health in HEALTH))


def open_reason(before: OpenReason | None, tally: Tally, paused: bool) -> OpenReason | None:
    """Why health only scores now; None where it refuses.

    >>> [open_reason(None, Tally(100, refused), False) for refused in (20, 21)]
    [None, <OpenReason.TOO_MANY: 'TooManyUnhealthy'>]
    >>> [open_reason(OpenReason.TOO_MANY, Tally(100, refused), False) for refused in (15, 16)]
    [None, <OpenReason.TOO_MANY: 'TooManyUnhealthy'>]
    """
    if paused:
        return OpenReason.PAUSED
    was_open = before is OpenReason.TOO_MANY
    most, percent = (AGAIN_REFUSED, AGAIN_PERCENT) if was_open else (MOST_REFUSED, MOST_PERCENT)
    many = tally.refused > most and tally.refused * 100 > percent * tally.gpu_nodes
    return OpenReason.TOO_MANY if many else None


def describe(reason: OpenReason | None, tally: Tally) -> str:
    """One sentence for a person."""
    nodes = f"{tally.refused} of {tally.gpu_nodes} GPU nodes"
    match reason:
        case OpenReason.PAUSED:
            return f"health only scores, since all new work is paused; it would refuse {nodes}"
        case OpenReason.TOO_MANY:
            limits = f"more than {MOST_PERCENT} % and more than {MOST_REFUSED}"
            return f"health only scores, since it would refuse {nodes}: {limits}"
    return f"health refuses {nodes}"
