"""One handler for each move of an operation."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime

from remediator.controller import operation_plan, pods
from remediator.controller.effects import Plan, Retry
from remediator.controller.fleet import about_to_go, drains_running
from remediator.controller.handlers.base import (
    STOP_SECONDS,
    Dependencies,
    Handler,
    after,
    never,
    read_live,
    seconds_until,
    stopped,
    stops_live,
)
from remediator.controller.inventory_view import short
from remediator.controller.neighbours import arranged
from remediator.controller.operation_view import OperationView, operation_view, ours, rebooted
from remediator.controller.perform import PAUSE_SECONDS
from remediator.core import external_drain, guard, idle_test
from remediator.core.case import Case
from remediator.core.confirmation import question
from remediator.core.dead_node import on_target
from remediator.core.health import Health
from remediator.core.judgement import judge
from remediator.core.node import Node, Status
from remediator.core.operation import Operation
from remediator.core.operation_table import Move, OperationPodState, operation_move
from remediator.core.policy import Policy
from remediator.core.probe import begins_a_try, calls_for
from remediator.core.template import RunOn, Strategy, Template
from remediator.core.user_pod import pods_to_drain
from remediator.kube.api import decode
from remediator.kube.api.builtin import POD, USER_PODS, on_node
from remediator.kube.wire import errors

Checked = OperationView | Retry
Planned = Callable[[OperationView, datetime], Plan]
UNANSWERED = Retry(1.0, "the second source is being asked")
CHANGED = Retry(1.0, "the operation, its case or its node has changed")


async def drain_may_begin(view: OperationView, dependencies: Dependencies, now: datetime) -> Checked:
    """Only so many drains run at once; one that has begun goes on. Before it begins the fault must show, live."""
    begun = view.operation.drain_started is not None
    ours = view.template is None or view.template.has_drain_pod
    if ours and not begun and drains_running(dependencies.cache) >= dependencies.drains:
        return Retry(5.0, "enough drains are running")
    checked = _confirmed(await _still_wanted(view, dependencies, now), dependencies)
    if isinstance(checked, Retry):
        return checked
    if not begun and _well(checked, dependencies, now):
        return CHANGED
    return replace(checked, avoid=about_to_go(dependencies.cache))


async def intent_may_be_written(view: OperationView, dependencies: Dependencies, now: datetime) -> Checked:
    """Before the point of no return, live: same node, ours, faulty, nothing stopped. Counts the Pods that are left."""
    if await dependencies.performer.paused():
        return Retry(PAUSE_SECONDS, "all new work is paused")
    checked = await _ready(view, dependencies, now)
    if not isinstance(checked, Retry) and rebooted(checked.operation, checked.case, checked.node):
        return CHANGED
    return _confirmed(checked, dependencies)


async def pod_may_be_created(view: OperationView, dependencies: Dependencies, now: datetime) -> Checked:
    """Time may pass between intent and Pod, so all that the intent rests on is read again. Counts the Pods, too.

    The Pod may have been made by another leader, and taken away since: the operation says whether it was seen.
    """
    live = await dependencies.performer.operation(view.operation.name)
    if live is None or live.uid != view.operation.uid or live.finished is not None:
        return CHANGED
    if live.intent_at is None or live.pod:
        return CHANGED
    checked = _confirmed(await _ready(replace(view, operation=live), dependencies, now), dependencies)
    if isinstance(checked, Retry):
        return checked
    if checked.stops:
        return stopped(checked.stops)
    return checked if checked.twice or checked.pods_left else await arranged(checked, dependencies, now)


async def _ready(view: OperationView, dependencies: Dependencies, now: datetime) -> Checked:
    """Whether the node is ours and faulty and nothing is stopped, live, with the number of Pods left on it."""
    checked = await _still_wanted(view, dependencies, now)
    if isinstance(checked, Retry):
        return checked
    if checked.template is None:
        return Retry(5.0, "the template is gone, so nobody knows whether the node must be drained")
    if checked.policy is None or checked.node is None:
        return Retry(5.0, "the policy is gone, so nobody knows what the fault is")
    health = judge(checked.node, checked.policy, now).health
    name, cache = view.operation.name, dependencies.cache
    few = checked.case is not None and short(cache, checked.case, checked.policy, checked.node, name, now)
    if checked.case is None or calls_for(checked.case, name, health, few) is not Health.UNHEALTHY:
        return Retry(1.0, "the node does not show any more what the operation is for")
    if checked.template.cannot_begin(_boot(checked.operation, checked.node)):
        return Retry(5.0, guard.NO_BOOT)
    if alive := await _may_live(checked.node, checked.policy, checked.template, dependencies):
        return alive
    tests = cache.pods.by("tested", checked.node.name) if checked.template.run_on is RunOn.TARGET else ()
    if idle_test.holds_up(tests, now):
        return Retry(1.0, "a test of the idle node, which may hold its GPUs, has not ended yet")
    external = checked.template.strategy is Strategy.EXTERNAL
    if external and not external_drain.answered(checked.operation, checked.template, checked.node, now):
        return Retry(5.0, f"not drained any more: {external_drain.standing(checked.template, checked.node)}")
    return replace(checked, pods_left=await _pods_left(view, dependencies, now))


def _boot(operation: Operation, node: Node) -> str:
    """The boot for which an operation is: that of its intent, once there is one."""
    return operation.intent_boot_id if operation.intent_at is not None else node.boot_id


def _confirmed(checked: Checked, dependencies: Dependencies) -> Checked:
    """The view with what the second source stops it with; what completes or judges a try was confirmed with it."""
    if isinstance(checked, Retry) or not begins_a_try(checked.case, checked.operation.name):
        return checked
    asked = question(checked.policy, checked.operation.node)
    answer = dependencies.confirmations.answer(asked) if asked else None
    if asked and answer is None:
        return UNANSWERED
    return replace(checked, stops=guard.unconfirmed(answer)) if answer else checked


async def _may_live(node: Node, policy: Policy, template: Template, dependencies: Dependencies) -> Retry | None:
    """Why nothing is done to a node whose kubelet does not report; None for any other, and where it is dead."""
    if node.ready is not Status.UNKNOWN or not policy.asks_unknown:
        return None
    if template.name in on_target(dependencies.cache.templates):
        return Retry(STOP_SECONDS, f"{template.name} would run on the node itself")
    leases = dependencies.leases
    alive = await leases.alive(node.name) if leases else "nobody watches its Lease"
    return Retry(STOP_SECONDS, alive) if alive else None


def _well(view: OperationView, dependencies: Dependencies, now: datetime) -> bool:
    """Whether the node proves that nothing is to be done: a watch may be silent when a fault goes."""
    if view.node is None or view.policy is None or view.case is None:
        return False
    name = view.operation.name
    few = short(dependencies.cache, view.case, view.policy, view.node, name, now)
    health = judge(view.node, view.policy, now).health
    return calls_for(view.case, name, health, few) is Health.HEALTHY


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


async def pod_is_gone(view: OperationView, dependencies: Dependencies, now: datetime) -> Checked:
    """Whether a Pod that is gone is so on the server, too, and not only in our cache."""
    gone = view.observation.exit is OperationPodState.GONE
    return CHANGED if gone and await dependencies.performer.pod(pods.pod_name(view.operation)) else view


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
    # One that has only waited for its second source has not failed.
    absent = live_view.observation.exit is OperationPodState.ABSENT
    waits = same and live.intent_at is not None and absent and not live_view.stops
    return (_confirmed(live_view, dependencies) if waits else live_view) if same else CHANGED


async def _still_wanted(view: OperationView, dependencies: Dependencies, now: datetime) -> Checked:
    """Before anything disturbs the node, live: the operation is what its case does now, and nothing stops it."""
    case, node, policy = await _live(view, dependencies)
    if case is None or node is None or not ours(view.operation, case, node):
        return CHANGED
    stops = await stops_live(case, node, policy, dependencies, now)
    if stops:
        return stopped(stops)
    leased = await dependencies.node_leases.take(case, node) if dependencies.node_leases else None
    return leased or replace(view, case=case, node=node, policy=policy)


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
    """Pods that a drain should have moved away; 0 where no drain of ours was asked for."""
    if view.template is None or not view.template.has_drain_pod:
        return 0
    client, operations = dependencies.performer.client, dependencies.cache.namespaces.operations
    listed = await client.list_all(POD, fields=on_node(view.operation.node), limit=USER_PODS)
    return len(pods_to_drain((decode.user_pod(pod) for pod in listed), operations, view.template, now))


def at_deadline(view: OperationView, now: datetime) -> float | None:
    """When the time of the operation is over; sooner, since a fault that goes is no event of the operation."""
    soon = [seconds_until(view.again, now)] if view.again is not None and view.again > now else []
    return max(1.0, min([seconds_until(view.deadline, now), 30.0, *soon]))


def _unless_stopped(plan: Planned) -> Planned:
    """The plan, or the end of an operation whose second source does not agree: nothing has been done to the node."""
    return lambda view, now: operation_plan.cancel(view, now) if view.stops else plan(view, now)


HANDLERS: Mapping[Move, Handler[OperationView]] = {
    Move.NOTHING: Handler(operation_plan.remove_finalizer, again=never),
    Move.DELETE_PODS: Handler(operation_plan.delete_pods, again=after(1.0)),
    Move.REJECT: Handler(operation_plan.reject, not_current),
    Move.CANCEL: Handler(operation_plan.cancel, claim_is_lost),
    Move.DRAIN: Handler(_unless_stopped(operation_plan.drain), drain_may_begin, after(1.0), one_at_a_time=True),
    Move.DRAINED: Handler(operation_plan.drained),
    Move.DRAIN_AGAIN: Handler(operation_plan.drain_again),
    Move.DRAIN_FAILED: Handler(operation_plan.drain_failed, still_in_vain),
    Move.WRITE_INTENT: Handler(_unless_stopped(operation_plan.write_intent), intent_may_be_written),
    Move.CREATE_POD: Handler(operation_plan.create_pod, pod_may_be_created, after(1.0)),
    Move.WAIT: Handler(operation_plan.wait, pod_is_gone, at_deadline),
    Move.SUCCEED: Handler(operation_plan.succeed),
    Move.FAIL: Handler(operation_plan.fail),
    Move.REFUSE: Handler(operation_plan.refuse),
    Move.TIME_OUT: Handler(operation_plan.time_out, still_in_vain),
}
