"""A fault that comes back soon after its case has recovered."""

from collections.abc import Iterable, Iterator
from datetime import timedelta
from operator import attrgetter

from remediator.core.case import Attempt, AttemptOutcome, Case, Phase
from remediator.core.covers import Covers, covered
from remediator.core.policy import Policy
from remediator.core.reasons import Reason

# Each look-up of a member takes Python a fifth of a microsecond; these are asked for in every decision.
_SUCCEEDED, _CURED, _HANDED_OVER = AttemptOutcome.SUCCEEDED, Phase.RECOVERED, Phase.ESCALATED
AGAIN = timedelta(days=7)  # the second relapse within this time is told to a person


def followed(policy: Policy, case: Case, others: Iterable[Case]) -> Case | None:
    """The recovered case that this one follows within the window; None where it is no relapse."""
    if policy.relapse is None:
        return None
    last = next(_recovered(policy, case, others), None)
    return last if last and _soon(policy, case, last) else None


def earlier_relapse(policy: Policy, case: Case, others: Iterable[Case]) -> tuple[Case, ...]:
    """The cases that make this one the second relapse of the last 7 days, oldest first; empty where it is not."""
    before = [*_recovered(policy, case, others)][::-1]
    if not before or not _soon(policy, case, before[-1]):
        return ()
    for index in range(len(before) - 1, 0, -1):
        if case.created - before[index].created < AGAIN and _soon(policy, before[index], before[index - 1]):
            return tuple(before[index - 1 :])
    return ()


def first_rung(policy: Policy, last: Case, covers: Covers) -> int:
    """Where a relapse starts: above the highest rung that the last case used and all that it has covered.

    Where there is no such rung, on the one that the last case used.
    """
    ladder = policy.ladder
    used = min(max([_place(policy, attempt) for attempt in last.operated]), len(ladder) - 1)
    needless = covered(covers, done(last))
    for index in range(used + 1, len(ladder)):
        if ladder[index].operation not in needless:
            return index
    return max(used, 0)


def done(case: Case | None) -> list[str]:
    """The operations that a case has carried out."""
    attempts = case.attempts if case else ()
    return [attempt.template for attempt in attempts if attempt.outcome is _SUCCEEDED and attempt.is_try]


def given_back(case: Case) -> bool:
    """Whether a person had the node, and has given it back: not one that was only set up anew, or gave itself back."""
    return case.phase is _HANDED_OVER and case.reason not in (Reason.NODE_GONE, Reason.RELEASED_HEALTHY)


def _recovered(policy: Policy, case: Case, others: Iterable[Case]) -> Iterator[Case]:
    """The node's other cases under the policy that had done something and recovered when this one was opened.

    The one that ended last comes first, and none from before a person has had the node. Cancelled ones do not count: a
    user has ended them before anybody could see what they do. Nor do those in which only drains ran.
    """
    name, uid, made = policy.name, case.uid, case.created
    earlier = [
        other for other in others if other.ended and other.policy == name and other.uid != uid and other.created <= made
    ]
    for other in sorted(earlier, key=attrgetter("ended", "name"), reverse=True):
        if given_back(other):
            return
        if other.phase is _CURED and other.has_operated:
            yield other


def _soon(policy: Policy, case: Case, last: Case) -> bool:
    if policy.relapse is None or last.ended is None:
        return False
    return case.created - last.ended < policy.relapse


def _place(policy: Policy, attempt: Attempt) -> int:
    """The rung of an attempt in the ladder as it is now: an edit may have moved its operation."""
    rung, ladder = attempt.rung, policy.ladder
    if rung < len(ladder) and ladder[rung].operation == attempt.template:
        return rung
    return next((place for place, other in enumerate(ladder) if other.operation == attempt.template), rung)
