"""The verdict on one node for one Pod, and its reason. Pure: facts in, one reason out.

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
* Where health only scores (see fail_open.py), so are the nodes that would be refused for their health.
* A condition that only escalates to a person usually has its cause outside the node, for example a dead file server
  that every node mounts. Such a node is let through after the others. Otherwise one server, or one wrong policy, could
  leave no node for any Pod.
* Unknown health is no fault: the node is let through, after the healthy ones. It does not end a fault either: an open
  case keeps its verdict until it ends.
* Pods of a DaemonSet are let through to any node: each has only one node, and the detectors that must show the
  recovery of the node are such Pods.
* A node that we do not know is let through: kube-scheduler may have seen it before us, or it is a simulated one.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from remediator.core import evidence
from remediator.core.case import Case, Phase
from remediator.core.evidence import Health
from remediator.core.guard import waits_in_queue
from remediator.core.node import Gpus, Node, Status
from remediator.core.policy import Mode, Policy, Urgency
from remediator.core.reasons import Reason

RECENT = timedelta(hours=72)  # how long a repair is remembered: the default window of a relapse


class VerdictReason(StrEnum):
    """One word for each thing that can be said of a node; the same in answers, metrics and `explain`."""

    FIT = "Fit"
    REPAIRED = "RecentlyRepaired"
    HEALTH_UNKNOWN = "HealthUnknown"
    UNKNOWN_NODE = "UnknownNode"
    WAITING = "WaitingForRepair"
    ONLY_SCORED = "UnhealthyOnlyScored"
    NO_FREE_GPUS = "NoFreeGpus"
    TOO_FEW_GPUS = "TooFewGpus"
    UNHEALTHY = "Unhealthy"
    NOT_READY = "NotReady"
    CORDONED = "Cordoned"
    CLAIMED = "UnderRepair"
    QUARANTINED = "Quarantined"


# What the scheduler shows of a refused node. It counts nodes by text and joins the texts with commas, so no text may
# name a node or a number, or hold a comma.
UNRESOLVABLE: Mapping[VerdictReason, str] = {  # evicting Pods would not help
    VerdictReason.QUARANTINED: "node(s) quarantined by Remediator until a person releases them",
    VerdictReason.CLAIMED: "node(s) under repair by Remediator",
    VerdictReason.CORDONED: "node(s) cordoned by Remediator",
    VerdictReason.NOT_READY: "node(s) not ready",
    VerdictReason.UNHEALTHY: "node(s) found unhealthy by Remediator",
    VerdictReason.TOO_FEW_GPUS: "node(s) with too few GPUs in all",
}
HEALTH = frozenset({VerdictReason.NOT_READY, VerdictReason.UNHEALTHY})  # refused only while health refuses
FAILED: Mapping[VerdictReason, str] = {VerdictReason.NO_FREE_GPUS: "node(s) with too few free GPUs"}


@dataclass(frozen=True, slots=True)
class CaseSummary:
    """One case as far as placing goes. `repaired` is when operations ended it well."""

    name: str
    node: str
    node_uid: str
    policy: str
    open: bool
    claimed: bool
    escalated: bool
    waits: bool
    only_escalates: bool  # nothing will be done to the node
    repaired: datetime | None


def summary(case: Case) -> CaseSummary:
    """The little that must be kept of a case."""
    waits = case.open and not case.claimed and waits_in_queue(case.blocks)
    repaired = case.ended if case.phase is Phase.RECOVERED and case.attempts else None
    return CaseSummary(
        name=case.name,
        node=case.node,
        node_uid=case.node_uid,
        policy=case.policy,
        open=case.open,
        claimed=case.open and case.claimed,
        escalated=case.open and case.phase is Phase.ESCALATED,
        waits=waits,
        only_escalates=any(block.reason is Reason.TICKET_ONLY for block in case.blocks),
        repaired=repaired,
    )


def repaired_recently(case: CaseSummary, now: datetime) -> bool:
    """Whether operations ended the case well not long ago."""
    return case.repaired is not None and now - case.repaired < RECENT


def counts(case: CaseSummary, now: datetime) -> bool:
    """Whether placing goes by the case."""
    return case.open or repaired_recently(case, now)


def health(node: Node, cases: Iterable[CaseSummary], policies: Iterable[Policy], now: datetime) -> VerdictReason:
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


def _proven(node: Node, mine: Sequence[CaseSummary], policies: Iterable[Policy], now: datetime) -> VerdictReason:
    """What the conditions of policies prove."""
    policies = list(policies)
    selecting = [policy for policy in policies if policy.selects(node)]
    healths = [(_refuses(policy), policy.urgency, evidence.health(node, policy, now)) for policy in selecting]
    unknown = any(health is Health.UNKNOWN for _, _, health in healths)
    only_scored = {policy.name for policy in policies if not _refuses(policy)}
    refusing = any(case.open and not case.only_escalates and case.policy not in only_scored for case in mine)
    rows = (
        ((True, Urgency.NOW, Health.UNHEALTHY) in healths or refusing, VerdictReason.UNHEALTHY),
        ((False, Urgency.NOW, Health.UNHEALTHY) in healths, VerdictReason.ONLY_SCORED),
        (any(health is Health.UNHEALTHY for _, _, health in healths), VerdictReason.WAITING),
        (any(case.open for case in mine), VerdictReason.WAITING),
        (unknown or "Ready" not in node.conditions, VerdictReason.HEALTH_UNKNOWN),
        (any(repaired_recently(case, now) for case in mine), VerdictReason.REPAIRED),
    )
    return next((reason for holds, reason in rows if holds), VerdictReason.FIT)


def _refuses(policy: Policy) -> bool:
    """Whether what the policy finds keeps Pods off: one in DryRun changes nothing, so it only scores."""
    return policy.mode is not Mode.DRY_RUN


class NodeState(NamedTuple):
    """One node: what is so of its health, how many GPUs it has and how many of them Pods hold."""

    health: VerdictReason
    total: Gpus = ()
    used: Gpus = ()

    def of(self, gpus: Gpus) -> list[tuple[int, int, int]]:
        """(total, used, asked) of each resource that is asked for and that the node lists."""
        total, used = dict(self.total), dict(self.used)
        return [(total[name], used.get(name, 0), count) for name, count in gpus if name in total]

    def free(self) -> dict[str, int]:
        """The GPUs that nobody holds, by resource."""
        used = dict(self.used)
        return {name: total - used.get(name, 0) for name, total in self.total}


def schedulable_again(old: NodeState, new: NodeState) -> bool:
    """Whether some Pod that the old row refused may be let through by the new one."""
    if new.health in UNRESOLVABLE:
        return False
    return old.health in UNRESOLVABLE or any(free > old.free().get(name, 0) for name, free in new.free().items())


class Shape(NamedTuple):
    """All that a verdict depends on in a Pod."""

    gpus: Gpus = ()
    daemon: bool = False


STRANGER = NodeState(VerdictReason.UNKNOWN_NODE)


def verdict(row: NodeState, shape: Shape, only_scores: bool = False) -> VerdictReason:
    """What is said of the node for Pods of this shape. A resource that the node does not list is not ours to judge.

    `only_scores`: health refuses nothing now.
    """
    reason = VerdictReason.FIT if shape.daemon else row.health
    if only_scores and reason in HEALTH:
        reason = VerdictReason.ONLY_SCORED
    if reason in UNRESOLVABLE:
        return reason
    mine = row.of(shape.gpus)
    if any(total < asked for total, _, asked in mine):
        return VerdictReason.TOO_FEW_GPUS
    if any(total - used < asked for total, used, asked in mine):
        return VerdictReason.NO_FREE_GPUS
    return reason
