"""ClusterCache → the inputs of the decision table of an operation, and of its plans. Pure: it only reads stores."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from remediator.controller import pods
from remediator.controller.cache import ClusterCache
from remediator.controller.fleet import hosted
from remediator.core import evidence, guard, names
from remediator.core.absence import Absences
from remediator.core.case import Block, Case, Operation, reason_to_end
from remediator.core.evidence import Health
from remediator.core.node import Node, Status
from remediator.core.operation_table import Drain, Exit, OperationObservation
from remediator.core.pod import Pod
from remediator.core.policy import Policy, Strategy, Template

# How long an operation may still take after somebody deleted its template.
WITHOUT_TEMPLATE = timedelta(minutes=30)
# How long after a drain Pod that was lost was made the next one is: twice as long each round.
LOST_PAUSE, LONGEST_LOST_PAUSE = timedelta(seconds=5), timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class OperationView:
    """One operation with all that its pass needs.

    Attributes:
        drain: The drain Pod of this round.
        pod: The operation's own Pod.
        pods: All Pods of the operation.
        deadline: When the present stage is over.
        follows: It completes another operation: that the fault has gone by now does not stop it.
        drain_template: The template of the drain Pod.
        system: The namespace whose pause the drain looks up.
        stops: What a user, or what the node runs, stops its case with.
        pods_left: Pods still on the node, counted live before the intent and before its own Pod.
        avoid: Nodes on which the drain Pod would soon be lost.
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
    follows: bool
    drain_template: Template | None
    system: str
    stops: tuple[Block, ...] = ()
    pods_left: int = 0
    avoid: tuple[str, ...] = ()


def operation_view(cache: ClusterCache, operation: Operation, now: datetime) -> OperationView:
    """What is observed of an operation."""
    case, node = cache.case(operation.case_uid), cache.nodes.get(operation.node)
    template = cache.templates.get(operation.template)
    policy = cache.policies.get(case.policy) if case else None
    of_operation = tuple(cache.pods.by("operation_uid", operation.uid))
    drain, pod = (_named(of_operation, name(operation)) for name in (pods.drain_pod_name, pods.pod_name))
    attempts = case.attempts if case else ()
    follows = any(attempt.follows for attempt in attempts if attempt.operation == operation.name)
    health = evidence.judge(node, policy, now).health if node and policy else Health.UNKNOWN
    stops = guard.stops(case, node, policy, cache.paused, hosted(cache, node.name)) if case and node else ()
    unclear = operation.intent_at is None and health is Health.UNKNOWN
    deadline = _deadline(operation, template, cache.absences, now, unclear)
    if unclear:
        deadline = max(deadline, cache.absences.time_for_news(deadline, evidence.STALE_AFTER))
    observation = OperationObservation(
        ended=operation.finished is not None,
        pods=bool(of_operation),
        current=case is not None and case.runs(operation.name),
        stopped=bool(stops),
        ours=ours(operation, case, node),
        intent=operation.intent_at is not None,
        rebooted=rebooted(operation, case, node),
        health=Health.UNHEALTHY if follows and health is Health.HEALTHY else health,
        drain=_drain(operation, template, drain, now),
        exit=_exit(pod),
        criteria=template is not None and template.has_criteria,
        success=succeeded(operation, template, node, pod),
        overdue=now >= deadline,
    )
    return OperationView(
        observation,
        operation,
        case,
        node,
        policy,
        template,
        drain,
        pod,
        of_operation,
        deadline,
        follows,
        cache.templates.get(names.DRAIN_TEMPLATE),
        cache.namespaces.system,
        stops,
    )


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
    operation: Operation, template: Template | None, absences: Absences, now: datetime, unclear: bool
) -> datetime:
    """When the present stage is over: the drain's time from its start, as long again from its end, the Pod's from the
    intent. A drain that waits for its turn is not late, nor does time count in which we could not act. One that waits
    for clear evidence has the drain's time since the operation was made: the evidence may never come.
    """
    if template is None:
        return absences.deadline(operation.intent_at or operation.created, WITHOUT_TEMPLATE)
    if operation.intent_at is not None:
        return absences.deadline(operation.intent_at, template.timeout)
    queued = template.strategy is not Strategy.NONE and operation.drain_started is None and not unclear
    began = operation.drained_at or operation.drain_started or (now if queued else operation.created)
    return absences.deadline(began, template.drain_timeout)


def _drain(operation: Operation, template: Template | None, pod: Pod | None, now: datetime) -> Drain:
    if template is None or template.strategy is Strategy.NONE:
        return Drain.NOT_NEEDED
    if operation.drained_at is not None:
        return Drain.RECORDED
    drain = _DRAINS[_exit(pod)]
    if drain is Drain.LOST and pod is not None and pod.created is not None:
        pause = min(LOST_PAUSE * 2 ** min(operation.drain_round, 10), LONGEST_LOST_PAUSE)
        return drain if now >= pod.created + pause else Drain.RUNNING
    return drain


_DRAINS = {
    Exit.ABSENT: Drain.ABSENT,
    Exit.RUNNING: Drain.RUNNING,
    Exit.SUCCEEDED: Drain.SUCCEEDED,
    Exit.FAILED: Drain.FAILED,
    Exit.REFUSED: Drain.FAILED,
    Exit.LOST: Drain.LOST,
}
_EXITS = {0: Exit.SUCCEEDED, 1: Exit.FAILED, 2: Exit.REFUSED}


def _exit(pod: Pod | None) -> Exit:
    """How the program ended. Any exit code but the three of the contract means that it gave no result: LOST."""
    if pod is None:
        return Exit.ABSENT
    if not pod.ended:
        return Exit.RUNNING
    return _EXITS.get(-1 if pod.exit_code is None else pod.exit_code, Exit.LOST)


def succeeded(operation: Operation, template: Template | None, node: Node | None, pod: Pod | None) -> bool:
    """Whether the node shows what the template asks for. A new bootID alone proves work; Ready alone does not."""
    if template is None or node is None or operation.intent_at is None or not template.has_criteria:
        return False
    rebooted = bool(node.boot_id) and node.boot_id != operation.intent_boot_id
    worked = rebooted if template.boot_id_changed else _exit(pod) is Exit.SUCCEEDED
    return worked and (not template.node_ready or node.ready is Status.TRUE)


def _named(of_operation: tuple[Pod, ...], name: str) -> Pod | None:
    return next((pod for pod in of_operation if pod.name == name), None)
