"""In how many seconds an admission pass is worth running again. Pure."""

from collections.abc import Iterable
from datetime import datetime

from remediator.controller.effects import Done, EffectResult
from remediator.core.admission import Admission
from remediator.core.reasons import Reason

# Holds that end without any event of the case itself, and how many seconds later they are looked at again.
WITHOUT_EVENT = frozenset(
    {
        Reason.HEALTH_UNKNOWN,
        Reason.PAUSED,
        Reason.SHARED_CAUSE,
        Reason.NO_NODE_FOR_API_PODS,
        Reason.NOT_CONFIRMED,
        Reason.CONFIRMATION_UNKNOWN,
        Reason.ZONE_UNREACHABLE,
        Reason.LEASE_RENEWED,
        Reason.NOT_ENOUGH_SPARE_GPUS,
        Reason.WAITING_FOR_IDLE,
        Reason.BLAST_RADIUS,
        Reason.BLAST_RADIUS_UNKNOWN,
    }
)
LOOK_AGAIN = 30.0


def waits_of(results: Iterable[EffectResult]) -> list[float]:
    """Seconds until what was not done is tried again."""
    return [result.after for result in results if not isinstance(result, Done)]


def until_holds_end(admission: Admission, now: datetime) -> list[float]:
    """Seconds until each hold that ends by itself."""
    blocks = [block for _, blocks in admission.held for block in blocks]
    timed = [max(1.0, (block.until - now).total_seconds()) for block in blocks if block.until]
    return [*timed, *(LOOK_AGAIN for block in blocks if block.reason in WITHOUT_EVENT)]
