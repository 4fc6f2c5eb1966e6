"""Step → effects, in order. Pure: every body is built here, nothing is sent."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from remediator.controller import marks, observe
from remediator.controller.effects import ChangeNode, Create, Delete, Effect, Patch, SaveCase, SaveOperation
from remediator.controller.observe import CaseView, OperationView
from remediator.core import names
from remediator.core.case import (
    Attempt,
    Case,
    Diagnosis,
    Operation,
    OperationPhase,
    Outcome,
    Phase,
    advance,
    with_attempt,
)
from remediator.core.evidence import Sign
from remediator.core.ladder import Next
from remediator.core.lifecycle import Drain, Move, Step
from remediator.core.node import Node
from remediator.core.pod import Pod
from remediator.core.policy import Template
from remediator.core.reasons import Reason
from remediator.kube import api, bodies, codec
from remediator.kube.objects import POD

Plan = tuple[Effect, ...]
# A Pod that its kubelet or the scheduler never starts is given up this long after its own deadline.
START_GRACE = timedelta(seconds=60)
EVIDENCE_BYTES = 4096


def sweep(pods: tuple[Pod, ...]) -> Plan:
    """Take Pods away whose outcome is recorded: let go of them first, so that the kubelet's word is enough."""
    return tuple(effect for pod in pods for effect in _drop(pod))


def _drop(pod: Pod) -> Plan:
    body = bodies.without_finalizer(pod.version, pod.finalizers, names.POD_FINALIZER)
    release = Patch(POD, pod.name, body, pod.namespace)
    delete = Delete(POD, pod.name, pod.uid, pod.namespace)
    return (*((release,) if pod.finalizer else ()), *(() if pod.deleting else (delete,)))


# --- cases -----------------------------------------------------------------------------------------------------------


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
    untold = Reason.EVIDENCE_UNCLEAR if view.seen.sign is Sign.UNCLEAR else Reason.VERIFY_TIMEOUT
    why = view.next if isinstance(view.next, Reason) else untold
    last = view.case.attempt.message if view.case.attempt else "nothing was tried"
    after = replace(advance(view.case, why, f"a person must look: {last}", now, Phase.ESCALATED), blocks=())
    return (SaveCase(view.case, after),)


def look(view: CaseView, template: Template | None, now: datetime) -> Plan:
    """Run collect-diagnostics before anything disturbs the node; whatever comes of it stops nothing."""
    case = view.case
    pod = next((pod for pod in view.pods if pod.template == names.DIAGNOSTICS_TEMPLATE), None)
    if template is None:
        return (SaveCase(case, diagnosed(case, None, f"no template {names.DIAGNOSTICS_TEMPLATE}", now)),)
    if now >= (case.started or now) + template.timeout + START_GRACE:
        said = pod.message if pod else "its Pod could not be made"
        late = diagnosed(case, None, f"timed out: {said}", now)
        return (*sweep((pod,) if pod else ()), SaveCase(case, late))
    if pod is None:
        name = observe.diagnostics_pod_name(case)
        return (Create(POD, _pod(template, name, case, None), names.OPERATIONS_NAMESPACE, gated=True),)
    if not pod.ended:
        return ()
    return (SaveCase(case, diagnosed(case, evidence(pod), pod.message, now)), *sweep((pod,)))


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
    """Record the attempt, then make its operation: found again after a crash, it is made under the same name."""
    name = observe.operation_name(case, template, following.attempt)
    attempt = Attempt(name, template, following.rung, now)
    said = f"rung {following.rung + 1}, attempt {following.attempt}: {template}"
    after = replace(with_attempt(advance(case, Reason.STARTED, said, now, Phase.DRAINING), attempt), blocks=())
    return (SaveCase(case, after), operation(after))


def operation(case: Case) -> Create:
    """The NodeOperation of the newest attempt."""
    attempt = case.attempt
    if attempt is None:
        raise ValueError(f"case {case.name} has no attempt")
    return Create(api.OPERATION, bodies.new_operation(case, attempt, len(case.attempts)))


def watch(view: CaseView, now: datetime) -> Plan:
    """Make the operation if a crash prevented it, and show how far it is."""
    case, found = view.case, view.operation
    if found is None:
        return (operation(case),)
    phase = Phase.OPERATING if found.phase is OperationPhase.OPERATING else Phase.DRAINING
    if case.phase is phase:
        return ()
    reason = Reason.OPERATING if phase is Phase.OPERATING else Reason.DRAINING
    return (SaveCase(case, advance(case, reason, f"{found.template} on {found.node}", now, phase)),)


def stop(view: CaseView) -> Plan:
    """Wait for the operation to give way; make it if a crash prevented it, since only its own end ends the attempt."""
    return () if view.operation else (operation(view.case),)


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
        heartbeats=codec.heartbeats(live),
    )
    said = f"{found.template}: {found.message or found.reason}"
    after = with_attempt(advance(case, _TOLD[outcome], said, now, Phase.VERIFYING), attempt)
    return (SaveCase(case, after),)


def verify(view: CaseView, now: datetime) -> Plan:
    """Show that recovery is being waited for."""
    if view.case.phase is Phase.VERIFYING:
        return ()
    return (SaveCase(view.case, replace(view.case, phase=Phase.VERIFYING)),)


def case_plan(step: Step, view: CaseView, template: Template | None, now: datetime) -> Plan:
    """The effects of a step that needs nothing but what was observed. CLAIM, START and RECORD need more."""
    match step:
        case Step.SWEEP:
            return sweep(view.pods)
        case Step.RELEASE:
            return release(view)
        case Step.END:
            reason = view.leave or Reason.CASE_DELETED
            return end(view, Phase.CANCELLED, reason, f"node {view.case.node} is given back", now)
        case Step.CLEAR:
            return end(view, Phase.RECOVERED, Reason.CLEARED_ITSELF, "the fault went before anything was done", now)
        case Step.RECOVER:
            return end(view, Phase.RECOVERED, Reason.VERIFIED, "healthy on fresh evidence; the node is back", now)
        case Step.LOOK:
            return look(view, template, now)
        case Step.WATCH:
            return watch(view, now)
        case Step.STOP:
            return stop(view)
        case Step.VERIFY:
            return verify(view, now)
        case Step.ESCALATE:
            return escalate(view, now)
    return ()


# --- operations ------------------------------------------------------------------------------------------------------


def _end(view: OperationView, phase: OperationPhase, reason: Reason, message: str, now: datetime) -> SaveOperation:
    before = view.operation
    after = replace(before, phase=phase, reason=reason.value, message=message, finished=now)
    return SaveOperation(before, after)


def _said(pod: Pod | None, otherwise: str) -> str:
    return (pod.message if pod else "") or otherwise


def drain(view: OperationView, template: Template | None, now: datetime) -> Plan:
    """Say that the drain begins, then make its Pod."""
    before = view.operation
    if template is None:
        missing = f"no template {names.DRAIN_TEMPLATE}"
        return (_end(view, OperationPhase.FAILED, Reason.UNKNOWN_OPERATION, missing, now),)
    begun = replace(
        before,
        phase=OperationPhase.DRAINING,
        drain_started=before.drain_started or now,
        drain_pod=observe.drain_pod_name(before),
    )
    body = _drain_pod(view, template, now)
    return (SaveOperation(before, begun), Create(POD, body, names.OPERATIONS_NAMESPACE, gated=True))


def _drain_pod(view: OperationView, template: Template, now: datetime) -> bodies.Body:
    operation, own = view.operation, view.template
    if view.case is None or own is None:
        raise ValueError(f"operation {operation.name} has no case or template")
    left = max(timedelta(seconds=1), (operation.drain_started or now) + own.drain_timeout - now)
    parameters = {
        "operation": operation.name,
        "operationUID": operation.uid,
        "caseUID": operation.case_uid,
        "strategy": own.strategy.value,
        "timeoutSeconds": int(left.total_seconds()),
    }
    longer = replace(template, timeout=left + START_GRACE)
    return _pod(longer, observe.drain_pod_name(operation), view.case, operation, json.dumps(parameters))


def intend(view: OperationView, live: Node, now: datetime) -> Plan:
    """The point of no return: from here on the operation's Pod may exist."""
    before = view.operation
    after = replace(
        before,
        phase=OperationPhase.OPERATING,
        intent_boot_id=live.boot_id,
        intent_at=now,
        pod=observe.pod_name(before),
    )
    return (SaveOperation(before, after),)


def drain_again(view: OperationView, left: int) -> Plan:
    """Pods came while the drain ended: another round."""
    before = view.operation
    after = replace(before, drained=False, drain_round=before.drain_round + 1, message=f"{left} pods came meanwhile")
    return (SaveOperation(before, after),)


def launch(view: OperationView) -> Plan:
    """Make the Pod under the name that follows from the operation: made twice is "already exists"."""
    operation = view.operation
    if view.case is None or view.template is None:
        return ()
    parameters = json.dumps({**operation.parameters, "caseUID": operation.case_uid})
    body = _pod(view.template, observe.pod_name(operation), view.case, operation, parameters)
    return (Create(POD, body, names.OPERATIONS_NAMESPACE, gated=True),)


def _pod(template: Template, name: str, case: Case, operation: Operation | None, parameters: str = "{}") -> bodies.Body:
    labels = {names.OPERATION_LABEL: template.name, names.CASE_UID_LABEL: case.uid}
    env = {
        "NODE_NAME": case.node,
        "OPERATION": template.name,
        "ATTEMPT_ID": operation.name if operation else case.name,
        "EXPECTED_BOOT_ID": operation.intent_boot_id if operation else "",
        "PARAMETERS": parameters,
    }
    if operation:
        labels[names.OPERATION_UID_LABEL] = operation.uid
    return bodies.pod(template, name, case.node, labels=labels, env=env, deadline=template.timeout)


def cancel(view: OperationView, now: datetime) -> Plan:
    """Nothing was disturbed yet: stop the drain, and say why."""
    sign_gone = view.seen.ours
    reason = Reason.CLEARED_ITSELF if sign_gone else Reason.CLAIM_LOST
    said = "the fault went before the operation" if sign_gone else "the case ended or lost its node"
    return (_end(view, OperationPhase.CANCELLED, reason, said, now),)


def time_out(view: OperationView, now: datetime) -> Plan:
    """Mark the late Pod for deletion, never with grace 0, and only then let the ladder climb."""
    late = tuple(Delete(POD, pod.name, pod.uid, pod.namespace) for pod in view.pods if not pod.deleting)
    before = view.operation
    if before.intent_at is None and view.seen.drain is not Drain.DONE:
        blocked = f"; blocked: {before.blocked}" if before.blocked else ""
        begun = f"{before.left} pods left" if before.left is not None else _said(view.drain, "the drain never began")
        said = f"{begun}{blocked}"
        return (*late, _end(view, OperationPhase.FAILED, Reason.DRAIN_TIMEOUT, said, now))
    said = _said(view.pod, "no sign of success in time")
    return (*late, _end(view, OperationPhase.FAILED, Reason.TIMED_OUT, said, now))


def operation_plan(move: Move, view: OperationView, drain_template: Template | None, now: datetime) -> Plan:
    """The effects of a move that needs nothing but what was observed. OPERATE needs a live look first."""
    plans: Mapping[Move, Callable[[], Plan]] = {
        Move.SWEEP: lambda: sweep(view.pods),
        Move.CANCEL: lambda: cancel(view, now),
        Move.DRAIN: lambda: drain(view, drain_template, now),
        Move.DRAINED: lambda: _drained(view),
        Move.DRAIN_FAILED: lambda: (
            _end(view, OperationPhase.FAILED, Reason.DRAIN_FAILED, _said(view.drain, "the drain failed"), now),
        ),
        Move.LAUNCH: lambda: launch(view),
        Move.SUCCEED: lambda: (_end(view, OperationPhase.SUCCEEDED, Reason.DONE, _succeeded(view), now),),
        Move.FAIL: lambda: (
            _end(view, OperationPhase.FAILED, Reason.PROGRAM_FAILED, _said(view.pod, "it said nothing"), now),
        ),
        Move.REFUSE: lambda: (
            _end(view, OperationPhase.REFUSED, Reason.REFUSED, _said(view.pod, "it said nothing"), now),
        ),
        Move.TIME_OUT: lambda: time_out(view, now),
    }
    return plans[move]() if move in plans else ()


def _succeeded(view: OperationView) -> str:
    if view.template and view.template.boot_id_changed and view.node:
        return f"new bootID {view.node.boot_id}"
    return _said(view.pod, "done")


def _drained(view: OperationView) -> Plan:
    drained = replace(view.operation, drained=True)
    return (SaveOperation(view.operation, drained), *sweep((view.drain,) if view.drain else ()))
