"""Which cases that hold a node give it to one that goes first: those that only wait and disturbed nothing. Pure."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from remediator.core.case import AttemptOutcome, Block, Case, Phase
from remediator.core.health import Health, health_of
from remediator.core.node import Node
from remediator.core.policy import Policy, Urgency
from remediator.core.reasons import Reason

# What the policy of a case makes it wait for, or stops it with: it holds up no case of another policy. A user who holds
# the case itself wants it kept, so that is none of them; the others hold each case of the node, or of the fleet.
OF_POLICY = frozenset(
    {
        Reason.OUTSIDE_WINDOW,
        Reason.WINDOW_INVALID,
        Reason.APPROVAL_NEEDED,
        Reason.WAITING_FOR_IDLE,
        Reason.POLICY_PAUSED,
        Reason.DRY_RUN,
        Reason.TICKET_ONLY,
        Reason.NEW_CRITERION,
        Reason.CRITERION_MUTED,
    }
)
# What holds one case alone, whether a policy or a user says so.
OF_CASE = OF_POLICY | {
    Reason.HELD_BY_USER,
    Reason.POLICY_UNREADABLE,
    Reason.POLICY_FAILING,
    Reason.COOLDOWN,
    Reason.UNKNOWN_OPERATION,
    Reason.NO_NODE_FOR_API_PODS,
    Reason.NOT_ENOUGH_SPARE_GPUS,
    Reason.NOT_SELECTED,
    Reason.NEEDS_KUBELET,
    Reason.NOT_CONFIRMED,
    Reason.CONFIRMATION_UNKNOWN,
    Reason.SHARED_CAUSE,
    Reason.BLAST_RADIUS,
    Reason.BLAST_RADIUS_UNKNOWN,
}


def outranks(policy: Policy, other: Policy) -> bool:
    """Whether a fault of this policy goes before one of the other: the more severe first, and of two that are equally
    severe the one whose repair is due now, where the other waits for its node to be idle.
    """
    if policy.severity is not other.severity:
        return policy.severity.rank < other.severity.rank
    return policy.urgency is Urgency.NOW and other.urgency is Urgency.WHEN_IDLE


def gives_way(case: Case, blocks: Sequence[Block]) -> bool:
    """Whether a case that holds its node, and that these blocks hold, gives it to one that goes first and may act.

    One that a person has approved does not: what they have approved is what is done next.
    """
    if case.manual or case.approved or case.unreadable or not case.open or case.phase is Phase.ESCALATED:
        return False
    idle = all(attempt.outcome is not AttemptOutcome.OPEN and not attempt.counts for attempt in case.attempts)
    return idle and bool(blocks) and all(block.reason in OF_POLICY for block in blocks)


def takes_over(blocks: Sequence[Block], policy: Policy, holders: Iterable[tuple[Case, Policy | None]]) -> bool:
    """Whether nothing but a case that would give way holds a case of this policy, as far as its own blocks say."""
    if not _lacks_the_node_alone(blocks):
        return False
    claimed = [(case, theirs) for case, theirs in holders if case.claimed and case.open]
    return bool(claimed) and all(
        theirs is not None and outranks(policy, theirs) and gives_way(case, case.blocks) for case, theirs in claimed
    )


def gave_way(case: Case) -> bool:
    """Whether the case has ended so."""
    return case.ended is not None and case.reason is Reason.GAVE_WAY


def unanswered(case: Case) -> bool:
    """Whether the fault of an ended case has had no case yet: it gave way, or ended by itself, the node untouched."""
    by_itself = case.started is None and case.reason in (Reason.CLEARED_ITSELF, Reason.POLICY_MISSING)
    return gave_way(case) or (case.ended is not None and by_itself)


def held_alone(case: Case) -> bool:
    """Whether something holds this case that would not hold one of another policy on the same node."""
    return any(block.reason in OF_CASE for block in case.blocks)


def outranked_by(
    case: Case,
    policy: Policy,
    blocks: Sequence[Block],
    others: Iterable[tuple[Case, Policy]],
    node: Node,
    now: datetime,
) -> Case | None:
    """The case of the node for which this one gives way; None where it need not.

    It is of a policy that goes first, its fault shows now, and nothing but this case holds it, as its own status says.
    """
    if not case.claimed or not gives_way(case, blocks):
        return None
    waiting = (
        (theirs.severity.rank, other.name, other)
        for other, theirs in others
        if outranks(theirs, policy) and theirs.acts and _waits_for_the_node(other, case)
        if health_of(node, theirs, now) is Health.UNHEALTHY
    )
    first = min(waiting, key=lambda item: item[:2], default=None)
    return first[2] if first else None


def _waits_for_the_node(other: Case, case: Case) -> bool:
    """Whether nothing but the case that holds the node keeps another one from it."""
    same = other.uid != case.uid and other.node_uid == case.node_uid and not other.manual
    free = other.open and not (other.claimed or other.hold or other.deleting)
    return same and free and _lacks_the_node_alone(other.blocks)


def _lacks_the_node_alone(blocks: Sequence[Block]) -> bool:
    return [block.reason for block in blocks] == [Reason.NODE_BUSY]
