"""What became of an object in one pass, by its own time to live or by an IdlePolicy, and what a person reads of it."""

from enum import StrEnum


class Outcome(StrEnum):
    """What became of an object."""

    SUSPENDED = "suspend"
    SCALED = "scale"
    DELETED = "delete"
    TOLD = "tell"
    CLEARED = "clear"
    HELD = "held"
    FAILED = "failed"


OF_TTL = (Outcome.DELETED, Outcome.TOLD, Outcome.HELD, Outcome.FAILED)  # what a time to live may come to
DONE = {
    Outcome.SUSPENDED: "suspended",
    Outcome.SCALED: "scaled",
    Outcome.DELETED: "deleted",
    Outcome.TOLD: "told",
    Outcome.CLEARED: "cleared",
}


def word(outcome: Outcome, *, done: bool) -> str:
    """What a person reads of an outcome: of what only would be done, too.

    >>> word(Outcome.TOLD, done=True), word(Outcome.TOLD, done=False), word(Outcome.HELD, done=False)
    ('told', 'would tell', 'held')
    """
    if outcome not in DONE:
        return outcome.value
    return DONE[outcome] if done else f"would {outcome.value}"
