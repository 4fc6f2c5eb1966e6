"""A move of an operation → its effects, in order. Pure: it builds every request body and sends nothing."""

import json
from dataclasses import replace
from datetime import datetime, timedelta

from remediator.controller import marks, pods
from remediator.controller.effects import ChangeNode, Create, Delete, Patch, Plan, SaveOperation
from remediator.controller.operation_view import OperationView
from remediator.core import external_drain, guard, names
from remediator.core.case import Case
from remediator.core.node import Status
from remediator.core.operation import OperationPhase
from remediator.core.operation_table import DrainState, OperationPodState
from remediator.core.outcome import OperationOutcome, PodEnd, outcome
from remediator.core.pod import Pod, PodPhase
from remediator.core.reasons import NEVER_STARTED, Reason
from remediator.core.template import RunOn, Strategy, Template
from remediator.kube import api
from remediator.kube.api import encode
from remediator.kube.api.builtin import POD

NO_MESSAGE = "the program left no message"


def _ended(view: OperationView, phase: OperationPhase, reason: Reason, message: str, now: datetime) -> SaveOperation:
    before = view.operation
    if phase is OperationPhase.FAILED and view.probe and not _refutes(view):
        phase = OperationPhase.CANCELLED
    pod = view.pod.name if view.pod is not None else before.pod
    after = replace(before, phase=phase, reason=reason.value, message=message, finished=now, pod=pod)
    return SaveOperation(before, after)


def _refutes(view: OperationView) -> bool:
    """Whether a probe that has not succeeded says something of the node: its program said so, or ran for too long.

    What runs on a node whose kubelet does not report nobody knows: its Pod is Running by the last that was heard of it.
    """
    heard = view.node is not None and view.node.ready is not Status.UNKNOWN
    running = view.pod is not None and view.pod.phase is PodPhase.RUNNING
    too_long = view.end is not None and view.end.pod is PodEnd.TOO_LONG  # its kubelet was faster than we
    return (
        view.observation.exit is OperationPodState.FAILED
        or (view.observation.exit is OperationPodState.RUNNING and running and heard)
        or too_long
    )


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
    if view.template is not None and view.template.strategy is Strategy.EXTERNAL:
        return _hand_over(view, view.template, now)
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


def _hand_over(view: OperationView, template: Template, now: datetime) -> Plan:
    """Record since when another system is asked to drain the node, then ask it. A drain Pod of ours has to stop."""
    before = view.operation
    if view.case is None:
        raise ValueError(f"operation {before.name} has no case")
    since = before.drain_started or now
    message = f"another system drains the node: waits for its condition {template.drain_condition}"
    begun = replace(before, phase=OperationPhase.DRAINING, drain_started=since, message=message)
    request = ChangeNode(before.node, marks.request_drain(view.case, since))
    return (SaveOperation(before, begun), *pods.deletions((view.drain,) if view.drain else ()), request)


def _drain_pod(view: OperationView, template: Template, now: datetime) -> encode.Body:
    operation, own = view.operation, view.template
    if view.case is None or own is None:
        raise ValueError(f"operation {operation.name} has no case or template")
    left = max(timedelta(seconds=1), view.deadline - now)  # time in which nobody could act does not count
    parameters = _drain_orders(view, view.case) | encode.drain_parameters(own, left, operation.unjudged)
    longer = replace(template, timeout=left + pods.START_GRACE)
    name = pods.drain_pod_name(operation)
    return pods.pod(longer, name, view.case, operation, json.dumps(parameters), view.api_nodes, view.avoid)


# Whose drain it is, where it looks up what stops it, and how long it may take: no parameter says that.
WHOSE = frozenset({"operation", "operationUID", "caseUID", "case", "policy", "namespace", "timeoutSeconds"})
# To whom a program measures, whose other end it is, and that it tests an idle node: no parameter says that either.
TESTS = frozenset({"neighbours", "serve", "idleTest"})


def _drain_orders(view: OperationView, case: Case) -> dict[str, object]:
    """What the program of a drain is told of whose drain it is."""
    orders = {
        "operation": view.operation.name,
        "operationUID": view.operation.uid,
        "caseUID": view.operation.case_uid,
        "case": case.name,
        "policy": case.policy,
        "namespace": view.system,
    }
    return {word: value for word, value in orders.items() if value != ""}


def drained(view: OperationView, now: datetime) -> Plan:
    """Record that the drain succeeded, then delete its Pod."""
    after = replace(view.operation, drained_at=now)
    return (SaveOperation(view.operation, after), *pods.deletions((view.drain,) if view.drain else ()))


def drain_failed(view: OperationView, now: datetime) -> Plan:
    """The drain gave up: its own time was over, or it may not do what it has to."""
    message = _message(view.drain, "the drain failed")
    reason = Reason.DRAIN_TIMEOUT if view.observation.overdue else Reason.DRAIN_FAILED
    return (_ended(view, OperationPhase.FAILED, reason, message, now),)


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
        drain_pod=pods.pod_name(before) if before.template == names.DRAIN_TEMPLATE else before.drain_pod,
        message="",
    )
    return (SaveOperation(before, after),)


def create_pod(view: OperationView, now: datetime) -> Plan:
    """Create the Pod under the name that follows from the operation: made twice is "already exists".

    Beside Pods that came after the drain it is not made: the operation says so and waits for them to go, up to its
    deadline. No new drain begins, since a request of an earlier leader to create the Pod may be on its way. Nor is it
    made where it would do the same once more. Operands of the GPU operator that it pauses are resumed by the passes
    over the node, once no operation is at work there.
    """
    operation = view.operation
    if view.case is None or view.template is None:
        return ()
    if view.twice or view.pods_left:
        waiting = replace(operation, message=_repeats(view) if view.twice else _pods_came(view))
        return (SaveOperation(operation, waiting),) if waiting != operation else ()
    template, parameters = _timed(view.template, view.deadline - now), json.dumps(_parameters(view, view.case, now))
    body = pods.pod(template, pods.pod_name(operation), view.case, operation, parameters, view.api_nodes)
    paused = (ChangeNode(operation.node, marks.pause_operands(view.case)),) if view.template.pauses_gpu_operands else ()
    return (*paused, Create(POD, body, gated=True))


def _parameters(view: OperationView, case: Case, now: datetime) -> dict[str, object]:
    """What the program is told: what was asked for, but for what only the controller says, and that."""
    operation = view.operation
    orders: dict[str, object] = {}
    if operation.template == names.DRAIN_TEMPLATE:  # the drain itself is what was asked for
        left = int((view.deadline - now).total_seconds())
        orders = _drain_orders(view, case) | {"timeoutSeconds": left}
    ours = TESTS | WHOSE if orders else TESTS
    asked = {word: value for word, value in operation.parameters.items() if word not in ours}
    given = {"strategy": Strategy.EVICT.value} if orders else {}
    if operation.template == names.ISOLATE_TEMPLATE:
        orders = _whose_gpus(case)
    if view.neighbours is not None:
        orders = {**orders, "neighbours": view.neighbours}
    return {**given, **asked, **orders, "caseUID": operation.case_uid}


def _timed(template: Template, left: timedelta) -> Template:
    """The order of a watchdog says how much of the time is left: when that is over, nobody waits for its end."""
    ordered = template.run_on is RunOn.WATCHDOG
    return replace(template, timeout=max(timedelta(seconds=1), left)) if ordered else template


def _whose_gpus(case: Case) -> dict[str, object]:
    """What the program that isolates a GPU is told of the fault: the UUIDs that diagnostics found, and the condition's
    own words. A rung that names GPUs of its own is outranked: it is about all nodes.
    """
    uuids = ",".join(gpu.uuid for gpu in case.gpus if gpu.uuid)
    return {"case": case.name, "gpus": uuids, "fault": case.trigger.message if case.trigger else ""}


def _repeats(view: OperationView) -> str:
    return f"somebody has removed the operation that made Pod {view.twice}: no second Pod does the same"


def _pods_came(view: OperationView) -> str:
    return f"{view.pods_left} pods came meanwhile"


def wait(view: OperationView, now: datetime) -> Plan:
    """Record that its Pod was there, once: where its object is gone afterwards, no second one is made."""
    operation = view.operation
    seen = view.pod.name if view.pod is not None and operation.intent_at is not None else operation.pod
    gone = _gone(view)
    message = f"{gone}; its program may go on, so its time-out is waited for" if gone else operation.message
    after = replace(operation, pod=seen, message=message)
    return (SaveOperation(operation, after),) if after != operation else ()


def cancel(view: OperationView, now: datetime) -> Plan:
    """The operation has not touched the node: end it, and record why."""
    reason, message = Reason.CLEARED_ITSELF, "the fault went before the operation"
    if view.probe:
        reason, message = Reason.UNHEALTHY_AGAIN, "the fault shows: there is no health to prove"
    if not view.observation.ours:
        reason, message = Reason.CLAIM_LOST, "the case ended or lost its node"
    elif view.stops:
        reason, message = view.stops[0].reason, view.stops[0].message
    elif view.observation.rebooted:
        reason, message = Reason.REBOOTED, "the node has booted since: what it shows now is waited for"
    return (*_take_drain_back(view), _ended(view, OperationPhase.CANCELLED, reason, message, now))


def reject(view: OperationView, now: datetime) -> Plan:
    """It stands beside the attempts of its case, past every guard: nothing is done for it."""
    message = "no case makes this attempt now; only the controller makes operations of a case"
    return (_ended(view, OperationPhase.REFUSED, Reason.NOT_CURRENT_ATTEMPT, message, now),)


def succeed(view: OperationView, now: datetime) -> Plan:
    """It did what it is for."""
    rebooted = view.template is not None and view.template.boot_id_changed and view.node is not None
    message = f"new bootID {view.node.boot_id}" if rebooted and view.node else _message(view.pod, "done")
    return (_ended(view, OperationPhase.SUCCEEDED, Reason.DONE, message, now),)


def fail(view: OperationView, now: datetime) -> Plan:
    """Its program failed, or its Pod ended without a result."""
    end = _outcome(view)
    return (_ended(view, end.phase, end.reason, _message(view.pod, NO_MESSAGE), now),)


def refuse(view: OperationView, now: datetime) -> Plan:
    """Its program must not run on this node."""
    return (_ended(view, OperationPhase.REFUSED, Reason.REFUSED, _message(view.pod, NO_MESSAGE), now),)


def time_out(view: OperationView, now: datetime) -> Plan:
    """Mark the late Pods for deletion, never with grace 0, and only then let the ladder climb."""
    late = tuple(Delete(POD, pod.name, pod.uid, pod.namespace) for pod in view.pods if not pod.deleting)
    drain_over = view.observation.drain in (DrainState.NOT_NEEDED, DrainState.RECORDED)
    phase = OperationPhase.FAILED if _ran(view) else OperationPhase.CANCELLED
    end = _outcome(view)
    if view.operation.intent_at is None and not drain_over:
        reason = end.reason if end.reason in NEVER_STARTED and phase is OperationPhase.CANCELLED else None
        ended = _ended(view, phase, reason or Reason.DRAIN_TIMEOUT, _drain_progress(view), now)
        return (*late, *_take_drain_back(view), ended)
    if view.observation.exit is OperationPodState.ABSENT and view.stops:  # nothing ran, since a user stopped it
        stop = view.stops[0]
        return (*late, _ended(view, OperationPhase.CANCELLED, stop.reason, stop.message, now))
    if view.operation.intent_at is None:
        return (*late, *_take_drain_back(view), _ended(view, phase, Reason.TIMED_OUT, _unclear(view), now))
    if view.operation.unjudged and view.operation.drained_at is None:  # its own program drains, and nobody has judged
        return (*late, _ended(view, OperationPhase.CANCELLED, Reason.DRAIN_TIMEOUT, _drain_progress(view), now))
    return (*late, _ended(view, end.phase, end.reason, _message(view.pod, _no_sign(view)), now))


def _unclear(view: OperationView) -> str:
    """Why nothing has been done in time, though nothing stood against it."""
    known = view.template is None or view.node is None or not view.template.cannot_begin(view.node.boot_id)
    return "no clear evidence in time" if known else f"no clear evidence in time: {guard.NO_BOOT}"


def _gone(view: OperationView) -> str:
    """What is said of a Pod whose object is gone; "" where it is not."""
    if view.observation.exit is not OperationPodState.GONE:
        return ""
    pod, node = view.operation.pod, view.operation.node
    return f"somebody has removed Pod {pod} by force: what it did to {node} is unknown, and no second one is made"


def _no_sign(view: OperationView) -> str:
    """What is known of an operation that may have run, and has shown no success: a node that hangs is said to."""
    silent = view.node is not None and view.node.ready is Status.UNKNOWN
    hangs = "its kubelet does not report: look at the BMC" if silent else ""
    return "; ".join(filter(None, ("no sign of success in time", hangs, _gone(view) or view.operation.message)))


def _take_drain_back(view: OperationView) -> Plan:
    """What another system was asked for ends with an operation that has not touched the node.

    It is written before the end: a crash in between leaves an operation that is ended again, and no request for ever.
    """
    external = view.template is not None and view.template.strategy is Strategy.EXTERNAL
    shown = view.node is not None and view.node.drain_requested is not None
    if view.operation.drain_started is None or view.operation.intent_at is not None or not (external or shown):
        return ()
    return (ChangeNode(view.operation.node, marks.take_drain_back(view.operation)),)


def _ran(view: OperationView) -> bool:
    """Whether any Pod of the operation has disturbed the node, or may have.

    A drain says how many Pods are left before it asks the first one to go. One that has said nothing has had no answer
    from the API server, or never started. One that waits for somebody to judge its evictions has not ended by what
    the node or its Pods are: it counts as little. Another system may have done anything since it was asked.
    """
    operation = view.operation
    if view.template is not None and view.template.strategy is Strategy.EXTERNAL and operation.drain_started:
        return True
    moved = operation.left is not None and not operation.unjudged
    return bool(operation.intent_at or operation.drained_at or moved)


def _outcome(view: OperationView) -> OperationOutcome:
    if view.end is None:
        raise ValueError(f"nothing is known of the end of operation {view.operation.name}")
    return outcome(view.end)


def _drain_progress(view: OperationView) -> str:
    operation = view.operation
    if view.template is not None and view.template.strategy is Strategy.EXTERNAL:
        return external_drain.standing(view.template, view.node)
    if operation.left is None:
        progress = _message(view.drain, "the drain never began")
    else:
        progress = f"{operation.left} pods left"
    return f"{progress}; blocked: {operation.blocked}" if operation.blocked else progress
