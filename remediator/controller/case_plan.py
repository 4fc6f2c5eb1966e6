"""A step of a case → its effects, in order. Pure: it builds every request body and sends nothing."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from remediator.controller import case_proof, marks, pods, request_plan
from remediator.controller.case_view import CaseView
from remediator.controller.effects import ChangeNode, Create, Delete, Patch, Plan, SaveCase
from remediator.controller.hold import hold
from remediator.core import guard, keep_out, lemon, names, unproven
from remediator.core.blast_radius import of_start
from remediator.core.case import Attempt, AttemptOutcome, Case, Phase, advance, with_attempt
from remediator.core.clocks import AHEAD
from remediator.core.health import Health
from remediator.core.history import dated
from remediator.core.ladder import Next, has_room
from remediator.core.node import Node
from remediator.core.operation import Operation, OperationPhase
from remediator.core.policy import Approval, Policy
from remediator.core.probe import untouched
from remediator.core.proof import Proof, proving
from remediator.core.reasons import Reason
from remediator.kube import api
from remediator.kube.api import devices, encode

MOST_HEARTBEATS, LONGEST_CONDITION = 64, 316  # what an attempt has room for
# Recovery is not waited for with these: no start comes that could wait for Pods, and there is a policy again.
ENDED_BY_VERIFYING = frozenset({Reason.WAITING_FOR_IDLE, Reason.POLICY_MISSING})


def add_finalizer(case: Case) -> Plan:
    """A case that somebody else made gets our finalizer before it may claim: then it cannot vanish."""
    body = encode.with_finalizer(case.version, case.finalizers, names.CASE_FINALIZER)
    return (Patch(api.CASE, case.name, body),)


def hold_is_over(case: Case, now: datetime) -> bool:
    """Whether a hold that ends by itself is over, or was taken back: its end must not end another hold."""
    return case.hold_terms.ends is not None and (not case.hold or case.hold_terms.ends <= now)


def end_hold(case: Case) -> Plan:
    """Take it back, with its end and its reason."""
    return (Patch(api.CASE, case.name, encode.hold_ended(case.version)),)


def delete_pods(view: CaseView, now: datetime) -> Plan:
    """Delete what still runs for an ended case."""
    return pods.deletions(view.pods)


def release(view: CaseView, now: datetime) -> Plan:
    """Marks go in this order: node, ledgers (by the admission pass), rules, what a user has asked for, finalizer."""
    case = view.case
    if view.node is not None and marks.marked(view.node, case):
        return (ChangeNode(case.node, marks.release(case, view.handled, view.standing)),)
    body = encode.without_finalizer(case.version, case.finalizers, names.CASE_FINALIZER)
    given_back = pods.given_back(case.node, view.pods, view.node)
    answer = request_plan.ended(view.request, case, now, given_back) if view.request else ()  # or it is asked for anew
    rules = (Delete(devices.TAINT_RULE, name, uid) for name, uid in view.rules)
    return (*rules, *answer, Patch(api.CASE, case.name, body))


def end(view: CaseView, now: datetime) -> Plan:
    """The case must leave the node."""
    reason = view.leave or Reason.CASE_DELETED
    message = pods.given_back(view.case.node, view.pods, view.node)
    if reason is Reason.RELEASED_BY_USER:
        message = f"{message}: spec.release is true{guard.set_by(view.case.set_by.release)}"
    if reason is Reason.ADMITTED_BY_USER and view.case.new_node:
        message = f"a user has taken {view.case.new_node.taint} off: {view.case.node} works without a proof; {message}"
    if reason is Reason.TAKE_OUT_OVERDUE and view.case.keep_out:
        until = f"{view.case.keep_out.until:%Y-%m-%d %H:%M:%S} UTC"
        message = f"{view.case.node} was to be out until {until}, and could not be taken by then; nothing was done"
    if reason is Reason.GAVE_WAY:
        message = f"{view.case.node} shows what policy {view.case.policy} repairs, and is probed after that; {message}"
    return _ended(view, Phase.CANCELLED, reason, message, now)


def give_way(view: CaseView, now: datetime) -> Plan:
    """The node goes to a more severe case."""
    other = view.outranked_by
    if other is None:
        return ()
    message = f"{other.name} of policy {other.policy} goes first and may act now; nothing was done to the node yet"
    return _ended(view, Phase.CANCELLED, Reason.GAVE_WAY, message, now)


def give_back(view: CaseView, reason: Reason, message: str, now: datetime) -> Plan:
    """The case is over, and nothing speaks against its node."""
    return _ended(view, Phase.RECOVERED, reason, message, now)


def clear(view: CaseView, now: datetime) -> Plan:
    """The fault went by itself."""
    return _ended(view, Phase.RECOVERED, Reason.CLEARED_ITSELF, "the fault went before anything was done", now)


def recover(view: CaseView, now: datetime) -> Plan:
    """The node has proven its health."""
    if view.case.manual:
        message = f"{request_plan.became_of(view.case)}; the node is Ready and back"
        if case_proof.has_succeeded(view.case) and view.case.keep_out:
            message = f"{request_plan.became_of(view.case)}; a user has uncordoned the node, so that it is not kept out"
        return _ended(view, Phase.RECOVERED, Reason.VERIFIED, message, now)
    probed = view.policy.verify.probe if view.policy else ""
    tried_out = "" if not probed or untouched(view.case) else f", and {probed} has succeeded"
    opened = f"works: {view.case.new_node.taint} is taken off" if view.case.new_node else "is back"
    message = f"healthy on fresh evidence{tried_out}; the node {opened}"
    return _ended(view, Phase.RECOVERED, Reason.VERIFIED, message, now)


def _ended(view: CaseView, phase: Phase, reason: Reason, message: str, now: datetime) -> Plan:
    """The case is over. One that was escalated stays Escalated."""
    shown = Phase.ESCALATED if view.case.phase is Phase.ESCALATED else phase
    after = replace(advance(view.case, reason, message, now, shown), ended=now, blocks=())
    return (SaveCase(view.case, after),)


def escalate(view: CaseView, now: datetime) -> Plan:
    """Hand the case to a person: the node stays out of service."""
    shows = view.observation.health is Health.UNHEALTHY or view.observation.proof is Proof.REFUTED
    lacks = "" if shows or not (view.node and view.policy) else _lacks(view, view.node, view.policy, now)
    message = "; ".join(filter(None, (lacks, _summary(view.case, shows), of_devices(view))))
    if view.past and not view.case.attempts:
        message = f"{message}, and {len(view.past)} cases before this one had taken the node"
    reason = _why_escalated(view, shows)
    if view.known is not None and shows:
        reason, message = view.known.reason, view.known.message
    if view.case.manual:
        message = f"the node is not Ready after {request_plan.became_of(view.case)}"
    after = advance(view.case, reason, f"a person must look: {message}", now, Phase.ESCALATED)
    history = lemon.history(view.known.cases if view.known else view.past)
    return (SaveCase(view.case, replace(after, blocks=(), history=history)),)


def take_out(view: CaseView, now: datetime) -> Plan:
    """The node is its user's; or its case says until when, or that this is over."""
    after = advance(view.case, *keep_out.standing(view.case, now), now, Phase.ESCALATED)
    return (SaveCase(view.case, replace(after, blocks=())),)


def _why_escalated(view: CaseView, shows: bool) -> Reason:
    """Where the fault does not show, no operation has been in vain, as far as anybody can tell: health is unproven."""
    unknown = view.observation.health is Health.UNKNOWN or bool(view.devices.unknown)
    not_proven = Reason.HEALTH_UNKNOWN if unknown else Reason.VERIFY_TIMEOUT
    if view.case.manual or view.devices.unknown or not isinstance(view.next, Reason):
        return not_proven
    spent = view.next is Reason.ATTEMPTS_SPENT and view.case.tried and has_room(view.case)
    tried = view.next is Reason.LADDER_EXHAUSTED or spent
    return view.next if shows or not tried else not_proven


def _lacks(view: CaseView, node: Node, policy: Policy, now: datetime) -> str:
    return "" if policy.unreadable else unproven.lacking(view.case, node, policy, view.observation.health, now)


def of_devices(view: CaseView) -> str:
    """What its devices say against giving the node back; "" for nothing."""
    if view.devices.lacking:
        return f"{view.case.node} has fewer devices than before: {view.devices.lacking}"
    return view.devices.unknown


def _summary(case: Case, shows: bool) -> str:
    """What was tried; `shows`: in vain, since the fault is still there."""
    last = case.attempt
    if last is None:
        return "nothing was tried"
    if last.probe:
        works = "works" if case.new_node else "is given back"
        return f"{last.template} must succeed before the node {works}; {last.outcome.value}: {last.message}"
    count = f"{len(case.tries)} attempts" if len(case.tries) > 1 else "one attempt"
    if all(attempt.kept_by_pods for attempt in case.tries):
        return f"{count} ended in the drain, so {last.template} was never run: {last.message}"
    became = "did not cure it" if shows else "went before"
    return f"{count} {became}; the last was {last.template}, {last.outcome.value}: {last.message}"


def claim(view: CaseView, now: datetime) -> Plan:
    """Put our marks on the node, then record that the case holds it. Its ledger entries are there already."""
    case = view.case
    wanted = f"NodeOperation {case.manual.operation}" if case.manual else f"policy {case.policy}"
    message = f"case {case.name} holds node {case.node} for {wanted}{_approved(view)}"
    after = replace(advance(case, Reason.CLAIMED, message, now, Phase.DRAINING), started=now, blocks=())
    if view.node is None:
        return ()
    return (ChangeNode(case.node, marks.claim(case, view.node, view.gone)), SaveCase(case, after))


def _approved(view: CaseView) -> str:
    """That a person has approved the case, and who, where that is known."""
    limited = view.policy is not None and view.policy.max_blast_radius is not None and view.case.approved
    if view.policy is None or (view.policy.approval is Approval.NONE and not limited):
        return ""
    by = view.case.set_by.approved
    return f"; approved{f' by {by}' if by else ''}"


def disown(view: CaseView, now: datetime) -> Plan:
    """A cordon that a user has taken off is not ours any more."""
    return (ChangeNode(view.case.node, marks.disown(view.case)),)


def stay(view: CaseView, now: datetime) -> Plan:
    """Show what a user stops the case with."""
    return hold(view.case, view.stops, None, now).effects


def start(view: CaseView, now: datetime) -> Plan:
    """Record the attempt. The next pass over the case creates its operation, under a name that follows from both."""
    case, following = view.case, view.next
    if not isinstance(following, Next) or view.policy is None:
        return ()
    template = view.policy.ladder[following.rung].operation
    name = operation_name(case, template, len(case.attempts) + 1)
    attempt = Attempt(name, template, following.rung, now, boot_id=view.node.boot_id if view.node else "")
    message = f"rung {following.rung + 1}, attempt {following.attempt}: {template}"
    if view.devices.lacking and view.observation.health is Health.HEALTHY:
        message = f"{message}, since the node has fewer devices than before: {view.devices.lacking}"
    after = with_attempt(advance(case, Reason.STARTED, message, now, Phase.DRAINING), attempt)
    return (SaveCase(case, replace(after, blocks=(), blast=of_start(case, view.blast))),)


def follow(view: CaseView, now: datetime) -> Plan:
    """Record what completes the newest attempt; the next pass over the case creates its operation."""
    case, template = view.case, view.follow_up
    if not case.tries or template is None:
        return ()
    newest, name = case.tries[-1], operation_name(case, template, len(case.attempts) + 1)
    attempt = Attempt(name, template, newest.rung, now, follows=newest.operation)
    message = f"after {newest.template}: {template}"
    after = with_attempt(advance(case, Reason.STARTED, message, now, Phase.DRAINING), attempt)
    return (SaveCase(case, replace(after, blocks=())),)


def probe(view: CaseView, now: datetime) -> Plan:
    """Record the probe, which is no try; the next pass over the case creates its operation."""
    case = view.case
    if view.policy is None or view.node is None:
        return ()
    template = view.policy.verify.probe
    name = operation_name(case, template, len(case.attempts) + 1)
    attempt = Attempt(name, template, case.rung, now, boot_id=view.node.boot_id, probe=True)
    works = "works" if case.new_node else "is given back"
    message = f"the conditions are healthy; {template} must succeed before the node {works}"
    after = with_attempt(_shown(case, advance(case, Reason.PROBING, message, now, Phase.VERIFYING)), attempt)
    return (SaveCase(case, replace(after, blocks=())),)


def operation_name(case: Case, template: str, number: int) -> str:
    """The name of the case's attempt of this number, counted from 1."""
    return names.name(case.node, template, case.uid, str(number))


def operation(case: Case, policy: Policy | None) -> Create:
    """The NodeOperation of the newest attempt, with the parameters that its rung has now."""
    attempt = case.attempt
    if attempt is None:
        raise ValueError(f"case {case.name} has no attempt")
    body = encode.new_operation(case, attempt, len(case.attempts), _parameters(attempt, policy))
    return Create(api.OPERATION, body)


def _parameters(attempt: Attempt, policy: Policy | None) -> Mapping[str, str]:
    """Those of the rung that was tried; none for what completes it, or where the ladder has changed."""
    rung = policy.ladder[attempt.rung] if policy and attempt.rung < len(policy.ladder) else None
    tried = rung is not None and rung.operation == attempt.template and not (attempt.follows or attempt.probe)
    return rung.parameters if rung and tried else {}


def watch(view: CaseView, now: datetime) -> Plan:
    """Create the operation if a crash prevented it, and show how far it is, or that its template was deleted."""
    case, current = view.case, view.operation
    if current is None:
        return (operation(case, view.policy),)
    if view.templateless:
        return hold(case, (guard.without_template(current),), None, now).effects
    if any(block.reason is Reason.UNKNOWN_OPERATION for block in case.blocks):  # it is there again
        case = replace(case, blocks=())
        if case.attempt and (case.attempt.probe or case.phase is _working(current)):
            return (SaveCase(view.case, case),)
    if case.attempt and case.attempt.probe:
        return ()
    phase = _working(current)
    if case.phase is phase:
        return ()
    reason = Reason.OPERATING if phase is Phase.OPERATING else Reason.DRAINING
    return (SaveCase(view.case, advance(case, reason, f"{current.template} on {current.node}", now, phase)),)


def _working(current: Operation) -> Phase:
    return Phase.OPERATING if current.phase is OperationPhase.OPERATING else Phase.DRAINING


def stop(view: CaseView, now: datetime) -> Plan:
    """Wait for the operation to end; create it if a crash prevented it, since only its own end ends the attempt."""
    return () if view.operation else (operation(view.case, view.policy),)


_REASONS = {
    AttemptOutcome.SUCCEEDED: Reason.SUCCEEDED,
    AttemptOutcome.FAILED: Reason.FAILED,
    AttemptOutcome.REFUSED: Reason.REFUSED,
    AttemptOutcome.CANCELLED: Reason.STOPPED,
}


def record(view: CaseView, now: datetime) -> Plan:
    """Write the operation's outcome into the case, with the node's own heartbeats as the base for proving recovery."""
    case, over = view.case, view.operation
    if over is None or case.attempt is None:
        return ()
    attempt = replace(
        case.attempt,
        finished=now,
        outcome=AttemptOutcome.CANCELLED if over.rejected else over.phase.outcome,
        message=over.message,
        reason=over.reason,
        boot_id=over.intent_boot_id or case.attempt.boot_id,
        heartbeats=_heartbeats(view.node, view.policy, now),
        counts=not over.nothing_ran,
    )
    message = f"{over.template}: {over.message or over.reason}"
    after = _shown(case, advance(case, _REASONS[attempt.outcome], message, now, Phase.VERIFYING))
    return (SaveCase(case, with_attempt(after, attempt)),)


def _shown(before: Case, after: Case) -> Case:
    """One that a person has goes on to say why they were called."""
    if before.phase is not Phase.ESCALATED:
        return after
    return replace(after, phase=before.phase, reason=before.reason, message=before.message)


def _heartbeats(node: Node | None, policy: Policy | None, now: datetime) -> dict[str, datetime]:
    """The node's own, those that prove recovery first where there are more than an attempt has room for.

    One from the future counts as no later than what proves something: later ones could not come after it once the
    node's clock is set right.
    """
    if node is None:
        return {}
    first = proving(node, policy) if policy else frozenset()
    fitting = (name for name in node.conditions if len(name) <= LONGEST_CONDITION)
    kept = sorted(fitting, key=lambda name: (name not in first, name))[:MOST_HEARTBEATS]
    return {name: min(node.conditions[name].heartbeat, now + AHEAD) for name in kept}


def _without_policy(case: Case, now: datetime) -> Plan:
    """Show that the policy is missing, and since when: it escalates some time after."""
    block = guard.no_policy(case)
    shown = replace(case, phase=Phase.VERIFYING, blocks=dated(case, (block,), now))
    if block.reason in {known.reason for known in case.blocks}:
        return () if shown == case else (SaveCase(case, shown),)
    return (SaveCase(case, advance(shown, block.reason, block.message, now)),)


def verify(view: CaseView, now: datetime) -> Plan:
    """Show that recovery is being waited for, no wait whose time has come, and none for Pods: no start comes.

    A case without its policy shows that instead, and one that is to try again, why nobody can tell whether it should.
    """
    case, unknown = view.case, view.observation.health is Health.UNKNOWN
    if view.policy is None and not case.manual:
        return _without_policy(case, now)
    if unknown and case.retry_to_come and view.node and view.policy:
        return hold(case, (guard.unknown_health(view.node, view.policy, now),), None, now).effects
    over = ENDED_BY_VERIFYING if unknown else ENDED_BY_VERIFYING | {Reason.HEALTH_UNKNOWN}
    lasting = (block for block in case.blocks if block.until is None or block.until > now)
    blocks = tuple(block for block in lasting if block.reason not in over)
    if case.phase is Phase.VERIFYING and blocks == case.blocks:  # as in nearly every pass
        return ()
    return (SaveCase(case, replace(case, phase=Phase.VERIFYING, blocks=blocks)),)
