"""ClusterCache → the inputs of the decision table of an operation, and of its plans. Pure: it only reads stores."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from remediator import windows
from remediator.controller import pods
from remediator.controller.cache import ClusterCache
from remediator.controller.fleet import hosted
from remediator.controller.inventory_view import short
from remediator.core import external_drain, guard, names, places, probe
from remediator.core.absence import Absences
from remediator.core.case import Block, Case, reason_to_end
from remediator.core.health import Health
from remediator.core.judgement import judge
from remediator.core.node import Node, Status
from remediator.core.operation import Operation
from remediator.core.operation_table import DrainState, OperationObservation, OperationPodState
from remediator.core.outcome import EndObservation, PodEnd, pod_end
from remediator.core.places import SHIPPED, ApiNodes
from remediator.core.pod import Pod
from remediator.core.policy import Policy
from remediator.core.template import RunOn, Strategy, Template
from remediator.core.trust import STALE_AFTER

# How long an operation may still take after somebody deleted its template.
WITHOUT_TEMPLATE = timedelta(minutes=30)
# How long after a drain Pod that was lost was made the next one is: twice as long each round.
LOST_PAUSE, LONGEST_LOST_PAUSE = timedelta(seconds=5), timedelta(minutes=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationView:
    """One operation with all that its pass needs.

    Attributes:
        drain: The drain Pod of this round.
        pod: The operation's own Pod.
        pods: All Pods of the operation.
        deadline: When the present stage is over.
        probe: It only proves health.
        drain_template: The template of the drain Pod.
        system: The namespace whose pause the drain looks up.
        stops: What a user, or what the node runs, stops its case with.
        pods_left: Pods still on the node, counted live before the intent and before its own Pod.
        twice: The Pod that its own one would repeat, "" where there is none.
        avoid: Nodes on which the drain Pod would soon be lost.
        again: When a drain Pod that was lost is made anew.
        end: What is observed of it where it ends in vain now.
        api_nodes: Nodes on which Pods with rights in the API may run.
        neighbours: What its program is told of them; None where it measures to none.
    """

    observation: OperationObservation
    operation: Operation
    case: Case | None
    node: Node | None
    policy: Policy | None
    template: Template | None
    drain: Pod | None
    pod: Pod | None
    pods: tuple[Pod, ...]
    deadline: datetime
    probe: bool
    drain_template: Template | None
    system: str
    stops: tuple[Block, ...] = ()
    pods_left: int = 0
    avoid: tuple[str, ...] = ()
    api_nodes: ApiNodes = SHIPPED
    again: datetime | None = None
    end: EndObservation | None = None
    twice: str = ""
    neighbours: Mapping[str, object] | None = None


def operation_view(cache: ClusterCache, operation: Operation, now: datetime) -> OperationView:
    """What is observed of an operation."""
    case, node = cache.case(operation.case_uid), cache.nodes.get(operation.node)
    template = cache.templates.get(operation.template)
    policy = cache.policy_of(case) if case else None
    of_operation = tuple(cache.pods.by("operation_uid", operation.uid))
    drain, pod = (_named(of_operation, name(operation)) for name in (pods.drain_pod_name, pods.pod_name))
    stops = (
        *_stops(cache, operation, case, node, policy, drain, pod, now),
        *_outside_window(operation, case, policy, of_operation, now),
    )
    health = _health(cache, operation, case, node, policy, template, now)
    deadline = _deadline(operation, template, cache.absences, now, health)
    observation = OperationObservation(
        ended=operation.finished is not None,
        pods=bool(of_operation),
        current=case is not None and case.runs(operation.name),
        stopped=bool(stops),
        ours=ours(operation, case, node),
        intent=operation.intent_at is not None,
        rebooted=rebooted(operation, case, node),
        health=health,
        drain=_drain(operation, template, drain, node, now),
        exit=OperationPodState.GONE if pod is None and operation.pod else _exit(pod),
        criteria=template is not None and template.has_criteria,
        success=succeeded(operation, template, node, pod),
        overdue=now >= deadline or (pod is not None and pod.never_began),
    )
    return OperationView(
        observation=observation,
        operation=operation,
        case=case,
        node=node,
        policy=policy,
        template=template,
        drain=drain,
        pod=pod,
        pods=of_operation,
        deadline=deadline,
        probe=probe.is_probe(case, operation.name),
        drain_template=cache.templates.get(names.DRAIN_TEMPLATE),
        system=cache.namespaces.system,
        stops=stops,
        api_nodes=cache.places.chosen,
        again=_lost_until(operation, drain) if drain is not None and _exit(drain) is OperationPodState.LOST else None,
        end=_end(cache, observation, operation, node, template, drain, pod),
        twice=_twice(cache, case, operation) if case and operation.intent_at and pod is None else "",
    )


def _health(
    cache: ClusterCache,
    operation: Operation,
    case: Case | None,
    node: Node | None,
    policy: Policy | None,
    template: Template | None,
    now: datetime,
) -> Health:
    """Whether the node calls for the operation: UNHEALTHY where it does. Nobody can tell where the boot of which that
    would be is not known.
    """
    if node is None or policy is None:
        return Health.UNKNOWN
    health = judge(node, policy, now).health
    if case is not None:
        few = short(cache, case, policy, node, operation.name, now)
        health = probe.calls_for(case, operation.name, health, few)
    unknown = operation.intent_at is None and template is not None and template.cannot_begin(node.boot_id)
    return Health.UNKNOWN if unknown and health is Health.UNHEALTHY else health


def _twice(cache: ClusterCache, case: Case, operation: Operation) -> str:
    """A Pod of this template that an operation has made which somebody has removed since, under the same name perhaps.

    One that goes on acts beside any other; one that has ended has done what this attempt asks for.
    """
    made = (cache.operations.get(attempt.operation) for attempt in case.attempts)
    known = {operation.uid, *(each.uid for each in made if each is not None)}
    began = case.attempt.started if case.attempt else case.created
    unknown = (pod for pod in cache.pods.by("case_uid", case.uid) if pod.operation_uid not in known)
    repeated = (
        pod.name
        for pod in unknown
        if pod.template == operation.template and (not pod.ended or (pod.created or began) >= began)
    )
    return min(repeated, default="")


def _stops(
    cache: ClusterCache,
    operation: Operation,
    case: Case | None,
    node: Node | None,
    policy: Policy | None,
    drain: Pod | None,
    pod: Pod | None,
    now: datetime,
) -> tuple[Block, ...]:
    """What a user, or what the node runs, stops it with, and whether a Pod that is still to be made has no place."""
    stops = guard.stops(case, node, policy, cache.paused, hosted(cache, node.name), now) if case and node else ()
    template = cache.templates.get(operation.template)
    if node is None or template is None:
        return stops
    drain_state = _drain(operation, template, drain, node, now)
    if drain is not None and drain.unplaced:
        drain_state = DrainState.ABSENT
    needs = _pods_to_make(operation, template, drain_state, pod, cache.templates.get(names.DRAIN_TEMPLATE))
    return (*stops, *guard.homeless(operation.template, needs, node, cache.places.now))


def _outside_window(
    operation: Operation, case: Case | None, policy: Policy | None, of_operation: tuple[Pod, ...], now: datetime
) -> tuple[Block, ...]:
    """Whether it waits for a window of its policy: only a try of a rung that has not begun does."""
    if policy is None or case is None or not _is_try(case, operation) or _begun(operation, of_operation):
        return ()
    return guard.outside_window(policy, windows.shut(policy.windows, now))


def _end(
    cache: ClusterCache,
    observation: OperationObservation,
    operation: Operation,
    node: Node | None,
    template: Template | None,
    drain: Pod | None,
    own: Pod | None,
) -> EndObservation:
    """What is observed of the Pod that works now, of the drain or of the operation itself."""
    ordered = operation.intent_at is not None and template is not None and template.run_on is RunOn.WATCHDOG
    pod = drain if operation.intent_at is None else own
    host = cache.nodes.get(pod.node) if pod is not None and pod.node else None
    return EndObservation(
        gone=node is None or node.uid != operation.node_uid,
        late=observation.overdue,
        pod=PodEnd.DELETED if observation.exit is OperationPodState.GONE else pod_end(pod, ordered),
        silent=host is not None and host.ready is Status.UNKNOWN,
        criteria=observation.criteria,
    )


def _is_try(case: Case, operation: Operation) -> bool:
    """Whether it is a try of a rung: what completes one, or probes the node, starts nothing."""
    return any(attempt.operation == operation.name for attempt in case.tries)


def _begun(operation: Operation, of_operation: tuple[Pod, ...]) -> bool:
    """Whether its drain, or it itself, has begun: that goes on when the window of its policy closes."""
    return bool(of_operation) or operation.drain_started is not None or operation.intent_at is not None


def _pods_to_make(
    operation: Operation, template: Template, state: DrainState, pod: Pod | None, drain: Template | None
) -> tuple[Template, ...]:
    """The templates of the Pods with rights in the API that are to be made next; what runs already has its node."""
    if state in (DrainState.ABSENT, DrainState.LOST) and operation.intent_at is None:
        return places.needs(template, drain)
    elsewhere = template.run_on is RunOn.ELSEWHERE and pod is None and not operation.pod
    return (template,) if elsewhere and state in (DrainState.NOT_NEEDED, DrainState.RECORDED) else ()


def ours(operation: Operation, case: Case | None, node: Node | None) -> bool:
    """Whether this operation may still disturb the node: it is what its case does now, which is open and holds it."""
    if case is None or node is None or operation.deleting or case.ended is not None:
        return False
    if case.uid != operation.case_uid or not case.runs(operation.name):
        return False
    held = node.uid == operation.node_uid and node.case_uid == case.uid
    return held and reason_to_end(case, node) is None


def rebooted(operation: Operation, case: Case | None, node: Node | None) -> bool:
    """Whether the node has booted since this attempt was begun."""
    attempt = case.attempt if case and case.runs(operation.name) else None
    return attempt is not None and node is not None and attempt.before_boot(node.boot_id)


def _deadline(
    operation: Operation, template: Template | None, absences: Absences, now: datetime, health: Health
) -> datetime:
    """When the present stage is over: the drain's time from its start, as long again from its end, the Pod's from the
    intent. A drain that waits for its turn is not late, nor does time count in which we could not act. One that waits
    for clear evidence has the drain's time since the operation was made: the evidence may never come.
    """
    unclear = operation.intent_at is None and health is Health.UNKNOWN
    deadline = absences.deadline(*_stage(operation, template, now, unclear))
    return max(deadline, absences.time_for_news(deadline, STALE_AFTER)) if unclear else deadline


def _stage(operation: Operation, template: Template | None, now: datetime, unclear: bool) -> tuple[datetime, timedelta]:
    """Since when the present stage goes on, and how long it may."""
    if template is None:
        return operation.intent_at or operation.created, WITHOUT_TEMPLATE
    if operation.intent_at is not None:
        return operation.intent_at, template.timeout
    queued = template.drains and operation.drain_started is None and not unclear
    began = operation.drained_at or operation.drain_started or (now if queued else operation.created)
    return began, template.drain_timeout


def _drain(
    operation: Operation, template: Template | None, pod: Pod | None, node: Node | None, now: datetime
) -> DrainState:
    if template is None or not template.drains:
        return DrainState.NOT_NEEDED
    if operation.drained_at is not None:
        return DrainState.RECORDED
    if template.strategy is Strategy.EXTERNAL:
        return external_drain.state(operation, template, node, now)
    drain = _DRAINS[_exit(pod)]
    if drain is DrainState.LOST and pod is not None:
        return drain if now >= _lost_until(operation, pod) else DrainState.RUNNING
    return drain


def _lost_until(operation: Operation, pod: Pod) -> datetime:
    """When the next one is made in place of a drain Pod that was lost."""
    rounds: int = min(operation.drain_round, 10)
    pause: timedelta = min(LOST_PAUSE * 2**rounds, LONGEST_LOST_PAUSE)
    return (pod.created or operation.created) + pause


_DRAINS = {
    OperationPodState.ABSENT: DrainState.ABSENT,
    OperationPodState.RUNNING: DrainState.RUNNING,
    OperationPodState.SUCCEEDED: DrainState.SUCCEEDED,
    OperationPodState.FAILED: DrainState.FAILED,
    OperationPodState.REFUSED: DrainState.FAILED,
    OperationPodState.LOST: DrainState.LOST,
}
_EXITS = {0: OperationPodState.SUCCEEDED, 1: OperationPodState.FAILED, 2: OperationPodState.REFUSED}


def _exit(pod: Pod | None) -> OperationPodState:
    """How the program ended. Any exit code but the three of the contract means that it gave no result: LOST."""
    if pod is None:
        return OperationPodState.ABSENT
    if not pod.ended:
        return OperationPodState.RUNNING
    return _EXITS.get(-1 if pod.exit_code is None else pod.exit_code, OperationPodState.LOST)


def succeeded(operation: Operation, template: Template | None, node: Node | None, pod: Pod | None) -> bool:
    """Whether the node shows what the template asks for. A new bootID alone proves work; Ready alone does not."""
    if template is None or node is None or operation.intent_at is None or not template.has_criteria:
        return False
    rebooted = bool(node.boot_id and operation.intent_boot_id) and node.boot_id != operation.intent_boot_id
    worked = rebooted if template.boot_id_changed else _exit(pod) is OperationPodState.SUCCEEDED
    return worked and (not template.node_ready or node.ready is Status.TRUE)


def _named(of_operation: tuple[Pod, ...], name: str) -> Pod | None:
    return next((pod for pod in of_operation if pod.name == name), None)
