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
* A node that is well and has failed lately comes after those that have not: the more often, the later (see
  health/history.py). Where detectors have been silent for long, nobody knows whether the node is still well.
* A Pod may ask for a node that is proven to be well: then what nobody can tell is refused, too.
* Attributes that a Pod requires of its GPUs must be known to hold: on other GPUs its work would fail, or be slow.
  "Not known" has a reason of its own, since its remedy is another: the labels of the node. Where the annotation cannot
  be read, no node is right: without its requirements the Pod would land anywhere.
* A Pod that asks for MPS needs a node whose labels say that it offers it, with GPUs on which MPS keeps limits, and
  whose daemon nobody has found unhealthy: elsewhere it would run without its limits, or not at all.
* Memory of shared GPUs must fit on single cards; whether it does is judged in shared/cards.py. A node that offers its
  GPUs both whole and by memory would sell a card twice: it gets Pods of neither sort.
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
from remediator.core.shared_gpus import NO_ASK, Ask
from remediator.scheduler.attributes.catalog import NO_FACTS, Facts
from remediator.scheduler.attributes.requirement import Met
from remediator.scheduler.attributes.selector import ANYTHING, AttributeSelector
from remediator.scheduler.health.silence import silent
from remediator.scheduler.mps import Mps
from remediator.scheduler.shared.cards import NO_CARDS, Cards, CardsReason, refusal

MAINTENANCE_PLANNED = "MaintenancePlanned"  # a Condition that no detector of ours writes
RECENT = timedelta(hours=72)  # how long a repair is remembered: the default window of a relapse


class VerdictReason(StrEnum):
    """One word for each thing that can be said of a node; the same in answers, metrics and `explain`."""

    FIT = "Fit"
    REPAIRED = "RecentlyRepaired"
    FEW_FAILURES = "FewFailures"
    SOME_FAILURES = "SomeFailures"
    MANY_FAILURES = "ManyFailures"
    HEALTH_UNKNOWN = "HealthUnknown"
    DETECTORS_SILENT = "DetectorsSilent"
    UNKNOWN_NODE = "UnknownNode"
    WAITING = "WaitingForRepair"
    ONLY_SCORED = "UnhealthyOnlyScored"
    NO_FREE_GPUS = "NoFreeGpus"
    TOO_FEW_GPUS = "TooFewGpus"
    OTHER_ATTRIBUTES = "OtherAttributes"
    ATTRIBUTES_UNKNOWN = "AttributesUnknown"
    ATTRIBUTES_MALFORMED = "AttributesMalformed"
    UNPROVEN = "HealthUnproven"
    NO_GPU_MEMORY = CardsReason.NO_ROOM.value
    GPU_CARDS_TOO_SMALL = CardsReason.TOO_SMALL.value
    GPU_CARDS_UNKNOWN = CardsReason.UNKNOWN.value
    SHARED_AND_WHOLE = CardsReason.WHOLE.value
    GPU_MEMORY_MALFORMED = CardsReason.MALFORMED.value
    MPS_NOT_OFFERED = "MpsNotOffered"
    MPS_TOO_OLD = Mps.TOO_OLD.value
    MPS_UNHEALTHY = Mps.UNHEALTHY.value
    UNHEALTHY = "Unhealthy"
    NOT_READY = "NotReady"
    CORDONED = "Cordoned"
    CLAIMED = "UnderRepair"
    QUARANTINED = "Quarantined"


# What the scheduler shows of a refused node. It counts nodes by text and joins the texts with commas, so no text may
# name a node or a number, or hold a comma. After that of a malformed annotation comes the mistake, one for all nodes.
UNRESOLVABLE: Mapping[VerdictReason, str] = {  # evicting Pods would not help
    VerdictReason.QUARANTINED: "node(s) quarantined by Remediator until a person releases them",
    VerdictReason.CLAIMED: "node(s) under repair by Remediator",
    VerdictReason.CORDONED: "node(s) cordoned by Remediator",
    VerdictReason.NOT_READY: "node(s) not ready",
    VerdictReason.UNHEALTHY: "node(s) found unhealthy by Remediator",
    VerdictReason.TOO_FEW_GPUS: "node(s) with too few GPUs in all",
    VerdictReason.OTHER_ATTRIBUTES: "node(s) without GPUs of the attributes that the Pod requires",
    VerdictReason.ATTRIBUTES_UNKNOWN: "node(s) whose labels do not say the GPU attributes that the Pod requires",
    VerdictReason.ATTRIBUTES_MALFORMED: "node(s) refused because an annotation of the Pod cannot be read",
    VerdictReason.UNPROVEN: "node(s) not proven to be healthy as the Pod requires",
    VerdictReason.GPU_CARDS_TOO_SMALL: "node(s) whose GPUs have too little memory in all",
    VerdictReason.GPU_CARDS_UNKNOWN: "node(s) of which nobody can tell what memory of their GPUs is free",
    VerdictReason.SHARED_AND_WHOLE: "node(s) that offer the same GPUs whole and by memory",
    VerdictReason.MPS_NOT_OFFERED: "node(s) that do not offer MPS as the Pod requires",
    VerdictReason.MPS_TOO_OLD: "node(s) whose GPUs are too old for the limits of MPS",
    VerdictReason.MPS_UNHEALTHY: "node(s) whose MPS daemon is not healthy",
    VerdictReason.GPU_MEMORY_MALFORMED: "node(s) refused because the GPU memory of the Pod cannot be split so",
}
HEALTH = frozenset({VerdictReason.NOT_READY, VerdictReason.UNHEALTHY})  # refused only while health refuses
HISTORY = (VerdictReason.FIT, VerdictReason.FEW_FAILURES, VerdictReason.SOME_FAILURES, VerdictReason.MANY_FAILURES)
WELL = frozenset({*HISTORY, VerdictReason.REPAIRED})  # detectors show that nothing is wrong now
FAILED: Mapping[VerdictReason, str] = {
    VerdictReason.NO_FREE_GPUS: "node(s) with too few free GPUs",
    VerdictReason.NO_GPU_MEMORY: "node(s) without enough free memory on one GPU",
}


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
    manual: bool = False  # a user asks for an operation: that says nothing of the node's health


def summary(case: Case) -> CaseSummary:
    """The little that must be kept of a case."""
    waits = case.open and not case.claimed and waits_in_queue(case.blocks)
    repaired = case.ended if case.phase is Phase.RECOVERED and case.attempts and not case.manual else None
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
        manual=case.manual is not None,
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


def _planned(node: Node) -> bool:
    """Whether somebody else says, in the word of Kubernetes 1.37, that maintenance of the node is near."""
    condition = node.conditions.get(MAINTENANCE_PLANNED)
    return condition is not None and condition.status is Status.TRUE


def _proven(node: Node, mine: Sequence[CaseSummary], policies: Iterable[Policy], now: datetime) -> VerdictReason:
    """What the conditions of policies prove."""
    policies = list(policies)
    selecting = [policy for policy in policies if policy.selects(node)]
    healths = [(_refuses(policy), repairs(policy), evidence.health(node, policy, now)) for policy in selecting]
    unknown = any(health is Health.UNKNOWN for _, _, health in healths)
    only_scored = {policy.name for policy in policies if not _refuses(policy)}
    telling = (case for case in mine if case.open and not case.only_escalates and not case.manual)
    refusing = any(case.policy not in only_scored for case in telling)
    rows = (
        ((True, True, Health.UNHEALTHY) in healths or refusing, VerdictReason.UNHEALTHY),
        ((False, True, Health.UNHEALTHY) in healths, VerdictReason.ONLY_SCORED),
        (any(health is Health.UNHEALTHY for _, _, health in healths), VerdictReason.WAITING),
        (any(case.open for case in mine) or _planned(node), VerdictReason.WAITING),
        (unknown and silent(node, selecting, now), VerdictReason.DETECTORS_SILENT),
        (unknown or "Ready" not in node.conditions, VerdictReason.HEALTH_UNKNOWN),
        (any(repaired_recently(case, now) for case in mine), VerdictReason.REPAIRED),
    )
    return next((reason for holds, reason in rows if holds), VerdictReason.FIT)


def _refuses(policy: Policy) -> bool:
    """Whether what the policy finds keeps Pods off: one in DryRun changes nothing, so it only scores."""
    return policy.mode is not Mode.DRY_RUN


def repairs(policy: Policy) -> bool:
    """Whether something is done to a node that the policy finds, now or later."""
    return policy.urgency is not Urgency.NEVER


class NodeState(NamedTuple):
    """One node: what is so of its health, how many GPUs it has, how many of them Pods hold, and what labels say.

    `history`: how often it has failed lately, 0 to 3.
    `cpu`: what is free, in thousandths of a core, of a node with GPUs; in steps, so that nodes share rows.
    """

    health: VerdictReason
    total: Gpus = ()
    used: Gpus = ()
    facts: Facts = NO_FACTS
    history: int = 0
    cpu: int = 0
    cards: Cards | None = None  # that Pods share by memory; None where it has none, or where that is off
    mps: Mps | None = None  # what it offers of MPS; None for nothing

    @property
    def standing(self) -> VerdictReason:
        """What is so of its health, with the failures of a node that is well."""
        return HISTORY[self.history] if self.history and self.health in WELL else self.health

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
    if old.health in UNRESOLVABLE or old.facts is not new.facts:
        return True
    if old.cards != new.cards and _more_room(old.cards, new.cards):
        return True
    if old.mps is not new.mps and new.mps is Mps.USABLE:
        return True
    return any(free > old.free().get(name, 0) for name, free in new.free().items())


def _more_room(old: Cards | None, new: Cards | None) -> bool:
    """Whether a card has more room, or a reason to give none is gone."""
    if old is None or new is None or old.reason is not new.reason:
        return True
    before = dict(old.free)
    return any(room > before.get(card, 0) for card, room in new.free)


def proven_again(old: NodeState, new: NodeState) -> bool:
    """Whether a Pod that requires proven health may be let through by the new row, and was not by the old one."""
    return old.health not in WELL and new.health in WELL


class Shape(NamedTuple):
    """All that a verdict depends on in a Pod."""

    gpus: Gpus = ()
    daemon: bool = False
    attributes: AttributeSelector = ANYTHING
    proven: bool = False  # only nodes that are known to be well
    gang: bool = False  # near its siblings rather than on the fullest node
    short: bool = False  # over before its node is likely to fail again
    cpu: int = 0  # in thousandths of a core
    memory: Ask = NO_ASK  # of shared GPUs
    mps: bool = False  # only on nodes that offer it

    @property
    def resources(self) -> tuple[str, ...]:
        """The kinds of GPUs that are asked for."""
        return tuple(name for name, _ in self.gpus)


STRANGER = NodeState(VerdictReason.UNKNOWN_NODE)


def verdict(row: NodeState, shape: Shape, only_scores: bool = False) -> VerdictReason:
    """What is said of the node for Pods of this shape. A resource that the node does not list is not ours to judge.

    `only_scores`: health refuses nothing now.
    """
    reason = VerdictReason.FIT if shape.daemon or (shape.short and row.health in WELL) else row.standing
    if only_scores and reason in HEALTH:
        reason = VerdictReason.ONLY_SCORED
    if reason in UNRESOLVABLE:
        return reason
    if shape.proven and reason not in WELL:
        return VerdictReason.UNPROVEN
    other = _attributes(row, shape) or _mps(row, shape)
    if other is not None:
        return other
    return _too_few(row, shape) or _memory(row, shape) or reason


def _too_few(row: NodeState, shape: Shape) -> VerdictReason | None:
    """Why the node has no whole GPUs for the Pod; None where it has."""
    taken = False
    for total, used, asked in row.of(shape.gpus):
        if total < asked:
            return VerdictReason.TOO_FEW_GPUS
        taken = taken or total - used < asked
    return VerdictReason.NO_FREE_GPUS if taken else None


def _memory(row: NodeState, shape: Shape) -> VerdictReason | None:
    """Why the node has no memory of GPUs for the Pod, or no whole ones; None where it has, or where nobody asks."""
    cards = row.cards
    if row.health is VerdictReason.UNKNOWN_NODE or not (shape.memory.memory or (shape.gpus and cards)):
        return None
    if cards is not None and cards.reason is CardsReason.WHOLE:
        return VerdictReason.SHARED_AND_WHOLE
    if not shape.memory.memory:
        return None
    reason = refusal(cards or NO_CARDS, shape.memory)
    return VerdictReason(reason.value) if reason else None


def _attributes(row: NodeState, shape: Shape) -> VerdictReason | None:
    """Why the GPUs of the node are not what the Pod requires; None where they are, or where nobody asks."""
    if shape.attributes is ANYTHING or shape.daemon or row.health is VerdictReason.UNKNOWN_NODE:
        return None
    if shape.attributes.mistake:
        return VerdictReason.ATTRIBUTES_MALFORMED
    return _UNMET.get(shape.attributes.met(row.facts, shape.resources))


def _mps(row: NodeState, shape: Shape) -> VerdictReason | None:
    """Why the node has no MPS for the Pod; None where it has, or where nobody asks."""
    if not shape.mps or shape.daemon or row.health is VerdictReason.UNKNOWN_NODE or row.mps is Mps.USABLE:
        return None
    return VerdictReason(row.mps.value) if row.mps is not None else VerdictReason.MPS_NOT_OFFERED


_UNMET = {Met.NO: VerdictReason.OTHER_ATTRIBUTES, Met.UNKNOWN: VerdictReason.ATTRIBUTES_UNKNOWN}
