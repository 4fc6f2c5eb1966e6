"""One handler for each move of an operation."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from remediator.controller import operation_plan, pods
from remediator.controller.effects import Retry
from remediator.controller.fleet import about_to_go, drains_running
from remediator.controller.handlers.base import (
    Dependencies,
    Handler,
    after,
    never,
    nothing,
    read_live,
    seconds_until,
    stopped,
    stops_live,
)
from remediator.controller.operation_view import OperationView, operation_view, ours, rebooted
from remediator.controller.perform import PAUSE_SECONDS
from remediator.core.case import Case
from remediator.core.evidence import Health, judge
from remediator.core.node import Node
from remediator.core.operation_table import Move, operation_move
from remediator.core.pod import pods_to_drain
from remediator.core.policy import Policy, Strategy
from remediator.kube.api import decode
from remediator.kube.api.builtin import POD, on_node
from remediator.kube.wire import errors

Checked = OperationView | Retry
CHANGED = Retry(1.0, "the operation, its case or its node has changed")


async def drain_may_begin(view: OperationView, dependencies: Dependencies, now: datetime) -> Checked:
    """Only so many drains run at once; one that has begun goes on."""
    begun = view.operation.drain_started is not None
    if not begun and drains_running(dependencies.cache) >= dependencies.drains:
        return Retry(5.0, "enough drains are running")
    checked = await _still_wanted(view, dependencies)
    return checked if isinstance(checked, Retry) else replace(checked, avoid=about_to_go(dependencies.cache))


async def intent_may_be_written(view: OperationView, dependencies: Dependencies, now: datetime) -> Checked:
    """Before the point of no return, live: same node, ours, faulty, nothing stopped. Counts the Pods that are left."""
    if await dependencies.performer.paused():
        return Retry(PAUSE_SECONDS, "all new work is paused")
    checked = await _ready(view, dependencies, now)
    if not isinstance(checked, Retry) and rebooted(checked.operation, checked.case, checked.node):
        return CHANGED
    return checked


async def pod_may_be_created(view: OperationView, dependencies: Dependencies, now: datetime) -> Checked:
    """Time may pass between intent and Pod, so all that the intent rests on is read again. Counts the Pods, too."""
    live = await dependencies.performer.operation(view.operation.name)
    if live is None or live.uid != view.operation.uid or live.finished is not None or live.intent_at is None:
        return CHANGED
    return await _ready(replace(view, operation=live), dependencies, now)


async def _ready(view: OperationView, dependencies: Dependencies, now: datetime) -> Checked:
    """Whether the node is ours and faulty and nothing is stopped, live, with the number of Pods left on it."""
    checked = await _still_wanted(view, dependencies)
    if isinstance(checked, Retry):
        return checked
    if checked.template is None:
        return Retry(5.0, "the template is gone, so nobody knows whether the node must be drained")
    if checked.policy is None or checked.node is None:
        return Retry(5.0, "the policy is gone, so nobody knows what the fault is")
    health = judge(checked.node, checked.policy, now).health
    if health is not Health.UNHEALTHY and not (view.follows and health is Health.HEALTHY):
        return Retry(1.0, "the fault does not show any more")
    return replace(checked, pods_left=await _pods_left(view, dependencies, now))


async def claim_is_lost(view: OperationView, dependencies: Dependencies, now: datetime) -> Checked:
    """Whether the claim is gone on the server, too, and not only in our cache."""
    if view.observation.ours or not ours(view.operation, *(await _live(view, dependencies))[:2]):
        return view
    return Retry(1.0, "the cache is behind")


async def not_current(view: OperationView, dependencies: Dependencies, now: datetime) -> Checked:
    """Whether the case on the server does not make this attempt either."""
    case, _, _ = await _live(view, dependencies)
    known = case is not None and case.uid == view.operation.case_uid and case.runs(view.operation.name)
    return Retry(1.0, "the cache is behind") if known else view


async def still_in_vain(view: OperationView, dependencies: Dependencies, now: datetime) -> Checked:
    """Whether it fails by what the server has now, too: a watch may be silent when a Pod ends or a user stops it."""
    performer = dependencies.performer
    if not dependencies.cache.paused and await performer.paused():
        return Retry(PAUSE_SECONDS, "all new work is paused")
    live = await performer.operation(view.operation.name)
    if live is None or live.uid != view.operation.uid:
        return CHANGED
    await _live(replace(view, operation=live), dependencies)
    await performer.pod(pods.drain_pod_name(live) if live.intent_at is None else pods.pod_name(live))
    live_view = operation_view(dependencies.cache, live, now)
    same = operation_move(live_view.observation) is operation_move(view.observation)
    return live_view if same else CHANGED


async def _still_wanted(view: OperationView, dependencies: Dependencies) -> Checked:
    """Before anything disturbs the node, live: the operation is what its case does now, and nothing stops it."""
    case, node, policy = await _live(view, dependencies)
    if case is None or node is None or not ours(view.operation, case, node):
        return CHANGED
    stops = await stops_live(case, node, policy, dependencies)
    if stops:
        return stopped(stops)
    return replace(view, case=case, node=node, policy=policy)


async def _live(view: OperationView, dependencies: Dependencies) -> tuple[Case | None, Node | None, Policy | None]:
    """The operation's case, node and policy as the server has them now.

    A case that the cache does not have is asked for under the name that the operation gives.
    """
    if view.case is not None:
        return await read_live(view.case, dependencies)
    try:
        case = await dependencies.performer.case(view.operation.requested_by) if view.operation.requested_by else None
    except errors.Invalid:  # anybody may write anything there
        case = None
    return case, await dependencies.performer.node(view.operation.node), None


async def _pods_left(view: OperationView, dependencies: Dependencies, now: datetime) -> int:
    """Pods that a drain should have moved away; 0 where no drain was asked for."""
    if view.template is None or view.template.strategy is Strategy.NONE:
        return 0
    client, operations = dependencies.performer.client, dependencies.cache.namespaces.operations
    listed = await client.list_all(POD, fields=on_node(view.operation.node))
    on_it = (decode.operation_pod(pod) for pod in listed)
    return len(pods_to_drain(on_it, operations, view.template.skip_wait_for_delete, now))


def at_deadline(view: OperationView, now: datetime) -> float | None:
    """When the time of the operation is over; sooner, since a fault that goes is no event of the operation."""
    return max(1.0, min(seconds_until(view.deadline, now), 30.0))


HANDLERS: Mapping[Move, Handler[OperationView]] = {
    Move.NOTHING: Handler(operation_plan.remove_finalizer, again=never),
    Move.DELETE_PODS: Handler(operation_plan.delete_pods, again=after(1.0)),
    Move.REJECT: Handler(operation_plan.reject, not_current),
    Move.CANCEL: Handler(operation_plan.cancel, claim_is_lost),
    Move.DRAIN: Handler(operation_plan.drain, drain_may_begin, after(1.0), one_at_a_time=True),
    Move.DRAINED: Handler(operation_plan.drained),
    Move.DRAIN_AGAIN: Handler(operation_plan.drain_again),
    Move.DRAIN_FAILED: Handler(operation_plan.drain_failed, still_in_vain),
    Move.WRITE_INTENT: Handler(operation_plan.write_intent, intent_may_be_written),
    Move.CREATE_POD: Handler(operation_plan.create_pod, pod_may_be_created, after(1.0)),
    Move.WAIT: Handler(nothing, again=at_deadline),
    Move.SUCCEED: Handler(operation_plan.succeed),
    Move.FAIL: Handler(operation_plan.fail),
    Move.REFUSE: Handler(operation_plan.refuse),
    Move.TIME_OUT: Handler(operation_plan.time_out, still_in_vain),
}
