"""What became of an object in one pass, by its own time to live or by an IdlePolicy, and what a person reads of it."""

from enum import StrEnum


class JanitorOutcome(StrEnum):
    """What became of an object."""

    SUSPENDED = "suspend"
    SCALED = "scale"
    DELETED = "delete"
    TOLD = "tell"
    CLEARED = "clear"
    HELD = "held"
    FAILED = "failed"


# What a time to live may come to.
OF_TTL = (JanitorOutcome.DELETED, JanitorOutcome.TOLD, JanitorOutcome.HELD, JanitorOutcome.FAILED)
DONE = {
    JanitorOutcome.SUSPENDED: "suspended",
    JanitorOutcome.SCALED: "scaled",
    JanitorOutcome.DELETED: "deleted",
    JanitorOutcome.TOLD: "told",
    JanitorOutcome.CLEARED: "cleared",
}


def word(outcome: JanitorOutcome, *, done: bool) -> str:
    """What a person reads of an outcome: of what only would be done, too.

    >>> [word(JanitorOutcome.TOLD, done=done) for done in (True, False)], word(JanitorOutcome.HELD, done=False)
    (['told', 'would tell'], 'held')
    """
    if outcome not in DONE:
        return outcome.value
    return DONE[outcome] if done else f"would {outcome.value}"
