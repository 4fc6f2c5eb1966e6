"""A Pod of an operation that never started, through no fault of the node: when the case tries again."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from remediator.core.case import Attempt, AttemptOutcome, Case
from remediator.core.reasons import NEVER_STARTED, Reason

# So much later the next attempt is made: twice as long after each that follows, at most an hour.
PAUSE, LONGEST = timedelta(minutes=10), timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Unstarted:
    """Why the newest attempt never started, and until when the next one waits."""

    reason: Reason
    message: str
    until: datetime


def unstarted(case: Case, now: datetime) -> Unstarted | None:
    """What holds a case whose newest attempt had a Pod that never started; None where nothing does, or not any more."""
    run = _newest_unstarted(case.attempts)
    last = run[0] if run else None
    if last is None or last.finished is None:
        return None
    pause = PAUSE * float(2 ** min(len(run) - 1, 10))
    until = last.finished + min(pause, LONGEST)
    return Unstarted(Reason(last.reason), f"{last.template}: {last.message}", until) if now < until else None


def _newest_unstarted(attempts: Sequence[Attempt]) -> list[Attempt]:
    """The newest attempts in a row that never started, newest first."""
    run: list[Attempt] = []
    for attempt in reversed(attempts):
        cancelled = attempt.outcome is AttemptOutcome.CANCELLED
        if not (cancelled and attempt.reason in NEVER_STARTED):
            break
        run.append(attempt)
    return run
