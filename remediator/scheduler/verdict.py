"""What is said of one node for one Pod, and why. Pure: facts in, one reason out.

Why each row stands where it does:

* A claim outranks everything: somebody works on the node, whatever its conditions say at the moment.
* A node that waits for its turn is let through, with the lowest score. When a budget is spent, many nodes wait at once,
  for hours; to refuse them all takes their capacity away on top of what is being repaired. The taint of a waiting node
  is a preference, too.
* Any other open case, and any condition of a policy that holds, makes a node sick: from the first moment, without
  waiting for the tolerance, and whatever the mode of the policy. Tolerance and mode say when Remediator may disturb
  what runs there. To send new work elsewhere disturbs nothing and is over as soon as the condition is. Where nobody
  will act (DryRun, paused, held by a person, excluded), keeping work off is all the help there is.
* What only escalates to a person has its cause outside the node as a rule: for example a dead file server that every
  node mounts. Such a node is let through behind the others, so that one server or one careless policy does not leave
  every Pod without a node.
* Unknown health is no fault: the node is let through, behind those that are known to be well. It does not end a
  fault either: an open case stands until it is ended, and so does its verdict.
* Pods of a DaemonSet are let through to any node: each has only that one, and the detectors that must show the node's
  recovery are such Pods.
* A node that we do not know is let through: the scheduler may have heard of it before us, or simulate it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from remediator.core.case import Case, Phase
from remediator.core.evidence import Health, judge
from remediator.core.guard import waits_in_queue
from remediator.core.node import Node, Status
from remediator.core.policy import Policy, Urgency
from remediator.core.reasons import Reason as Why

RECENT = timedelta(hours=72)  # how long a repair is remembered: the default window of a relapse


class Reason(StrEnum):
    """One word for each thing that can be said of a node; the same in answers, metrics and `explain`."""

    FIT = "Fit"
    REPAIRED = "RecentlyRepaired"
    UNCLEAR = "HealthUnknown"
    UNKNOWN = "UnknownNode"
    WAITING = "WaitingForRepair"
    NO_FREE_GPUS = "NoFreeGpus"
    TOO_FEW_GPUS = "TooFewGpus"
    SICK = "Sick"
    NOT_READY = "NotReady"
    CORDONED = "Cordoned"
    CLAIMED = "UnderRepair"
    QUARANTINED = "Quarantined"


# What the scheduler shows of a refused node. It counts nodes by text and joins the texts with commas, so no text may
# name a node or a number, or hold a comma.
UNRESOLVABLE: Mapping[Reason, str] = {  # evicting Pods would not help
    Reason.QUARANTINED: "node(s) quarantined by Remediator until a person releases them",
    Reason.CLAIMED: "node(s) under repair by Remediator",
    Reason.CORDONED: "node(s) cordoned by Remediator",
    Reason.NOT_READY: "node(s) not ready",
    Reason.SICK: "node(s) found sick by Remediator",
    Reason.TOO_FEW_GPUS: "node(s) with too few GPUs in all",
}
FAILED: Mapping[Reason, str] = {Reason.NO_FREE_GPUS: "node(s) with too few free GPUs"}


@dataclass(frozen=True, slots=True)
class Standing:
    """One case as far as placing goes. `repaired` is when operations ended it well."""

    name: str
    node: str
    node_uid: str
    open: bool
    claimed: bool
    escalated: bool
    waits: bool
    calls: bool  # nothing will be done to the node: the case only escalates
    repaired: datetime | None


def standing(case: Case) -> Standing:
    """The little that must be kept of a case."""
    waits = case.open and not case.claimed and waits_in_queue(case.blocks)
    repaired = case.ended if case.phase is Phase.RECOVERED and case.attempts else None
    return Standing(
        name=case.name,
        node=case.node,
        node_uid=case.node_uid,
        open=case.open,
        claimed=case.open and case.claimed,
        escalated=case.open and case.phase is Phase.ESCALATED,
        waits=waits,
        calls=any(block.reason is Why.TICKET_ONLY for block in case.blocks),
        repaired=repaired,
    )


def health(node: Node, standings: Iterable[Standing], policies: Iterable[Policy], now: datetime) -> Reason:
    """What is so of a node whoever asks: the first row that holds. FIT where none does."""
    mine = [case for case in standings if case.node_uid == node.uid]
    speaking = [policy for policy in policies if policy.selects(node)]
    healths = {(policy.urgency, judge(node, policy, now).health) for policy in speaking}
    unclear = any(health is Health.UNKNOWN for _, health in healths)
    rows = (
        (any(case.escalated for case in mine), Reason.QUARANTINED),
        (bool(node.case_uid) or any(case.claimed for case in mine), Reason.CLAIMED),
        (node.unschedulable and bool(node.cordoned_by), Reason.CORDONED),
        ("Ready" in node.conditions and node.ready is not Status.TRUE, Reason.NOT_READY),
        (node.degraded or any(case.waits for case in mine), Reason.WAITING),
        ((Urgency.NOW, Health.UNHEALTHY) in healths or any(case.open and not case.calls for case in mine), Reason.SICK),
        ((Urgency.NEVER, Health.UNHEALTHY) in healths or any(case.open for case in mine), Reason.WAITING),
        (unclear or "Ready" not in node.conditions, Reason.UNCLEAR),
        (any(case.repaired and now - case.repaired < RECENT for case in mine), Reason.REPAIRED),
    )
    return next((reason for holds, reason in rows if holds), Reason.FIT)


Gpus = tuple[tuple[str, int], ...]  # (resource, count), sorted


class Row(NamedTuple):
    """One node: what is so of its health, how many GPUs it has and how many of them Pods hold."""

    health: Reason
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


def eased(old: Row, new: Row) -> bool:
    """Whether some Pod that the old row refused may be let through by the new one."""
    if new.health in UNRESOLVABLE:
        return False
    return old.health in UNRESOLVABLE or any(free > old.free().get(name, 0) for name, free in new.free().items())


class Shape(NamedTuple):
    """All that a verdict depends on in a Pod."""

    gpus: Gpus = ()
    daemon: bool = False


STRANGER = Row(Reason.UNKNOWN)


def verdict(row: Row, shape: Shape) -> Reason:
    """What is said of the node for Pods of this shape. A resource that the node does not list is not ours to judge."""
    reason = Reason.FIT if shape.daemon else row.health
    if reason in UNRESOLVABLE:
        return reason
    mine = row.of(shape.gpus)
    if any(total < asked for total, _, asked in mine):
        return Reason.TOO_FEW_GPUS
    if any(total - used < asked for total, used, asked in mine):
        return Reason.NO_FREE_GPUS
    return reason
