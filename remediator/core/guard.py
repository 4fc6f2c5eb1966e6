"""What blocks one case by itself, budgets apart: users, its policy, its node, and what is known of its health."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from remediator.core import gates, node_lease
from remediator.core.absence import NEVER_AWAY, Absences
from remediator.core.case import Block, Case, Phase, release_command
from remediator.core.confirmation import ConfirmationAnswer, ConfirmationVerdict
from remediator.core.correlation import Causes, sharing
from remediator.core.dead_node import DeadNodes
from remediator.core.giving_way import gave_way
from remediator.core.idle import Work
from remediator.core.judgement import judge
from remediator.core.maintenance import maintained
from remediator.core.manual import cordoned_by_who_asks
from remediator.core.node import Node, Status
from remediator.core.operation import Operation
from remediator.core.places import EVERYWHERE, Places
from remediator.core.policy import Mode, NewCriterion, Policy, Urgency
from remediator.core.quiet_hold import holding
from remediator.core.reasons import REMEDY, Reason
from remediator.core.template import Template
from remediator.core.unstarted import unstarted
from remediator.core.window import Shut

NO_BOOT = "the kubelet has not told in which boot the node is (status.nodeInfo.bootID)"


def block(reason: Reason, message: str = "", until: datetime | None = None) -> Block:
    """A block whose message ends in the remedy."""
    remedy = REMEDY.get(reason, "")
    return Block(reason, "; ".join(part for part in (message, remedy) if part), until)


def no_policy(case: Case) -> Block:
    """What holds a case whose policy was deleted."""
    gate = f" with admit.taint {case.new_node.taint}" if case.new_node else ""
    return block(Reason.POLICY_MISSING, f"no policy {case.policy}{gate}")


@dataclass(frozen=True, slots=True)
class Hosted:
    """What a node runs that nothing may disturb: `static_pod` of the control plane, our last ready replica.

    `lease_holder`: another system that holds the Lease of the node, by which it says that it works there.
    `lease_untaken`: why nobody can tell whether one does: the Lease could not be taken.
    """

    static_pod: str = ""
    last_replica: bool = False
    lease_holder: str = ""
    lease_untaken: str = ""


@dataclass(frozen=True, slots=True)
class FleetContext:
    """What is true of the whole fleet: shared by all requests of a pass."""

    templates: frozenset[str]
    paused: bool
    controller_nodes: frozenset[str]
    causes: Causes = field(default_factory=dict)
    failing: Mapping[str, str] = field(default_factory=dict)  # by policy: why its breaker on failures is open
    gone: frozenset[str] = frozenset()  # uids on marks of nodes that a live list does not have: their cases are no more
    control_plane: Mapping[str, str] = field(default_factory=dict)  # by node: its static Pod of the control plane
    leases_untaken: Mapping[str, str] = field(default_factory=dict)  # by node: why its Lease could not be taken
    lease_holders: Mapping[str, str] = field(default_factory=dict)  # by node: another system that holds its Lease
    places: Places = EVERYWHERE  # for Pods with rights in the API
    needs: Mapping[str, tuple[Template, ...]] = field(
        default_factory=dict
    )  # by template: whose Pods of this kind it needs
    boots: frozenset[str] = frozenset()  # templates for one boot of their node, which must be known
    silent: tuple[str, ...] = ()  # kinds whose watches have said nothing for long: what is known of them is old
    dead: DeadNodes = field(default_factory=DeadNodes)
    shut: Mapping[str, Shut] = field(default_factory=dict)  # by policy: what its windows say, unless one is open
    working: Mapping[str, Work] = field(default_factory=dict)  # by uid of a case that waits for its node to be idle
    absences: Absences = NEVER_AWAY  # when nobody could act
    criteria: Mapping[str, tuple[NewCriterion, ...]] = field(default_factory=dict)  # by policy: new ones, as of now

    def hosted(self, node: str) -> Hosted:
        """What this node runs that nothing may disturb."""
        last = self.controller_nodes == {node}
        return Hosted(
            self.control_plane.get(node, ""), last, self.lease_holders.get(node, ""), self.leases_untaken.get(node, "")
        )


def without_template(operation: Operation) -> Block:
    """What holds a case whose operation goes on, and whose template was deleted."""
    deleted = f"{operation.template} is under way on {operation.node}, and no template {operation.template} is there"
    message = f"{deleted} any more: without it the operation is given up 30 minutes after it began"
    return block(Reason.UNKNOWN_OPERATION, message)


def unknown_health(node: Node, policy: Policy, now: datetime) -> Block:
    """What holds a case where nobody can tell whether its node is healthy."""
    return block(Reason.HEALTH_UNKNOWN, "; ".join(map(str, judge(node, policy, now).doubts)))


def preconditions(
    case: Case, node: Node, policy: Policy | None, past: Sequence[Case], fleet: FleetContext, now: datetime
) -> tuple[Block, ...]:
    """What blocks one case, budgets apart; empty where nothing does."""
    if policy is None:
        return (no_policy(case),)
    judgement = judge(node, policy, now)
    doubts = [
        *map(str, judgement.doubts),
        *(f"the watch of {kind} has said nothing for long" for kind in fleet.silent),
        *_unknown_boot(node, policy, fleet),
    ]
    unknown = [name for name in named_by(policy) if name not in fleet.templates]
    homeless = fleet.places.lacking(needs_of(policy, fleet), node)
    # One that does nothing to the node never waits for another.
    holder = _holder(case, node, past, fleet.gone) if policy.urgency is not Urgency.NEVER else ""
    rests = None if case.claimed else cooldown_until(policy, past, now)
    others = sharing(case, policy, node, fleet.causes)
    checks = (
        (bool(others), Reason.SHARED_CAUSE, _in_common(policy, others) if others else ""),
        (policy.name in fleet.failing, Reason.POLICY_FAILING, fleet.failing.get(policy.name, "")),
        (bool(holder), Reason.NODE_BUSY, _busy(holder, node, past) if holder else ""),
        (bool(unknown), Reason.UNKNOWN_OPERATION, f"no template {', '.join(unknown)}"),
        (bool(homeless), Reason.NO_NODE_FOR_API_PODS, fleet.places.missing(node, homeless) if homeless else ""),
        (bool(doubts), Reason.HEALTH_UNKNOWN, "; ".join(doubts)),
    )
    criteria = fleet.criteria.get(policy.name, policy.criteria)
    as_of_now = policy if criteria == policy.criteria else replace(policy, criteria=criteria)
    stopped = stops(case, node, as_of_now, fleet.paused, fleet.hosted(node.name), now)
    blocks = (
        *stopped,
        *(block(reason, message) for holds, reason, message in checks if holds),
        *_of_dead_node(node, policy, fleet.dead),
        *never_started(case, now),
        *gated(case, policy, fleet.shut.get(policy.name), fleet.working.get(case.uid), now, fleet.absences),
        *(
            (block(Reason.COOLDOWN, "it rests after its last case under this policy: spec.cooldown", rests),)
            if rests
            else ()
        ),
    )
    return blocks or _may_live(node, policy, fleet.dead)


def _unknown_boot(node: Node, policy: Policy, fleet: FleetContext) -> tuple[str, ...]:
    """What is not known of a node whose kubelet has not told its boot, where an operation of the policy needs that."""
    asking = () if node.boot_id or policy.urgency is Urgency.NEVER else named_by(policy)
    needing = ", ".join(dict.fromkeys(name for name in asking if name in fleet.boots))
    return (f"{NO_BOOT}, and {needing} would be for one boot only",) if needing else ()


def _of_dead_node(node: Node, policy: Policy, dead: DeadNodes) -> tuple[Block, ...]:
    """What blocks a case of a node whose kubelet does not report, and no other."""
    if not policy.asks_unknown or policy.urgency is Urgency.NEVER:
        return ()
    needing = dead.need_kubelet(policy)
    checks = (
        (Reason.NEEDS_KUBELET, f"{', '.join(needing)} would run on the node itself" if needing else ""),
        (Reason.ZONE_UNREACHABLE, dead.cut_off(node) if node.ready is Status.UNKNOWN else ""),
    )
    return tuple(block(reason, message) for reason, message in checks if message)


def _may_live(node: Node, policy: Policy, dead: DeadNodes) -> tuple[Block, ...]:
    """The same by its Lease, which is read only where nothing else holds the case."""
    message = dead.alive(node) if policy.asks_unknown and node.ready is Status.UNKNOWN else ""
    return (block(Reason.LEASE_RENEWED, message),) if message else ()


def never_started(case: Case, now: datetime) -> tuple[Block, ...]:
    """What stops a case whose newest operation had a Pod that never started; empty once it may be tried again."""
    last = unstarted(case, now)
    return (block(last.reason, last.message, last.until),) if last else ()


def needs_of(policy: Policy | None, fleet: FleetContext) -> dict[str, tuple[Template, ...]]:
    """What the operations of a policy need of other nodes, by operation; nothing where it does nothing to a node."""
    operations = named_by(policy) if policy is not None and policy.urgency is not Urgency.NEVER else ()
    return {name: needed for name in operations if (needed := fleet.needs.get(name, ()))}


def named_by(policy: Policy) -> tuple[str, ...]:
    """The operations that a policy names: those of its ladder, and its probe."""
    return (*(rung.operation for rung in policy.ladder), *([policy.verify.probe] if policy.verify.probe else []))


def gated(
    case: Case, policy: Policy, shut: Shut | None, work: Work | None, now: datetime, absences: Absences = NEVER_AWAY
) -> tuple[Block, ...]:
    """What the policy makes the next start of the case wait for, its approval apart."""
    return tuple(block(*gate) for gate in gates.gates(case, policy, shut, work, now, absences))


def outside_window(policy: Policy, shut: Shut | None) -> tuple[Block, ...]:
    """What the windows of the policy say against a start now."""
    return tuple(block(*gate) for gate in gates.outside_window(policy, shut))


def _in_common(policy: Policy, nodes: Sequence[str]) -> str:
    compared = " and ".join(policy.correlation.by) if policy.correlation else ""
    return f"{len(nodes)} nodes show the same {compared} ({', '.join(nodes[:5])})"


def stops(
    case: Case, node: Node, policy: Policy | None, paused: bool, hosted: Hosted, now: datetime
) -> tuple[Block, ...]:
    """What a user, or what the node runs, stops the case with, also in its middle; empty where nothing does."""
    mode = policy.mode if policy and not policy.unreadable else None
    kept = case.claimed and node.kept_cordoned == case.uid  # its own operation took the node out for a person
    checks = (
        (paused, Reason.PAUSED),
        (policy is not None and policy.unreadable, Reason.POLICY_UNREADABLE),
        (mode is Mode.PAUSED, Reason.POLICY_PAUSED),
        (mode is Mode.DRY_RUN, Reason.DRY_RUN),
        (mode is not None and policy is not None and policy.urgency is Urgency.NEVER, Reason.TICKET_ONLY),
        (case.hold, Reason.HELD_BY_USER),
        (node.opted_out, Reason.OPTED_OUT),
        (node.control_plane or bool(hosted.static_pod), Reason.CONTROL_PLANE),
        (hosted.last_replica, Reason.HOSTS_CONTROLLER),
        (_not_selected(case, node, policy), Reason.NOT_SELECTED),
        (node.cordoned_by_user and not kept and not cordoned_by_who_asks(case, node), Reason.CORDONED_BY_USER),
        (case.claimed and not node.unschedulable and node.in_service != case.uid, Reason.UNCORDONED_BY_USER),
        (bool(_others(case, node, hosted)), Reason.UNDER_MAINTENANCE),
        (gates.unapproved(case, policy), Reason.APPROVAL_NEEDED),
    )
    standing = [reason for holds, reason in checks if holds]
    blocks = (block(reason, _why_stopped(reason, case, node, policy, hosted)) for reason in standing)
    return (*blocks, *_new(case, node, policy, now))


def _new(case: Case, node: Node, policy: Policy | None, now: datetime) -> tuple[Block, ...]:
    """What holds a case by what is new in a release; nothing where its policy does nothing to a node anyway."""
    rests = holding(case, node, policy, now) if policy is not None and policy.urgency is not Urgency.NEVER else None
    return (block(*rests),) if rests else ()


def _not_selected(case: Case, node: Node, policy: Policy | None) -> bool:
    """Whether the policy that opened the case does not select its node any more, and the node is not taken yet.

    A case that holds its node goes on: labels of a broken node come and go, those of its GPUs above all.
    """
    opened = policy is not None and not policy.unreadable and case.trigger is not None and not case.claimed
    return opened and policy is not None and not policy.selects(node)


def _why_stopped(reason: Reason, case: Case, node: Node, policy: Policy | None, hosted: Hosted) -> str:
    """The sentence of one of the stops; nearly always there is none to write."""
    return {
        Reason.PAUSED: "all new work is paused",
        Reason.POLICY_UNREADABLE: f"policy {case.policy} cannot be read",
        Reason.POLICY_PAUSED: f"policy {case.policy} is Paused",
        Reason.DRY_RUN: f"would {_first(policy)}{_held(case)}" if policy else "",
        Reason.TICKET_ONLY: f"policy {case.policy} only escalates to a person{_held(case)}",
        Reason.HELD_BY_USER: f"spec.hold is true{set_by(case.set_by.hold)}{case.hold_terms}",
        Reason.OPTED_OUT: f"{node.name} is excluded",
        Reason.CONTROL_PLANE: _of_control_plane(node, hosted),
        Reason.HOSTS_CONTROLLER: f"{node.name} runs our last ready replica",
        Reason.NOT_SELECTED: f"policy {case.policy} does not select {node.name} any more",
        Reason.CORDONED_BY_USER: f"{node.name} is cordoned",
        Reason.UNCORDONED_BY_USER: f"a user has uncordoned {node.name}",
        Reason.UNDER_MAINTENANCE: _others(case, node, hosted),
        Reason.APPROVAL_NEEDED: gates.approval_needed(case),
    }[reason]


def _others(case: Case, node: Node, hosted: Hosted) -> str:
    """Which other systems work on the node; "" where none does."""
    holder = hosted.lease_holder
    leased = node_lease.held(holder, node.name) if holder and not node_lease.lent(case, holder) else ""
    untaken = node_lease.untaken(hosted.lease_untaken, node.name) if hosted.lease_untaken else ""
    return "; ".join(filter(None, (maintained(node), leased, untaken)))


def _held(case: Case) -> str:
    """What a policy that only watches does not end: a node that was taken before it was edited."""
    return f", and holds {case.node} until the case is deleted" if case.claimed else ""


def homeless(operation: str, needs: Sequence[Template], node: Node, places: Places) -> tuple[Block, ...]:
    """What stops an operation that needs a Pod with rights in the API next; empty where one can be placed."""
    if places.take(needs, node):
        return ()
    return (block(Reason.NO_NODE_FOR_API_PODS, places.missing(node, [operation])),)


def set_by(user: str) -> str:
    """Who set it, where admission has seen to it that this is known."""
    return f", set by {user}" if user else ""


def _of_control_plane(node: Node, hosted: Hosted) -> str:
    if hosted.static_pod:
        return f"{node.name} runs a static Pod of the control plane ({hosted.static_pod})"
    return f"{node.name} is part of the control plane"


def _first(policy: Policy) -> str:
    if not policy.ladder and policy.verify.probe:
        return f"try {policy.verify.probe}"
    return (
        f"try {policy.ladder[0].operation}"
        if policy.ladder and policy.urgency is not Urgency.NEVER
        else "escalate to a person"
    )


def _holder(case: Case, node: Node, past: Sequence[Case], gone: frozenset[str]) -> str:
    """Which other case has the node, by what is known of cases, or by the node's marks; "" where none has."""
    known = [other.name for other in past if other.uid != case.uid and _holds(other, node)]
    marked = [] if case.claimed else sorted(node.marks - {case.uid} - gone)
    return next(iter([*known, *marked]), "")


def _busy(holder: str, node: Node, past: Sequence[Case]) -> str:
    """Which case holds the node, and, where that one waits for a person, how to give the node back."""
    message = f"case {holder} holds {node.name}"
    escalated = next((other for other in past if other.name == holder and other.phase is Phase.ESCALATED), None)
    if escalated is None:
        return message
    return f"{message} and is Escalated: repair the node, then give it back with: {release_command(escalated)}"


def _holds(other: Case, node: Node) -> bool:
    """Whether this case has the node already: two cases of one node never work on it together."""
    return other.open and other.claimed and other.node_uid == node.uid


def cooldown_until(policy: Policy, past: Sequence[Case], now: datetime) -> datetime | None:
    """Until when the node rests after the last case of this policy that had claimed it; None where it need not."""
    since = now - policy.cooldown
    ends = [
        other.ended
        for other in past
        if other.ended is not None and other.ended > since and other.policy == policy.name
        if other.started is not None and other.takes_capacity and not gave_way(other)
    ]
    return max(ends) + policy.cooldown if ends else None


def unconfirmed(answer: ConfirmationAnswer) -> tuple[Block, ...]:
    """What the second source of a policy holds a case with; empty where it agrees."""
    reasons = {
        ConfirmationVerdict.DENIED: Reason.NOT_CONFIRMED,
        ConfirmationVerdict.UNKNOWN: Reason.CONFIRMATION_UNKNOWN,
    }
    reason = reasons.get(answer.verdict)
    return (block(reason, answer.why),) if reason else ()


def waits_in_queue(blocks: Sequence[Block]) -> bool:
    """Whether the node is about to be repaired and only waits its turn, so that new work had better go elsewhere."""
    return bool(blocks) and all(block.reason in _QUEUE for block in blocks)


_QUEUE = frozenset(
    {
        Reason.BUDGET_SPENT,
        Reason.BUDGET_UNREADY,
        Reason.BUDGET_REFUSED,
        Reason.BREAKER_OPEN,
        Reason.OUTSIDE_WINDOW,
    }
)
