"""A step of a case → effects, in order. Pure: every body is built here, nothing is sent."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from remediator.controller import marks, observe, pods
from remediator.controller.effects import ChangeNode, Create, Patch, Plan, SaveCase
from remediator.controller.observe import CaseView
from remediator.core import names
from remediator.core.case import Attempt, Case, Diagnosis, OperationPhase, Outcome, Phase, advance, with_attempt
from remediator.core.evidence import Health, watched
from remediator.core.ladder import Next
from remediator.core.lifecycle import Step
from remediator.core.node import Node
from remediator.core.pod import Pod
from remediator.core.policy import Policy, Template
from remediator.core.reasons import Reason
from remediator.kube import api
from remediator.kube.api import encode as bodies
from remediator.kube.api.builtin import POD

MOST_HEARTBEATS = 64  # that an attempt has room for


def keep(case: Case) -> Plan:
    """A case that somebody else made gets our finalizer before it may claim: then it cannot just vanish."""
    return (Patch(api.CASE, case.name, bodies.with_finalizer(case.version, case.finalizers, names.CASE_FINALIZER)),)


def release(view: CaseView) -> Plan:
    """Marks go in this order: node, ledgers (by their own pass), finalizer."""
    case = view.case
    if view.node is not None and observe.marked(view.node, case):
        return (ChangeNode(case.node, marks.release(case)),)
    body = bodies.without_finalizer(case.version, case.finalizers, names.CASE_FINALIZER)
    return (Patch(api.CASE, case.name, body),)


def end(view: CaseView, phase: Phase, reason: Reason, message: str, now: datetime) -> Plan:
    """The case is over. One that a person was called for stays Escalated."""
    shown = Phase.ESCALATED if view.case.phase is Phase.ESCALATED else phase
    after = replace(advance(view.case, reason, message, now, shown), ended=now, blocks=())
    return (SaveCase(view.case, after),)


def escalate(view: CaseView, now: datetime) -> Plan:
    """Hand the case to a person: the node stays out of service."""
    untold = Reason.HEALTH_UNKNOWN if view.observation.health is Health.UNKNOWN else Reason.VERIFY_TIMEOUT
    why = view.next if isinstance(view.next, Reason) else untold
    after = replace(
        advance(view.case, why, f"a person must look: {_tried(view.case)}", now, Phase.ESCALATED), blocks=()
    )
    return (SaveCase(view.case, after),)


def _tried(case: Case) -> str:
    last = case.attempt
    if last is None:
        return "nothing was tried"
    count = f"{len(case.tries)} attempts" if len(case.tries) > 1 else "one attempt"
    return f"{count} did not cure it; the last was {last.template}, {last.outcome.value}: {last.message}"


def look(view: CaseView, template: Template | None, now: datetime) -> Plan:
    """Run collect-diagnostics before anything disturbs the node; whatever comes of it stops nothing."""
    case = view.case
    pod = next((pod for pod in view.pods if pod.template == names.DIAGNOSTICS_TEMPLATE), None)
    if template is None:
        return (SaveCase(case, diagnosed(case, None, f"no template {names.DIAGNOSTICS_TEMPLATE}", now)),)
    if now >= (case.started or now) + template.timeout + pods.START_GRACE:
        said = pod.message if pod else "its Pod could not be made"
        late = diagnosed(case, None, f"timed out: {said}", now)
        return (*pods.sweep((pod,) if pod else ()), SaveCase(case, late))
    if pod is None:
        name = observe.diagnostics_pod_name(case)
        return (Create(POD, pods.pod(template, name, case, None), gated=True),)
    if not pod.ended:
        return ()
    return (SaveCase(case, diagnosed(case, evidence(pod), pod.message, now)), *pods.sweep((pod,)))


def evidence(pod: Pod) -> dict[str, object] | None:
    """The JSON object that the diagnostics left; None where it left none."""
    try:
        found = json.loads(pod.message)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def diagnosed(case: Case, found: dict[str, object] | None, said: str, now: datetime) -> Case:
    """The case with the outcome of the look."""
    if found is None:
        after = advance(case, Reason.DIAGNOSIS_FAILED, said[:200] or "it said nothing", now)
        return replace(after, diagnosis=Diagnosis.FAILED)
    after = advance(case, Reason.DIAGNOSED, "evidence is in status.evidence", now)
    return replace(after, diagnosis=Diagnosis.DONE, evidence=found)


def start(case: Case, following: Next, template: str, now: datetime) -> Plan:
    """Record the attempt. The next pass over the case makes its operation, under a name that follows from both."""
    name = observe.operation_name(case, template, len(case.attempts) + 1)
    attempt = Attempt(name, template, following.rung, now)
    said = f"rung {following.rung + 1}, attempt {following.attempt}: {template}"
    after = replace(with_attempt(advance(case, Reason.STARTED, said, now, Phase.DRAINING), attempt), blocks=())
    return (SaveCase(case, after),)


def follow(view: CaseView, now: datetime) -> Plan:
    """Record what follows the newest try up; the next pass over the case makes its operation."""
    case, newest, template = view.case, view.case.tries[-1:], view.follow_up
    if not newest or template is None:
        return ()
    name = observe.operation_name(case, template, len(case.attempts) + 1)
    attempt = Attempt(name, template, newest[0].rung, now, follows=newest[0].operation)
    said = f"after {newest[0].template}: {template}"
    return (SaveCase(case, with_attempt(advance(case, Reason.STARTED, said, now, Phase.DRAINING), attempt)),)


def operation(case: Case, policy: Policy | None) -> Create:
    """The NodeOperation of the newest attempt, with what its rung tells the program now."""
    attempt = case.attempt
    if attempt is None:
        raise ValueError(f"case {case.name} has no attempt")
    body = bodies.new_operation(case, attempt, len(case.attempts), _parameters(attempt, policy))
    return Create(api.OPERATION, body)


def _parameters(attempt: Attempt, policy: Policy | None) -> Mapping[str, str]:
    """Those of the rung that was tried; none for what follows it up, or where the ladder has changed."""
    rung = policy.ladder[attempt.rung] if policy and attempt.rung < len(policy.ladder) else None
    return rung.parameters if rung and rung.operation == attempt.template and not attempt.follows else {}


def watch(view: CaseView, now: datetime) -> Plan:
    """Make the operation if a crash prevented it, and show how far it is."""
    case, found = view.case, view.operation
    if found is None:
        return (operation(case, view.policy),)
    phase = Phase.OPERATING if found.phase is OperationPhase.OPERATING else Phase.DRAINING
    if case.phase is phase:
        return ()
    reason = Reason.OPERATING if phase is Phase.OPERATING else Reason.DRAINING
    return (SaveCase(case, advance(case, reason, f"{found.template} on {found.node}", now, phase)),)


def stop(view: CaseView) -> Plan:
    """Wait for the operation to give way; make it if a crash prevented it, since only its own end ends the attempt."""
    return () if view.operation else (operation(view.case, view.policy),)


_TOLD = {
    Outcome.SUCCEEDED: Reason.SUCCEEDED,
    Outcome.FAILED: Reason.FAILED,
    Outcome.REFUSED: Reason.REFUSED,
    Outcome.CANCELLED: Reason.STOPPED,
}


def record(view: CaseView, live: Node, now: datetime) -> Plan:
    """Write the operation's outcome into the case, with the node's own heartbeats as the base for proving recovery."""
    case, found = view.case, view.operation
    if found is None or case.attempt is None:
        return ()
    outcome = found.phase.outcome
    attempt = replace(
        case.attempt,
        finished=now,
        outcome=outcome,
        message=found.message,
        boot_id=found.intent_boot_id,
        heartbeats=_base(live, view.policy),
    )
    said = f"{found.template}: {found.message or found.reason}"
    after = with_attempt(advance(case, _TOLD[outcome], said, now, Phase.VERIFYING), attempt)
    return (SaveCase(case, after),)


def _base(node: Node, policy: Policy | None) -> dict[str, datetime]:
    """The node's own heartbeats; of a node with more conditions than there is room for, what proves recovery first."""
    proving = {name for healths in watched(node, policy) for name, _ in healths} if policy else set()
    kept = sorted(node.conditions, key=lambda name: (name not in proving, name))[:MOST_HEARTBEATS]
    return {name: node.conditions[name].heartbeat for name in kept}


def verify(view: CaseView, now: datetime) -> Plan:
    """Show that recovery is being waited for."""
    if view.case.phase is Phase.VERIFYING:
        return ()
    return (SaveCase(view.case, replace(view.case, phase=Phase.VERIFYING)),)


def plan(step: Step, view: CaseView, template: Template | None, now: datetime) -> Plan:
    """The effects of a step that needs nothing but what was observed. CLAIM, START and RECORD need more."""
    match step:
        case Step.DELETE_PODS:
            return pods.sweep(view.pods)
        case Step.RELEASE:
            return release(view)
        case Step.END:
            reason = view.leave or Reason.CASE_DELETED
            return end(view, Phase.CANCELLED, reason, f"node {view.case.node} is given back", now)
        case Step.CLEAR:
            return end(view, Phase.RECOVERED, Reason.CLEARED_ITSELF, "the fault went before anything was done", now)
        case Step.RECOVER:
            return end(view, Phase.RECOVERED, Reason.VERIFIED, "healthy on fresh evidence; the node is back", now)
        case Step.DIAGNOSE:
            return look(view, template, now)
        case Step.WATCH:
            return watch(view, now)
        case Step.FOLLOW:
            return follow(view, now)
        case Step.STOP:
            return stop(view)
        case Step.VERIFY:
            return verify(view, now)
        case Step.ESCALATE:
            return escalate(view, now)
    return ()
