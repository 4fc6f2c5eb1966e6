"""Which operation comes next: mildest first, each rung as often as it allows, then escalation."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from remediator.core import names
from remediator.core.case import MOST_ATTEMPTS, Attempt, AttemptOutcome, Case, Phase
from remediator.core.covers import NOTHING, Covers, covered
from remediator.core.policy import Policy
from remediator.core.reasons import Reason
from remediator.core.relapse import done, first_rung, followed

# Each look-up of a member takes Python a fifth of a microsecond; these are asked for in every decision.
_SUCCEEDED, _REFUSED = AttemptOutcome.SUCCEEDED, AttemptOutcome.REFUSED
MOST_IDLE = 3  # attempts of one case in which nothing ran
FOLLOW_UPS = 32  # for which a case keeps room: twice what a template may want after it


@dataclass(frozen=True, slots=True)
class Next:
    """The rung to try now, as an index into the ladder, and which try of the case that would be, from 1."""

    rung: int
    attempt: int


def next_rung(
    policy: Policy, case: Case, others: Iterable[Case], now: datetime, covers: Covers = NOTHING
) -> Next | Reason:
    """What to try next in `case`, or why nothing is left.

    A refused operation is not tried again on its rung. An attempt in which nothing ran counts as none, but a person
    must look where that goes on, and where users have stopped so many that the case has no room for more. Attempts of
    the node's other cases under the same policy count towards `attempts.max` while they are inside the window, so that
    the cases of a flapping node escalate. A relapse starts above what its last case has tried, and what is covered by
    an operation that was done is not tried further up. Nothing is tried on a node that works on without its GPU.
    A case that a user lets try again begins on the rung that it came to last, with all tries of that rung; on the last
    one where an edit has made the ladder shorter.
    """
    since, tries = now - policy.attempts_window, case.tries if case.attempts else ()
    uid, name = case.uid, policy.name
    before = [other for other in others if other.policy == name and other.uid != uid and other.takes_capacity]
    most = len(tries) + sum([len(other.attempts) or 1 for other in before])  # nearly always far from the bound
    fresh = case.attempts[case.retried_after :]
    recent = sum(spent(other, since) for other in before) if most >= policy.attempts_max else 0
    idle = sum([not (attempt.counts or attempt.stopped or attempt.probe) for attempt in fresh])
    if recent + len(tries) >= policy.attempts_max or idle >= MOST_IDLE or not has_room(case):
        return Reason.ATTEMPTS_SPENT
    if any(map(_isolated, tries)):
        return Reason.LADDER_EXHAUSTED
    last = followed(policy, case, before)
    begin = case.rung if tries or last is None else max(case.rung, first_rung(policy, last, covers))
    begin = min(begin, max(len(policy.ladder) - 1, 0)) if case.retried else begin
    for index in range(begin, len(policy.ladder)):
        if index > begin and policy.ladder[index].operation in covered(covers, [*done(case), *done(last)]):
            continue
        tried = [attempt for attempt in fresh if attempt.rung == index and attempt.is_try]
        if len(tried) < policy.ladder[index].attempts and not _refused(tried):
            return Next(index, len(tries) + 1)
    return Reason.LADDER_EXHAUSTED


def has_room(case: Case) -> bool:
    """Whether the status of the case has room for one more try, and for what may complete it."""
    return len(case.attempts) < MOST_ATTEMPTS - FOLLOW_UPS


def spent(case: Case, since: datetime) -> int:
    """How many attempts an earlier case counts for: its tries since then.

    One that took the node and recovered though nothing was tried counts for one: a node that boots by itself, or whose
    fault comes and goes, would be taken out of service for ever. What users stopped counts for nothing.
    """
    if tries := case.tries:
        return len(tries) if tries[0].started > since else sum(attempt.started > since for attempt in tries)
    by_itself = case.phase is Phase.RECOVERED and not any(attempt.stopped for attempt in case.attempts)
    return int(by_itself and case.started is not None and case.started > since)


def follow_up(case: Case, after: Sequence[str]) -> str | None:
    """The first of the templates `after` that has not followed the newest try up; None where nothing is left to do."""
    newest = next(reversed(case.tries), None)
    done = [attempt.template for attempt in case.counted if newest and attempt.follows == newest.operation]
    return after[len(done)] if newest and len(done) < len(after) else None


def _isolated(attempt: Attempt) -> bool:
    """Whether the unhealthy GPU alone was taken out, and the node was given back to work: new Pods come."""
    return attempt.template == names.ISOLATE_TEMPLATE and attempt.outcome is _SUCCEEDED


def _refused(tried: list[Attempt]) -> bool:
    return any(attempt.outcome is _REFUSED for attempt in tried)
