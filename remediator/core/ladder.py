"""Which operation comes next: mildest first, each rung as often as it allows, then escalation."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from remediator.core.case import MOST_ATTEMPTS, Attempt, AttemptOutcome, Case
from remediator.core.policy import Policy
from remediator.core.reasons import Reason

MOST_IDLE = 3  # attempts of one case in which nothing ran
FOLLOW_UPS = 32  # for which a case keeps room: twice what a template may want after it


@dataclass(frozen=True, slots=True)
class Next:
    """The rung to try now, as an index into the ladder, and which try of the case that would be, from 1."""

    rung: int
    attempt: int


def next_rung(policy: Policy, case: Case, others: Iterable[Case], now: datetime) -> Next | Reason:
    """What to try next in `case`, or why nothing is left.

    A refused operation is not tried again on its rung. An attempt in which nothing ran counts as none, but a person
    must look where that goes on, and where users have stopped so many that the case has no room for more. Attempts of
    the node's other cases under the same policy count towards `attempts.max` while they are inside the window, so that
    the cases of a flapping node escalate.
    """
    since = now - policy.attempts_window
    before = [other for other in others if other.uid != case.uid and other.policy == case.policy]
    recent = sum(attempt.started > since for other in before for attempt in other.tries)
    idle = sum(not attempt.counts for attempt in case.counted)
    full = len(case.attempts) >= MOST_ATTEMPTS - FOLLOW_UPS
    if recent + len(case.tries) >= policy.attempts_max or idle >= MOST_IDLE or full:
        return Reason.ATTEMPTS_SPENT
    for index in range(case.rung, len(policy.ladder)):
        tried = [attempt for attempt in case.tries if attempt.rung == index]
        if len(tried) < policy.ladder[index].attempts and not _refused(tried):
            return Next(index, len(case.tries) + 1)
    return Reason.LADDER_EXHAUSTED


def follow_up(case: Case, after: Sequence[str]) -> str | None:
    """The first of the templates `after` that has not followed the newest try up; None where nothing is left to do."""
    newest = case.tries[-1] if case.tries else None
    done = [attempt.template for attempt in case.counted if newest and attempt.follows == newest.operation]
    return after[len(done)] if newest and len(done) < len(after) else None


def _refused(tried: list[Attempt]) -> bool:
    return any(attempt.outcome is AttemptOutcome.REFUSED for attempt in tried)
