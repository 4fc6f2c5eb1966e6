"""A move of an operation → its effects, in order. Pure: it builds every request body and sends nothing."""

import json
from dataclasses import replace
from datetime import datetime, timedelta

from remediator.controller import pods
from remediator.controller.effects import Create, Delete, Patch, Plan, SaveOperation
from remediator.controller.operation_view import OperationView
from remediator.core import names
from remediator.core.case import OperationPhase
from remediator.core.operation_table import Drain
from remediator.core.pod import Pod, PodPhase
from remediator.core.policy import Template
from remediator.core.reasons import Reason
from remediator.kube import api
from remediator.kube.api import encode
from remediator.kube.api.builtin import POD

NO_MESSAGE = "the program left no message"


def _ended(view: OperationView, phase: OperationPhase, reason: Reason, message: str, now: datetime) -> SaveOperation:
    before = view.operation
    after = replace(before, phase=phase, reason=reason.value, message=message, finished=now)
    return SaveOperation(before, after)


def _message(pod: Pod | None, otherwise: str) -> str:
    return (pod.message if pod else "") or otherwise


def remove_finalizer(view: OperationView, now: datetime) -> Plan:
    """An ended operation that somebody deleted may go once its case has recorded it."""
    operation, attempt = view.operation, view.case.attempt if view.case else None
    if not operation.deleting or names.CASE_FINALIZER not in operation.finalizers:
        return ()
    if attempt and attempt.operation == operation.name and attempt.finished is None:
        return ()
    body = encode.without_finalizer(operation.version, operation.finalizers, names.CASE_FINALIZER)
    return (Patch(api.OPERATION, operation.name, body),)


def delete_pods(view: OperationView, now: datetime) -> Plan:
    """Delete the Pods of an ended operation."""
    return pods.deletions(view.pods)


def drain(view: OperationView, now: datetime) -> Plan:
    """Record that the drain begins, then create its Pod."""
    before, template = view.operation, view.drain_template
    if template is None:
        message = f"no template {names.DRAIN_TEMPLATE}"
        return (_ended(view, OperationPhase.FAILED, Reason.UNKNOWN_OPERATION, message, now),)
    begun = replace(
        before,
        phase=OperationPhase.DRAINING,
        drain_started=before.drain_started or now,
        drain_pod=pods.drain_pod_name(before),
    )
    return (SaveOperation(before, begun), Create(POD, _drain_pod(view, template, now), gated=True))


def _drain_pod(view: OperationView, template: Template, now: datetime) -> encode.Body:
    operation, own = view.operation, view.template
    if view.case is None or own is None:
        raise ValueError(f"operation {operation.name} has no case or template")
    left = max(timedelta(seconds=1), view.deadline - now)  # time in which nobody could act does not count
    parameters = {
        "operation": operation.name,
        "operationUID": operation.uid,
        "caseUID": operation.case_uid,
        "strategy": own.strategy.value,
        "timeoutSeconds": int(left.total_seconds()),
        "case": view.case.name,
        "policy": view.case.policy,
        "namespace": view.system,
    }
    if own.skip_wait_for_delete is not None:
        parameters["skipWaitForDeleteSeconds"] = max(1, int(own.skip_wait_for_delete.total_seconds()))
    longer = replace(template, timeout=left + pods.START_GRACE)
    name = pods.drain_pod_name(operation)
    return pods.pod(longer, name, view.case, operation, json.dumps(parameters), view.avoid)


def drained(view: OperationView, now: datetime) -> Plan:
    """Record that the drain succeeded, then delete its Pod."""
    after = replace(view.operation, drained_at=now)
    return (SaveOperation(view.operation, after), *pods.deletions((view.drain,) if view.drain else ()))


def drain_failed(view: OperationView, now: datetime) -> Plan:
    """The drain gave up."""
    message = _message(view.drain, "the drain failed")
    return (_ended(view, OperationPhase.FAILED, Reason.DRAIN_FAILED, message, now),)


def drain_again(view: OperationView, now: datetime) -> Plan:
    """Begin a new round in place of a drain Pod that was killed, preempted or evicted; the time goes on."""
    before = view.operation
    message = f"the drain Pod was lost: {_message(view.drain, NO_MESSAGE)}"
    after = replace(before, drain_round=before.drain_round + 1, message=message)
    return (SaveOperation(before, after), *pods.deletions((view.drain,) if view.drain else ()))


def write_intent(view: OperationView, now: datetime) -> Plan:
    """The point of no return: from here on the operation's Pod may exist. Drain once more where Pods came meanwhile."""
    before = view.operation
    if view.pods_left:
        message = _pods_came(view)
        return (
            SaveOperation(
                before, replace(before, drained_at=None, drain_round=before.drain_round + 1, message=message)
            ),
        )
    after = replace(
        before,
        phase=OperationPhase.OPERATING,
        intent_boot_id=view.node.boot_id if view.node else "",
        intent_at=now,
        pod=pods.pod_name(before),
        message="",
    )
    return (SaveOperation(before, after),)


def create_pod(view: OperationView, now: datetime) -> Plan:
    """Create the Pod under the name that follows from the operation: made twice is "already exists".

    Beside Pods that came after the drain it is not made: the operation says so and waits for them to go, up to its
    deadline. No new drain begins, since a request of an earlier leader to create the Pod may be on its way.
    """
    operation = view.operation
    if view.case is None or view.template is None:
        return ()
    if view.pods_left:
        waiting = replace(operation, message=_pods_came(view))
        return (SaveOperation(operation, waiting),) if waiting != operation else ()
    parameters = json.dumps({**operation.parameters, "caseUID": operation.case_uid})
    body = pods.pod(view.template, pods.pod_name(operation), view.case, operation, parameters)
    return (Create(POD, body, gated=True),)


def _pods_came(view: OperationView) -> str:
    return f"{view.pods_left} pods came meanwhile"


def cancel(view: OperationView, now: datetime) -> Plan:
    """The operation has not touched the node: end it, and record why."""
    reason, message = Reason.CLEARED_ITSELF, "the fault went before the operation"
    if not view.observation.ours:
        reason, message = Reason.CLAIM_LOST, "the case ended or lost its node"
    elif view.stops:
        reason, message = view.stops[0].reason, view.stops[0].message
    elif view.observation.rebooted:
        reason, message = Reason.REBOOTED, "the node has booted since: what it shows now is waited for"
    return (_ended(view, OperationPhase.CANCELLED, reason, message, now),)


def reject(view: OperationView, now: datetime) -> Plan:
    """It stands beside the attempts of its case, past every guard: nothing is done for it."""
    message = "no case makes this attempt now; only the controller makes NodeOperations"
    return (_ended(view, OperationPhase.REFUSED, Reason.NOT_CURRENT_ATTEMPT, message, now),)


def succeed(view: OperationView, now: datetime) -> Plan:
    """It did what it is for."""
    rebooted = view.template is not None and view.template.boot_id_changed and view.node is not None
    message = f"new bootID {view.node.boot_id}" if rebooted and view.node else _message(view.pod, "done")
    return (_ended(view, OperationPhase.SUCCEEDED, Reason.DONE, message, now),)


def fail(view: OperationView, now: datetime) -> Plan:
    """Its program failed or was killed."""
    return (_ended(view, OperationPhase.FAILED, Reason.PROGRAM_FAILED, _message(view.pod, NO_MESSAGE), now),)


def refuse(view: OperationView, now: datetime) -> Plan:
    """Its program must not run on this node."""
    return (_ended(view, OperationPhase.REFUSED, Reason.REFUSED, _message(view.pod, NO_MESSAGE), now),)


def time_out(view: OperationView, now: datetime) -> Plan:
    """Mark the late Pods for deletion, never with grace 0, and only then let the ladder climb."""
    late = tuple(Delete(POD, pod.name, pod.uid, pod.namespace) for pod in view.pods if not pod.deleting)
    drain_over = view.observation.drain in (Drain.NOT_NEEDED, Drain.RECORDED)
    phase = OperationPhase.FAILED if _ran(view) else OperationPhase.CANCELLED
    if view.operation.intent_at is None and not drain_over:
        return (*late, _ended(view, phase, Reason.DRAIN_TIMEOUT, _drain_progress(view), now))
    if view.pod is None and view.stops:  # nothing ran, since a user stopped it
        stop = view.stops[0]
        return (*late, _ended(view, OperationPhase.CANCELLED, stop.reason, stop.message, now))
    nothing = "no sign of success in time" if view.operation.intent_at else "no clear evidence in time"
    if view.operation.intent_at and view.operation.message:
        nothing = f"{nothing}; {view.operation.message}"
    return (*late, _ended(view, phase, Reason.TIMED_OUT, _message(view.pod, nothing), now))


def _ran(view: OperationView) -> bool:
    """Whether any Pod of the operation has run, or may have."""
    operation, waits = view.operation, view.drain is None or view.drain.phase is PodPhase.PENDING
    begun = operation.intent_at or operation.drained_at or operation.drain_round or operation.left is not None
    return bool(begun) or not waits


def _drain_progress(view: OperationView) -> str:
    operation = view.operation
    if operation.left is None:
        progress = _message(view.drain, "the drain never began")
    else:
        progress = f"{operation.left} pods left"
    return f"{progress}; blocked: {operation.blocked}" if operation.blocked else progress
