"""ClusterCache → the inputs of the decision table of a case, and of its plans. Pure: it only reads stores."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

from remediator import windows
from remediator.controller import case_proof, inventory_view, marks
from remediator.controller.bundle_store import BundleStore
from remediator.controller.cache import ClusterCache
from remediator.controller.fleet import api_pods_of, hosted
from remediator.core import guard, keep_out, manual, names, new_node
from remediator.core.absence import NEVER_AWAY, Absences
from remediator.core.case import MOST_ATTEMPTS, Block, Case, Diagnosis, Phase, reason_to_end
from remediator.core.case_table import CaseObservation, Tried
from remediator.core.decide import onsets
from remediator.core.giving_way import outranked_by
from remediator.core.health import Health, health_of
from remediator.core.inventory import NOTHING_KNOWN, Devices
from remediator.core.jobs_at_stake import BlastRadius
from remediator.core.ladder import Next, follow_up, next_rung
from remediator.core.lemon import Known, known
from remediator.core.node import Node
from remediator.core.offer import NO_OFFER, OfferObservation, gives_back
from remediator.core.operation import Operation
from remediator.core.pod import Pod
from remediator.core.policy import Policy
from remediator.core.proof import Proof, prove
from remediator.core.reasons import Reason
from remediator.core.template import Template

# Ends by which a user says that the node is to be left as it is.
BY_USER = frozenset({Reason.CASE_DELETED, Reason.RELEASED_BY_USER, Reason.TAINT_REMOVED_BY_USER})


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseView:
    """One case with all that its pass needs.

    Attributes:
        leave: Why the case must end; None where it need not.
        next: What the ladder offers, or why it offers nothing.
        follow_up: The template that completes the newest attempt; None where nothing is left to complete.
        look_again: When the proof of health may be complete, or its time over.
        diagnostics: The template of collect-diagnostics.
        stops: What a user, or what the node runs, stops the case with.
        absences: When nobody could act.
        gone: Uids on the node's marks whose cases are no more.
        handled: Names of cases that the node must remember when this one is over; empty while it is not.
        known: Why a person must look though something is left to try; None where it may be tried.
        outranked_by: The case for which this one gives way; None where it need not.
        past: Earlier cases that a person is shown where nothing is left to try because of them.
        standing: Names that the cases have for all that is found on the node now; empty while it is not over.
        request: The operation that a user has made and that the case carries out.
        devices: What is known of the devices of the node since the newest attempt.
        offer: What is observed of a case that a person has.
        blast: What a start would end, by the last look at the node.
        bundle_store: Where the bundle of its evidence goes; None where it stays on the node.
        rules: Names and uids of the DeviceTaintRules of a case that gives its node back, as read live then.
        templateless: The operation that goes on has no template any more: nobody knows how it is done, or when it is.
    """

    observation: CaseObservation
    case: Case
    node: Node | None
    policy: Policy | None
    operation: Operation | None
    pods: tuple[Pod, ...]
    leave: Reason | None
    next: Next | Reason
    follow_up: str | None
    look_again: datetime | None
    diagnostics: Template | None
    stops: tuple[Block, ...] = ()
    absences: Absences = NEVER_AWAY
    gone: frozenset[str] = frozenset()
    handled: tuple[str, ...] = ()
    standing: frozenset[str] = frozenset()
    request: Operation | None = None
    devices: Devices = NOTHING_KNOWN
    offer: OfferObservation = NO_OFFER
    known: Known | None = None
    past: tuple[Case, ...] = ()
    outranked_by: Case | None = None
    blast: BlastRadius | None = None
    bundle_store: BundleStore | None = None
    rules: tuple[tuple[str, str], ...] = ()
    templateless: bool = False


class _SeenCase(NamedTuple):
    """What was observed of a case before its step is known; `pods`: whether some of its Pods are left."""

    leave: bool
    pods: bool
    health: Health
    proof: Proof
    stops: tuple[Block, ...]
    outranked: bool


@dataclass(frozen=True, slots=True)
class _NextStep:
    """What a case could do next, before anything stops it.

    Attributes:
        tried: How its newest attempt stands.
        following: What the ladder offers, or why it offers nothing.
        lemon: Why a person must look though something is left to try.
        follow_up: The template that completes the newest attempt; None where nothing is left to complete.
        follows: Whether the next step is that one.
        full: It would be, but the case has no room for another attempt: a person must look.
        starts: The operation by which an attempt would begin.
        wanted: The operation of the next step, whatever it is for.
    """

    tried: Tried
    following: Next | Reason
    lemon: Known | None
    follow_up: str | None
    follows: bool
    full: bool
    starts: str | None
    wanted: str | None


def case_view(cache: ClusterCache, case: Case, now: datetime) -> CaseView:
    """What is observed of a case."""
    node, policy = cache.nodes.get(case.node), cache.policy_of(case)
    operation = cache.operations.get(case.attempt.operation) if case.attempt else None
    # Pods of a node that is gone have nobody to end them; the API server collects them.
    pods = tuple(pod for pod in cache.pods.by("case_uid", case.uid) if node is not None or pod.node != case.node)
    request = cache.operations.get(case.manual.operation) if case.manual else None
    leave = _leave(case, node, policy, request, now)
    devices = _devices(cache, case, policy, node, now)
    proof, again = case_proof.prove(case, node, policy, cache.absences, devices, now)
    ahead = _next_step(cache, case, policy, operation, node, proof, now)
    health = _health(case, node, policy, now)
    stops = _stops(cache, case, node, policy, ahead, now)
    if health is Health.HEALTHY and proof is Proof.WAITING:  # no start would come, so nothing waits for Pods
        stops = tuple(block for block in stops if block.reason is not Reason.WAITING_FOR_IDLE)
    handled, standing = _handled(cache, case, node) if case.ended is not None else ((), frozenset())
    other = _outranked_by(cache, case, policy, stops, node, now)
    seen = _SeenCase(leave is not None, bool(pods), health, proof, stops, other is not None)
    observation = _observation(cache, case, node, seen, ahead)
    view = CaseView(
        observation=observation,
        case=case,
        node=node,
        policy=policy,
        operation=operation,
        pods=pods,
        leave=leave,
        next=ahead.following,
        follow_up=ahead.follow_up,
        look_again=again,
        diagnostics=cache.templates.get(names.DIAGNOSTICS_TEMPLATE),
        stops=stops,
        absences=cache.absences,
        handled=handled,
        standing=standing,
        request=request,
        devices=devices,
        known=ahead.lemon,
        past=_past(cache, case) if ahead.following is Reason.ATTEMPTS_SPENT else (),
        outranked_by=other,
        blast=cache.blast.get(case.node),
        bundle_store=cache.bundle_store,
        templateless=case.attempt is not None and cache.templates.get(case.attempt.template) is None,
    )
    return replace(view, offer=offer_of(view, cache, now)) if observation.escalated and case.open else view


def _devices(cache: ClusterCache, case: Case, policy: Policy | None, node: Node | None, now: datetime) -> Devices:
    """Which devices the node of a case that holds it lacks."""
    if policy is None or node is None or not case.claimed:
        return NOTHING_KNOWN
    return inventory_view.devices(cache, case, policy, node, now)


def _observation(
    cache: ClusterCache, case: Case, node: Node | None, seen: _SeenCase, ahead: _NextStep
) -> CaseObservation:
    """What the table of steps asks for."""
    proof = seen.proof
    if proof is Proof.PASSED and any(block.reason is Reason.UNDER_MAINTENANCE for block in seen.stops):
        proof = Proof.PROBE  # held as before a probe: with our cordon goes that under which others work
    return CaseObservation(
        ended=case.ended is not None,
        escalated=case.phase is Phase.ESCALATED,
        outranked=seen.outranked,
        leave=seen.leave,
        pods=seen.pods,
        marks=_marks(cache, case, node),
        claimed=case.claimed,
        diagnosed=case.diagnosis is not Diagnosis.PENDING,
        health=seen.health,
        tried=ahead.tried if ahead.follows or not case_proof.keeps_node(case, node) else Tried.KEEPS_NODE,
        proof=Proof.TIMED_OUT if ahead.full else proof,
        rungs=isinstance(ahead.following, Next),
        known=ahead.lemon is not None,
        follow=ahead.follows and not ahead.full,
        uncordoned=node is not None and marks.uncordoned(node, case),
        stopped=bool(seen.stops),
    )


def _leave(
    case: Case, node: Node | None, policy: Policy | None, request: Operation | None, now: datetime
) -> Reason | None:
    """Why the case must end; None where it need not."""
    leave = reason_to_end(case, node) or taken_back(case, request) or _abandoned(case, policy, now)
    leave = leave or keep_out.too_late(case, now)
    return leave or (Reason.GAVE_WAY if new_node.fault_goes_first(case, node, policy, now) else None)


def _next_step(
    cache: ClusterCache,
    case: Case,
    policy: Policy | None,
    operation: Operation | None,
    node: Node | None,
    proof: Proof,
    now: datetime,
) -> _NextStep:
    """What completes the newest attempt goes first, then the probe that the proof asks for, then the ladder."""
    following, lemon = _following(cache, case.trying_again(now) if case.wants_retry else case, policy, now)
    tried, follow_up_of = case_proof.tried(case, operation, node), follow_up(case, _after(cache, case))
    follows = tried is Tried.SUCCEEDED and case_proof.has_succeeded(case) and follow_up_of is not None
    starts = None if follows else to_start(policy, case, tried, lemon.reason if lemon else following)
    wanted = follow_up_of if follows else starts
    if policy is not None and proof is Proof.PROBE and not follows:
        starts, wanted = None, policy.verify.probe
    full = follows and len(case.attempts) >= MOST_ATTEMPTS
    return _NextStep(tried, following, lemon, follow_up_of, follows, full, starts, wanted)


def offer_of(view: CaseView, cache: ClusterCache, now: datetime) -> OfferObservation:
    """What is observed of a case that a person has."""
    case, node, policy, proof = view.case, view.node, view.policy, Proof.WAITING
    ended, base = case_proof.end_of_try(case)
    if node is not None and policy is not None and ended is not None:
        proof, _ = prove(node, policy, base, ended, now, cache.absences)
    refuted = view.observation.proof is Proof.REFUTED
    return OfferObservation(
        running=view.observation.tried is Tried.OPEN,
        proof=view.observation.proof,
        conditions=proof is Proof.PASSED
        and view.observation.health is Health.HEALTHY
        and not (refuted or any(view.devices) or keep_out.is_out(case)),
        offered=case.healthy_since is not None,
        by_itself=not view.stops and gives_back(policy, case, cache.cases.by("node", case.node), now),
        retry=case.wants_retry and not keep_out.is_out(case),
        untold=keep_out.is_out(case) and keep_out.standing(case, now) != (case.reason, case.message),
    )


def _health(case: Case, node: Node | None, policy: Policy | None, now: datetime) -> Health:
    """What the conditions of the policy prove; in a case that a user asks for, whether the operation is to come.

    A new node that nobody holds yet has the proof still to come, whatever its conditions say.
    """
    if case.manual:
        return manual.health(case)
    if case.new_node and not case.claimed:
        return Health.UNHEALTHY
    return health_of(node, policy, now) if node and policy else Health.UNKNOWN


def taken_back(case: Case, request: Operation | None) -> Reason | None:
    """Whether a user has deleted the operation that they have asked for. What a person has had must be released.

    The operation had ended by then, so its deletion takes nothing back.
    """
    if case.manual is None or case.phase is Phase.ESCALATED or case.retried is not None:
        return None
    stands = request is not None and request.uid == case.manual.uid and not request.deleting
    return None if stands else Reason.OPERATION_DELETED


def _past(cache: ClusterCache, case: Case) -> tuple[Case, ...]:
    """The earlier cases of the node under the policy that had taken it."""
    others = (other for other in cache.cases.by("node", case.node) if other.policy == case.policy)
    return tuple(other for other in others if other.uid != case.uid and other.started and other.ended)


def _following(
    cache: ClusterCache, case: Case, policy: Policy | None, now: datetime
) -> tuple[Next | Reason, Known | None]:
    """What the ladder offers, and why a person must look though it offers something."""
    if policy is None:
        return Reason.POLICY_MISSING, None
    if policy.unreadable:
        return Reason.POLICY_UNREADABLE, None
    of_node = cache.cases.by("node", case.node)
    following = next_rung(policy, case, of_node, now, cache.covers)
    asked = case.claimed and case.phase is not Phase.ESCALATED and case.retried is None  # a person has looked
    return following, known(policy, case, of_node, cache.memory.of_gpus(case)) if asked else None


def _handled(cache: ClusterCache, case: Case, node: Node | None) -> tuple[tuple[str, ...], frozenset[str]]:
    """What the node must remember of an ended case, and what is found on the node now.

    A user who gives a node back means all that its policy finds there, not only what the case was opened for.
    """
    if node is None or node.uid != case.node_uid or not marks.to_remember(case):
        return (), frozenset()
    policy = cache.policy_of(case)
    given_back = onsets(node, [policy]) if policy and (case.deleting or case.reason in BY_USER) else ()
    selecting = [policy for policy in cache.policies if policy.selects(node)]
    return tuple(dict.fromkeys((case.name, *given_back))), frozenset(onsets(node, selecting))


def _abandoned(case: Case, policy: Policy | None, now: datetime) -> Reason | None:
    """A case that holds no node ends some time after its policy was deleted: nobody knows what it waits for."""
    last = case.timeline[-1] if case.timeline else None
    if policy is not None or case.claimed or last is None or last.reason is not Reason.POLICY_MISSING:
        return None
    return Reason.POLICY_MISSING if now - last.at >= case_proof.WITHOUT_POLICY else None


def _after(cache: ClusterCache, case: Case) -> tuple[str, ...]:
    """What the template of the newest try wants done after it."""
    template = cache.templates.get(case.tries[-1].template) if case.tries else None
    return template.after if template else ()


def to_start(policy: Policy | None, case: Case, tried: Tried, following: Next | Reason) -> str | None:
    """The operation that a case which holds its node starts next; None where it starts none now.

    One that a person has starts none, so that no window, Pod or lack of a place keeps its release back.
    """
    if policy is None or not case.claimed or case.phase is Phase.ESCALATED:
        return None
    if tried not in (Tried.NONE, Tried.FAILED) or not isinstance(following, Next):
        return None
    return policy.ladder[following.rung].operation


def _stops(
    cache: ClusterCache,
    case: Case,
    node: Node | None,
    policy: Policy | None,
    ahead: _NextStep,
    now: datetime,
) -> tuple[Block, ...]:
    """What keeps a case from its next step."""
    stops = guard.stops(case, node, policy, cache.paused, hosted(cache, node.name), now) if node else ()
    if ahead.wanted is not None and node is not None:
        stops = (*stops, *_homeless(cache, ahead.wanted, node))
    if ahead.starts is not None and policy is not None and case.diagnosis is not Diagnosis.PENDING:
        stops = (*stops, *_gated(cache, case, policy, now))
    return stops


def _homeless(cache: ClusterCache, wanted: str, node: Node) -> tuple[Block, ...]:
    """Whether an operation of a case that holds its node has no node for its Pods."""
    template = cache.templates.get(wanted)
    return guard.homeless(wanted, api_pods_of(cache, template), node, cache.places.now) if template else ()


def _outranked_by(
    cache: ClusterCache, case: Case, policy: Policy | None, stops: tuple[Block, ...], node: Node | None, now: datetime
) -> Case | None:
    """The more severe case that waits for nothing but the node of this one, where this one may give it up."""
    if policy is None or node is None or not case.claimed or not stops:
        return None
    others = ((other, cache.policy_of(other)) for other in cache.cases.by("node", case.node) if other.open)
    pairs = [(other, theirs) for other, theirs in others if theirs is not None and other.uid != case.uid]
    return outranked_by(case, policy, stops, pairs, node, now) if pairs else None


def _gated(cache: ClusterCache, case: Case, policy: Policy, now: datetime) -> tuple[Block, ...]:
    """What the policy makes the next start of a case that holds its node wait for."""
    shut, work = windows.shut(policy.windows, now), cache.working.get(case.uid)
    return guard.gated(case, policy, shut, work, now, cache.absences)


def _marks(cache: ClusterCache, case: Case, node: Node | None) -> bool:
    """Whether anything of ours is still to be taken off."""
    return case.finalizer or bool(ledgers_of(cache, case)) or (node is not None and marks.marked(node, case))


def ledgers_of(cache: ClusterCache, case: Case) -> list[str]:
    """The budgets that hold an entry of this case, in name order; one that cannot be read drops its entries later."""
    ledgers = (cache.budgets.get(name) for name in cache.entries.of(case.uid))
    return sorted(ledger.name for ledger in ledgers if ledger is not None and not ledger.unreadable)
