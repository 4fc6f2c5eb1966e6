"""Which cases want a ticket, and what such a ticket is about. Pure; each choice is one expression."""

from remediator.core import keep_out
from remediator.core.case import Block, Case, Phase
from remediator.core.correlation import shared_cause
from remediator.core.policy import Mode, Policy, TicketWhen
from remediator.core.reasons import Reason
from remediator.core.text import one_line
from remediator.core.ticket import About, Subject

# A case that is held for these waits for a user at once; one that is held for others, when that has lasted too long.
NEEDS_USER = frozenset(
    {
        Reason.TICKET_ONLY,
        Reason.SHARED_CAUSE,
        Reason.CRITERION_MUTED,
        Reason.ZONE_UNREACHABLE,
        Reason.QUARANTINE_FULL,
        Reason.POLICY_FAILING,
        Reason.BUDGET_FAILING,
        Reason.UNCORDONED_BY_USER,
        Reason.APPROVAL_NEEDED,
        Reason.BLAST_RADIUS,
    }
)


# These hold many cases at once, which are told in one ticket.
OF_MANY = frozenset(
    {
        Reason.BUDGET_SPENT,
        Reason.BUDGET_UNREADY,
        Reason.BUDGET_REFUSED,
        Reason.GROUP_UNKNOWN,
        Reason.QUARANTINE_FULL,
        Reason.POLICY_FAILING,
        Reason.BUDGET_FAILING,
        Reason.BREAKER_OPEN,
        Reason.NEW_CRITERION,
        Reason.CRITERION_MUTED,
        Reason.UNKNOWN_OPERATION,
        Reason.CONFIRMATION_UNKNOWN,
        Reason.ZONE_UNREACHABLE,
        Reason.NEEDS_KUBELET,
        Reason.IMAGE_NOT_PULLED,
        Reason.CONTAINER_NOT_CREATED,
        Reason.POD_NOT_PLACED,
        Reason.POD_START_UNKNOWN,
        Reason.WINDOW_INVALID,
    }
)


def needs_user(block: Block) -> bool:
    """Whether what holds a case waits for a user."""
    return block.reported or block.reason in NEEDS_USER


def of_case(case: Case) -> Subject:
    """What a case is about: what it shares with others where that holds it, or did until its end; else its node."""
    common = shared_cause(case)
    reasons = [block.reason for block in case.blocks] if case.open else [event.reason for event in case.timeline]
    if common and Reason.SHARED_CAUSE in reasons:
        message = one_line(common.text, 4096)
        return Subject(About.CAUSE, policy=common.policy, condition=common.condition, message=message)
    many = next((block.reason for block in case.blocks if block.reason in OF_MANY and needs_user(block)), None)
    if many and case.open and case.trigger:
        return Subject(About.CAUSE, policy=case.policy, condition=case.trigger.condition, message=f"held: {many.value}")
    return Subject(About.NODE, node=case.node)


def wants(case: Case, policy: Policy | None) -> bool:
    """Whether a case is to have a ticket. Without its policy nobody can tell: nothing is opened for it.

    One in which a user keeps the node has no policy, and wants a ticket once that time is over.
    """
    if keep_out.is_overdue(case):
        return True
    if policy is None or not case.open or policy.mode is Mode.DRY_RUN:
        return False
    if policy.ticket is TicketWhen.ON_ESCALATION:
        return case.phase is Phase.ESCALATED or any(needs_user(block) for block in case.blocks)
    return policy.ticket is TicketWhen.ALWAYS and case.phase is not Phase.NEW  # the controller has not judged it yet


def keeps_open(case: Case, policy: Policy | None) -> bool:
    """Whether a case keeps an open ticket open: our own cordon resolves alerts while the node is still unhealthy."""
    return case.open and (policy is None or policy.mode is not Mode.DRY_RUN)


def concerns(case: Case, policy: Policy | None, subject: Subject) -> bool:
    """Whether a case stands in the ticket of this subject. Without its policy it counts wherever it may belong."""
    if policy is None:
        return case.node == subject.node or case.policy == subject.policy
    return of_case(case) == subject
