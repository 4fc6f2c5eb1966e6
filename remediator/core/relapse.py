"""A fault that comes back soon after its case has recovered."""

from collections.abc import Iterable
from datetime import timedelta

from remediator.core.case import Attempt, AttemptOutcome, Case, Phase
from remediator.core.covers import Covers, covered
from remediator.core.policy import Policy
from remediator.core.reasons import Reason

AGAIN = timedelta(days=7)  # the second relapse within this time is told to a person


def followed(policy: Policy, case: Case, others: Iterable[Case]) -> Case | None:
    """The recovered case that this one follows within the window; None where it is no relapse."""
    before = _before(case, _of_policy(policy, case, others))
    return before[-1] if before and _soon(policy, case, before[-1]) else None


def earlier_relapse(policy: Policy, case: Case, others: Iterable[Case]) -> tuple[Case, ...]:
    """The cases that make this one the second relapse of the last 7 days, oldest first; empty where it is not."""
    before = _before(case, _of_policy(policy, case, others))
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
    used = min(max(_place(policy, attempt) for attempt in last.tries), len(policy.ladder) - 1)
    needless = covered(covers, done(last))
    above = range(used + 1, len(policy.ladder))
    return next((index for index in above if policy.ladder[index].operation not in needless), max(used, 0))


def done(case: Case | None) -> list[str]:
    """The operations that a case has carried out."""
    tries = case.tries if case else ()
    return [attempt.template for attempt in tries if attempt.outcome is AttemptOutcome.SUCCEEDED]


def _of_policy(policy: Policy, case: Case, others: Iterable[Case]) -> list[Case]:
    """The node's other cases under the policy that did something or went to a person, in the order of their ends."""
    same = [other for other in others if other.uid != case.uid and other.policy == policy.name and other.ended]
    counted = [other for other in same if other.tried or other.phase is Phase.ESCALATED]
    return sorted(counted, key=lambda other: (other.ended or other.created, other.name))


def _before(case: Case, others: list[Case]) -> list[Case]:
    """Those that had recovered when the case was opened, since a person has had the node last.

    Cancelled ones do not count: a user has ended them before anybody could see what they do.
    """
    earlier = [other for other in others if other.created <= case.created]
    row: list[Case] = []
    for other in earlier:
        if other.phase is Phase.ESCALATED:  # one that gave itself back has had no person
            row = row if other.reason in (Reason.NODE_GONE, Reason.RELEASED_HEALTHY) else []
        elif other.phase is Phase.RECOVERED:
            row.append(other)
    return row


def _soon(policy: Policy, case: Case, last: Case) -> bool:
    if policy.relapse is None or last.ended is None:
        return False
    return case.created - last.ended < policy.relapse


def _place(policy: Policy, attempt: Attempt) -> int:
    """The rung of an attempt in the ladder as it is now: an edit may have moved its operation."""
    operations = [rung.operation for rung in policy.ladder]
    if attempt.rung < len(operations) and operations[attempt.rung] == attempt.template:
        return attempt.rung
    return operations.index(attempt.template) if attempt.template in operations else attempt.rung
