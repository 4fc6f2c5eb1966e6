"""How long things took, by what a case tells of itself. Pure."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from remediator.core.case import Case, Operation, Phase
from remediator.core.reasons import CHOSEN, Reason

# The phase that begins with a line of the timeline; the other lines change no phase.
PHASES: Mapping[Reason, Phase] = {
    Reason.CLAIMED: Phase.DRAINING,
    Reason.STARTED: Phase.DRAINING,
    Reason.DRAINING: Phase.DRAINING,
    Reason.OPERATING: Phase.OPERATING,
    Reason.SUCCEEDED: Phase.VERIFYING,
    Reason.FAILED: Phase.VERIFYING,
    Reason.REFUSED: Phase.VERIFYING,
    Reason.STOPPED: Phase.VERIFYING,
    Reason.LADDER_EXHAUSTED: Phase.ESCALATED,
    Reason.ATTEMPTS_SPENT: Phase.ESCALATED,
    Reason.VERIFY_TIMEOUT: Phase.ESCALATED,
}


def phase_since(case: Case) -> datetime:
    """When the case came into its phase; when it was opened, where its timeline does not tell."""
    since, phase = case.created, Phase.NEW
    for event in case.timeline:
        begins = PHASES.get(event.reason, phase)
        if begins is not phase:
            since, phase = event.at, begins
    return since


def held_since(case: Case, reason: Reason) -> datetime:
    """Since when this reason holds the case: no attempt and no other phase has begun since."""
    since = None
    for event in reversed(case.timeline):
        if event.reason in PHASES:
            break
        since = event.at if event.reason is reason else since
    return since or phase_since(case)


def waiting_since(case: Case, now: datetime) -> datetime:
    """Since when the case has been held without a break, whatever the reasons, by none that a user has chosen.

    Where such a one is still shown, it has only just ended.
    """
    if any(block.reason in CHOSEN for block in case.blocks):
        return now
    since = None
    for event in reversed(case.timeline):
        if event.reason in PHASES or event.reason in CHOSEN or event.reason is Reason.RESUMED:
            return since or event.at
        since = event.at
    return phase_since(case)


def drained_for(operations: Iterable[Operation]) -> timedelta:
    """How long the operations of a case drained in all."""
    return sum((_drained(operation) for operation in operations), timedelta(0))


def _drained(operation: Operation) -> timedelta:
    end = operation.intent_at or operation.finished
    if operation.drain_started is None or end is None:
        return timedelta(0)
    return max(end - operation.drain_started, timedelta(0))


def last_fault(cases: Iterable[Case], node_uid: str) -> datetime | None:
    """When the newest case of a node ended; None where it has had none, or one is open."""
    ends = [case.ended for case in cases if case.node_uid == node_uid]
    ended = [end for end in ends if end is not None]
    return max(ended) if ended and len(ended) == len(ends) else None
