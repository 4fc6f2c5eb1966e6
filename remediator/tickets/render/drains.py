"""Which Pods kept the drain that a case ended with, for a person who can let them go."""

from remediator.core.reasons import Reason
from remediator.tickets.reconcile.input import LinkedCase
from remediator.tickets.render.markdown import code

ROOM = 1500  # characters: all Pods that a drain names, and what each needs


def kept_pods(linked: LinkedCase) -> str:
    """What to do about the newest attempt, where its drain is what failed; "" else."""
    attempt = linked.case.attempt
    if attempt is None or attempt.reason not in (Reason.DRAIN_TIMEOUT, Reason.DRAIN_FAILED):
        return ""
    return (
        f"Pods kept the drain before {code(attempt.template)}; let them go as it says: {code(attempt.message, ROOM)}."
    )
