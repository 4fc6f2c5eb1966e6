"""What a policy makes the start of an attempt wait for: a window, an approval, a node without work. Pure."""

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from remediator.core import idle
from remediator.core.absence import NEVER_AWAY, Absences
from remediator.core.case import Case, Phase
from remediator.core.idle import Work
from remediator.core.policy import Approval, Mode, Policy, Urgency
from remediator.core.reasons import PAUSES, Reason
from remediator.core.window import Closed, InvalidWindow, Shut

NAMED = 5  # Pods in a message


class Gate(NamedTuple):
    """One thing that is waited for, and until when at the longest where that is known."""

    reason: Reason
    message: str
    until: datetime | None = None


def unapproved(case: Case, policy: Policy | None) -> bool:
    """Whether a person has to approve the case and has not. In DryRun there is nothing to approve.

    Nor is there in a case that a person has: it starts nothing, and a release disturbs nobody.
    """
    if (
        case.phase is Phase.ESCALATED
        or policy is None
        or policy.unreadable
        or policy.mode is Mode.DRY_RUN
        or policy.urgency is Urgency.NEVER
    ):
        return False
    return policy.approval is Approval.REQUIRED and not case.approved


def approval_needed(case: Case) -> str:
    """What a person reads who has to approve the case."""
    by = f"; spec.approved is false, set by {case.set_by.approved}" if case.set_by.approved else ""
    return f"policy {case.policy} needs an approval for each case{by}"


def outside_window(policy: Policy, shut: Shut | None) -> Iterator[Gate]:
    """Nothing of a policy starts while its windows are shut, or where nobody can tell when they open."""
    if isinstance(shut, Closed):
        yield Gate(Reason.OUTSIDE_WINDOW, f"no window of policy {policy.name} is open", shut.until)
    elif isinstance(shut, InvalidWindow):
        yield Gate(Reason.WINDOW_INVALID, f"policy {policy.name}, spec.{shut.field}: {shut.why}")


def gates(
    case: Case, policy: Policy, shut: Shut | None, work: Work | None, now: datetime, absences: Absences = NEVER_AWAY
) -> Iterator[Gate]:
    """All that the next start of a case waits for, its approval apart: that is one of what stops it.

    `work` is what was found on the node when it was looked at last; None where nobody has looked yet. `absences`:
    when nobody could act.
    """
    if policy.urgency is Urgency.NEVER:
        return
    yield from outside_window(policy, shut)
    if idle.waits(case, policy, now, absences) and (work is None or work.pods):
        stopped = any(block.reason in PAUSES for block in case.blocks)  # its time goes on when that ends
        until = None if stopped else idle.deadline(case, policy, now, absences)
        yield Gate(Reason.WAITING_FOR_IDLE, _at_work(case, work), until)


def _at_work(case: Case, work: Work | None) -> str:
    if work is None:
        return f"the Pods of {case.node} are about to be listed"
    more = f" and {len(work.pods) - NAMED} more" if len(work.pods) > NAMED else ""
    verb = "Pod works" if len(work.pods) == 1 else "Pods work"
    return f"{len(work.pods)} {verb} on {case.node} ({', '.join(work.pods[:NAMED])}{more})"
