"""A move of an operation → effects, in order. Pure: every body is built here, nothing is sent."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from remediator.controller import observe, pods
from remediator.controller.effects import Create, Delete, Plan, SaveOperation
from remediator.controller.observe import OperationView
from remediator.core import names
from remediator.core.case import OperationPhase
from remediator.core.lifecycle import Drain, Move
from remediator.core.node import Node
from remediator.core.pod import Pod
from remediator.core.policy import Template
from remediator.core.reasons import Reason
from remediator.kube.api import encode as bodies
from remediator.kube.api.builtin import POD


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
    return (SaveOperation(before, begun), Create(POD, body, gated=True))


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
    if own.skip_wait_for_delete is not None:
        parameters["skipWaitForDeleteSeconds"] = max(1, int(own.skip_wait_for_delete.total_seconds()))
    longer = replace(template, timeout=left + pods.START_GRACE)
    return pods.pod(longer, observe.drain_pod_name(operation), view.case, operation, json.dumps(parameters))


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
    body = pods.pod(view.template, observe.pod_name(operation), view.case, operation, parameters)
    return (Create(POD, body, gated=True),)


def cancel(view: OperationView, now: datetime) -> Plan:
    """Nothing was disturbed yet: stop the drain, and say why."""
    sign_gone = view.observation.ours
    reason = Reason.CLEARED_ITSELF if sign_gone else Reason.CLAIM_LOST
    said = "the fault went before the operation" if sign_gone else "the case ended or lost its node"
    return (_end(view, OperationPhase.CANCELLED, reason, said, now),)


def time_out(view: OperationView, now: datetime) -> Plan:
    """Mark the late Pod for deletion, never with grace 0, and only then let the ladder climb."""
    late = tuple(Delete(POD, pod.name, pod.uid, pod.namespace) for pod in view.pods if not pod.deleting)
    before = view.operation
    if before.intent_at is None and view.observation.drain not in (Drain.NOT_NEEDED, Drain.RECORDED):
        blocked = f"; blocked: {before.blocked}" if before.blocked else ""
        begun = f"{before.left} pods left" if before.left is not None else _said(view.drain, "the drain never began")
        said = f"{begun}{blocked}"
        return (*late, _end(view, OperationPhase.FAILED, Reason.DRAIN_TIMEOUT, said, now))
    said = _said(view.pod, "no health of success in time")
    return (*late, _end(view, OperationPhase.FAILED, Reason.TIMED_OUT, said, now))


def plan(move: Move, view: OperationView, drain_template: Template | None, now: datetime) -> Plan:
    """The effects of a move that needs nothing but what was observed. OPERATE needs a live look first."""
    plans: Mapping[Move, Callable[[], Plan]] = {
        Move.DELETE_PODS: lambda: pods.sweep(view.pods),
        Move.CANCEL: lambda: cancel(view, now),
        Move.DRAIN: lambda: drain(view, drain_template, now),
        Move.DRAINED: lambda: _drained(view),
        Move.DRAIN_FAILED: lambda: (
            _end(view, OperationPhase.FAILED, Reason.DRAIN_FAILED, _said(view.drain, "the drain failed"), now),
        ),
        Move.CREATE_POD: lambda: launch(view),
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
    return (SaveOperation(view.operation, drained), *pods.sweep((view.drain,) if view.drain else ()))
