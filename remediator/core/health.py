"""What a node's Conditions prove: that it is unhealthy, that it is healthy, or nothing."""

from collections.abc import Sequence
from datetime import datetime
from enum import Enum, auto

from remediator.core.idle_result import IDLE_TEST_FAILED
from remediator.core.node import Node, Status
from remediator.core.policy import Clause, Policy
from remediator.core.trust import FAR, ignored, nothing_to_say, silence, timely
from remediator.core.writers import EVENT, counted, never_counted


class Health(Enum):
    """What one condition, or several, prove of the node."""

    UNHEALTHY = auto()
    UNKNOWN = auto()
    HEALTHY = auto()


# Each look-up of a member takes Python a fifth of a microsecond; these are asked for in every decision.
_UNHEALTHY, _UNKNOWN, _HEALTHY = Health.UNHEALTHY, Health.UNKNOWN, Health.HEALTHY
_TRUE, _FALSE, _UNSAID = Status.TRUE, Status.FALSE, Status.UNKNOWN


def health_of(node: Node, policy: Policy, now: datetime) -> Health:
    """What `judge` says of the node's health, without why: most nodes are only asked whether they are well."""
    if policy.unreadable:
        return _UNKNOWN
    if len(policy.when) == 1 and len(policy.when[0].clauses) == 1:  # as of most policies
        return clause_health(node, policy.when[0].clauses[0], now)
    return worst([entry_health([clause_health(node, clause, now) for clause in when.clauses]) for when in policy.when])


def worst(entries: Sequence[Health]) -> Health:
    if _UNHEALTHY in entries:
        return _UNHEALTHY
    return _UNKNOWN if _UNKNOWN in entries else _HEALTHY


def entry_health(clauses: Sequence[Health]) -> Health:
    """Clauses are AND-ed: one that is proven not met settles it, else one that is unknown leaves it open."""
    if _HEALTHY in clauses:
        return _HEALTHY
    return _UNKNOWN if _UNKNOWN in clauses else _UNHEALTHY


def shows(node: Node, clause: Clause, now: datetime) -> bool:
    """Whether the node has what the clause asks for, by evidence that counts."""
    return clause_health(node, clause, now) is _UNHEALTHY


def clause_health(node: Node, clause: Clause, now: datetime) -> Health:
    """One clause. UNKNOWN where the condition is absent, Unknown, stale, or from a detector that has stopped."""
    condition = node.conditions.get(clause.condition)
    well = condition is None or condition.status is _FALSE
    if well and clause.status is _TRUE and _nothing_counted(node, clause.condition):
        return _UNKNOWN if clause.reporter and silence(node, clause.reporter, now) else _HEALTHY
    if condition is None:
        return _HEALTHY if clause.status is _TRUE and nothing_to_say(node, clause, now) else _UNKNOWN
    if condition.status is _UNSAID:  # asked for by name: a kubelet that does not report is the fault
        asked = clause.status is _UNSAID and timely(condition, now)
        return _UNHEALTHY if asked else _UNKNOWN
    ahead = condition.since > now and condition.since - now >= FAR  # the heartbeat lies nearer, or is ignored
    if ahead or ignored(node, clause, condition, now):
        return _UNKNOWN
    met = condition.status is clause.status and (not clause.reasons or condition.reason in clause.reasons)
    return _UNHEALTHY if met else _HEALTHY  # as `met_by`, without the call: this is asked most of all


def _nothing_counted(node: Node, name: str) -> bool:
    """Whether nothing was of what the controller counts: no word of it says so, or a False of any age. Of Events only
    a fresh one does: while the controller watches them it says so again and again. Of a test that was passed none does
    while the kubelet does not report.
    """
    if name in node.conditions:
        untold = name == IDLE_TEST_FAILED and node.ready is _UNSAID
        return counted(name) and not name.startswith(EVENT) and not untold
    return never_counted(name, node.conditions)
