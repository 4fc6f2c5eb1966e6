"""What is so of a node whoever asks, by its conditions and its cases. Pure: facts in, one reason out.

Why each row is at its place:

* A claim has the highest priority: a case works on the node, whatever its conditions are now.
* A node that waits for a budget or the breaker is let through, with the lowest score. When a budget is spent, many
  nodes wait at once, for hours. Refusing them all would remove their capacity in addition to that of the nodes under
  repair. The taint of a waiting node is only a preference, too.
* Any other open case, and any condition of a policy that holds, gives `Unhealthy`: at once, before the tolerance has
  passed. The tolerance decides when Remediator may disturb what runs on the node. Sending new work to another node
  disturbs nothing and ends with the condition. If nobody will repair the node (policy paused, held by a user,
  excluded), this is the only thing that Remediator can do.
* A policy in DryRun changes nothing, so what it finds is let through after the others.
* A condition that only escalates to a person usually has its cause outside the node, for example a dead file server
  that every node mounts. Such a node is let through after the others. Otherwise one server, or one wrong policy, could
  leave no node for any Pod.
* Unknown health is no fault: the node is let through, after the healthy ones. It does not end a fault either: an open
  case keeps its verdict until it ends.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime

from remediator.core.health import Health, health_of
from remediator.core.node import Node, Status
from remediator.scheduler.health.case_summary import CaseSummary, repaired_recently
from remediator.scheduler.health.policy_index import PolicyIndex
from remediator.scheduler.health.silence import silent
from remediator.scheduler.reasons import VerdictReason

MAINTENANCE_PLANNED = "MaintenancePlanned"  # a Condition that no detector of ours writes


def health(node: Node, cases: Iterable[CaseSummary], policies: PolicyIndex, now: datetime) -> VerdictReason:
    """What is so of a node whoever asks: the first row that holds. FIT where none does."""
    mine = [case for case in cases if case.node_uid == node.uid]
    return _held(node, mine) or _proven(node, mine, policies, now)


def _held(node: Node, mine: Sequence[CaseSummary]) -> VerdictReason | None:
    """What outranks all that conditions of policies prove, which takes longer to find out."""
    rows = (
        (any(case.escalated for case in mine), VerdictReason.QUARANTINED),
        (bool(node.case_uid) or any(case.claimed for case in mine), VerdictReason.CLAIMED),
        (node.unschedulable and bool(node.cordoned_by), VerdictReason.CORDONED),
        ("Ready" in node.conditions and node.ready is not Status.TRUE, VerdictReason.NOT_READY),
        (node.degraded or any(case.waits for case in mine), VerdictReason.WAITING),
    )
    return next((reason for holds, reason in rows if holds), None)


def _planned(node: Node) -> bool:
    """Whether somebody else says, in the word of Kubernetes 1.37, that maintenance of the node is near."""
    condition = node.conditions.get(MAINTENANCE_PLANNED)
    return condition is not None and condition.status is Status.TRUE


def _proven(node: Node, mine: Sequence[CaseSummary], policies: PolicyIndex, now: datetime) -> VerdictReason:
    """What the conditions of policies prove."""
    selecting = policies.selecting(node)
    healths = [(policy.name, health_of(node, policy, now)) for policy in selecting]
    unhealthy = {name for name, health in healths if health is Health.UNHEALTHY}
    unknown = any(health is Health.UNKNOWN for _, health in healths)
    telling = (case for case in mine if case.open and not case.only_escalates and not case.manual)
    refusing = any(case.policy not in policies.only_scoring for case in telling)
    repaired = unhealthy & policies.repairing
    rows = (
        (bool(repaired - policies.only_scoring) or refusing, VerdictReason.UNHEALTHY),
        (bool(repaired), VerdictReason.ONLY_SCORED),
        (bool(unhealthy), VerdictReason.WAITING),
        (any(case.open for case in mine) or _planned(node), VerdictReason.WAITING),
        (unknown and silent(node, selecting, now), VerdictReason.DETECTORS_SILENT),
        (unknown or "Ready" not in node.conditions, VerdictReason.HEALTH_UNKNOWN),
        (any(repaired_recently(case, now) for case in mine), VerdictReason.REPAIRED),
    )
    return next((reason for holds, reason in rows if holds), VerdictReason.FIT)
