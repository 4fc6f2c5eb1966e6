"""ClusterCache → what the lifecycle tables ask about. Pure: reads stores, writes nothing."""

from collections.abc import Set
from dataclasses import dataclass
from datetime import datetime, timedelta

from remediator.controller.cache import ClusterCache
from remediator.core import budget, evidence, guard, names
from remediator.core.case import Case, Diagnosis, Operation, OperationPhase, Outcome, Phase, leaving
from remediator.core.correlation import Cause, shared
from remediator.core.evidence import Health, Proof
from remediator.core.ladder import Next, climb, follow_up
from remediator.core.lifecycle import CaseObservation, Drain, Exit, OperationObservation, Tried
from remediator.core.node import Node, Status
from remediator.core.pod import Pod, PodPhase
from remediator.core.policy import Policy, Strategy, Template
from remediator.core.reasons import Reason


@dataclass(frozen=True, slots=True)
class CaseView:
    """One case with all that its pass needs. `next` is what the ladder offers, or why it offers nothing."""

    observation: CaseObservation
    case: Case
    node: Node | None
    policy: Policy | None
    operation: Operation | None
    pods: tuple[Pod, ...]
    leave: Reason | None
    next: Next | Reason
    follow_up: str | None
    look_again: datetime | None


def case_view(cache: ClusterCache, case: Case, now: datetime) -> CaseView:
    """What is observed of a case."""
    node = cache.nodes.get(case.node)
    policy = cache.policies.get(case.policy)
    operation = cache.operations.get(case.attempt.operation) if case.attempt else None
    # Pods of a node that is gone have nobody to end them; the API server collects them.
    pods = tuple(pod for pod in cache.pods.by("case_uid", case.uid) if node is not None or pod.node != case.node)
    leave = leaving(case, node) or _abandoned(case, policy, now)
    proof, again = _proof(case, node, policy, now)
    following = climb(policy, case, cache.cases.by("node", case.node), now) if policy else Reason.POLICY_MISSING
    tried, follows = _tried(case, operation), follow_up(case, _after(cache, case))
    observation = CaseObservation(
        ended=case.ended is not None,
        escalated=case.phase is Phase.ESCALATED,
        leave=leave is not None,
        pods=bool(pods),
        marks=_marks(cache, case, node),
        claimed=case.claimed,
        diagnosed=case.diagnosis is not Diagnosis.PENDING,
        health=evidence.judge(node, policy, now).health if node and policy else Health.UNKNOWN,
        tried=tried,
        proof=proof,
        rungs=isinstance(following, Next),
        follow=tried is Tried.SUCCEEDED and _succeeded(case) and follows is not None,
    )
    return CaseView(observation, case, node, policy, operation, pods, leave, following, follows, again)


def _abandoned(case: Case, policy: Policy | None, now: datetime) -> Reason | None:
    """A case that holds nothing goes some time after its policy has: nobody can say any more what it waits for."""
    last = case.timeline[-1] if case.timeline else None
    if policy is not None or case.claimed or last is None or last.reason is not Reason.POLICY_MISSING:
        return None
    return Reason.POLICY_MISSING if now - last.at >= WITHOUT_POLICY else None


def _after(cache: ClusterCache, case: Case) -> tuple[str, ...]:
    """What the template of the newest try wants done after it."""
    template = cache.templates.get(case.tries[-1].template) if case.tries else None
    return template.after if template else ()


def _succeeded(case: Case) -> bool:
    """Whether the newest attempt was done: one that was cancelled in time has nothing to complete."""
    return case.attempt is not None and case.attempt.outcome is Outcome.SUCCEEDED


def _proof(case: Case, node: Node | None, policy: Policy | None, now: datetime) -> tuple[Proof, datetime | None]:
    """Recovery is proven from the end of the newest attempt, or, before any, from the claim."""
    attempt = case.attempt
    ended = attempt.finished if attempt else case.started
    if node is None or ended is None:
        return Proof.WAITING, None
    if policy is None:  # it may come back; without it nobody can say what healthy means
        late = ended + WITHOUT_POLICY
        return (Proof.TIMED_OUT, None) if now >= late else (Proof.WAITING, min(late, now + timedelta(seconds=10)))
    return evidence.prove(node, policy, (attempt.heartbeats if attempt else None) or {}, ended, now)


def _marks(cache: ClusterCache, case: Case, node: Node | None) -> bool:
    """Whether anything of ours is still to be taken off."""
    return case.finalizer or bool(ledgers(cache, case)) or (node is not None and marked(node, case))


def marked(node: Node, case: Case) -> bool:
    """Whether the node still carries a mark of this case, or does not say yet that it has had it."""
    queued = case.finalizer and node.degraded and not node.case_uid
    ours = node.case_uid == case.uid or node.cordoned_by == case.uid or queued
    unsaid = case.finalizer and says_last_case(case) and node.last_case != case.name
    return node.uid == case.node_uid and (ours or unsaid)


def says_last_case(case: Case) -> bool:
    """Whether the node must remember the case: it was claimed, or a person deleted it and does not want it back."""
    return case.started is not None or case.deleting


def ledgers(cache: ClusterCache, case: Case) -> list[str]:
    """The budgets that hold an entry of this case, in name order."""
    return sorted(ledger.name for ledger in cache.budgets if ledger.holds(case.uid))


def _tried(case: Case, operation: Operation | None) -> Tried:
    attempt = case.attempt
    if attempt is None:
        return Tried.NONE
    if attempt.outcome is Outcome.OPEN:
        return Tried.REPORTED if operation and operation.phase.outcome is not Outcome.OPEN else Tried.OPEN
    skipped = attempt.follows and attempt.outcome is Outcome.REFUSED  # what it follows has worked all the same
    worked = skipped or attempt.outcome in (Outcome.SUCCEEDED, Outcome.CANCELLED)
    return Tried.SUCCEEDED if worked else Tried.FAILED


@dataclass(frozen=True, slots=True)
class OperationView:
    """One operation with all that its pass needs."""

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
    follows: bool  # it completes another operation: that the fault has gone by now does not stop it


def operation_view(cache: ClusterCache, operation: Operation, now: datetime) -> OperationView:
    """What is observed of an operation."""
    case, node = cache.case(operation.case_uid), cache.nodes.get(operation.node)
    template = cache.templates.get(operation.template)
    policy = cache.policies.get(case.policy) if case else None
    drain, pod = _pod(cache, drain_pod_name(operation)), _pod(cache, pod_name(operation))
    pods = tuple(cache.pods.by("operation_uid", operation.uid))
    deadline = _deadline(operation, template, now)
    follows = any(one.follows for one in case.attempts if one.operation == operation.name) if case else False
    health = evidence.judge(node, policy, now).health if node and policy else Health.UNKNOWN
    observation = OperationObservation(
        ended=operation.finished is not None,
        pods=bool(pods),
        ours=ours(operation, case, node),
        intent=operation.intent_at is not None,
        health=Health.UNHEALTHY if follows and health is Health.HEALTHY else health,
        drain=_drain(operation, template, drain),
        exit=_exit(pod),
        criteria=template is not None and template.has_criteria,
        success=succeeded(operation, template, node, pod),
        overdue=now >= deadline,
    )
    return OperationView(observation, operation, case, node, policy, template, drain, pod, pods, deadline, follows)


def ours(operation: Operation, case: Case | None, node: Node | None) -> bool:
    """Whether this operation may still disturb the node: its case stands and holds it, and nobody asked it to stop."""
    if case is None or node is None or operation.deleting or case.ended is not None:
        return False
    held = node.uid == operation.node_uid and node.case_uid == case.uid
    return held and leaving(case, node) is None


def _deadline(operation: Operation, template: Template | None, now: datetime) -> datetime:
    """When the present stage is over: the drain's time from its start, the Pod's from the intent.

    A drain that waits for its turn is not late.
    """
    if template is None:
        return (operation.intent_at or operation.created) + WITHOUT_TEMPLATE
    if operation.intent_at is not None:
        return operation.intent_at + template.timeout
    queued = template.strategy is not Strategy.NONE and operation.drain_started is None
    return (now if queued else operation.drain_started or operation.created) + template.drain_timeout


# How long a case waits for a policy that somebody deleted: then it escalates, or ends where it holds no node.
WITHOUT_POLICY = timedelta(minutes=30)
# How long an operation may still take after somebody deleted its template.
WITHOUT_TEMPLATE = timedelta(minutes=30)


def _drain(operation: Operation, template: Template | None, pod: Pod | None) -> Drain:
    if template is None or template.strategy is Strategy.NONE:
        return Drain.NOT_NEEDED
    if operation.drained:
        return Drain.RECORDED
    if pod is None:
        return Drain.ABSENT
    return {PodPhase.SUCCEEDED: Drain.SUCCEEDED, PodPhase.FAILED: Drain.FAILED}.get(pod.phase, Drain.RUNNING)


_EXITS = {0: Exit.SUCCEEDED, 1: Exit.FAILED, 2: Exit.REFUSED}


def _exit(pod: Pod | None) -> Exit:
    """How the program ended. Any code but the three of the contract means that it never got to say: LOST."""
    if pod is None:
        return Exit.ABSENT
    if not pod.ended:
        return Exit.RUNNING
    return _EXITS.get(-1 if pod.exit_code is None else pod.exit_code, Exit.LOST)


def succeeded(operation: Operation, template: Template | None, node: Node | None, pod: Pod | None) -> bool:
    """Whether what the template asks for shows on the node. A new bootID alone proves work; Ready alone does not."""
    if template is None or node is None or operation.intent_at is None or not template.has_criteria:
        return False
    rebooted = bool(node.boot_id) and node.boot_id != operation.intent_boot_id
    worked = rebooted if template.boot_id_changed else _exit(pod) is Exit.SUCCEEDED
    return worked and (not template.node_ready or node.ready is Status.TRUE)


def pod_name(operation: Operation) -> str:
    """The name of the operation's own Pod."""
    return names.name(operation.node, operation.template, operation.uid)


def drain_pod_name(operation: Operation) -> str:
    """The name of its drain Pod of this round."""
    return names.name(operation.node, names.DRAIN_TEMPLATE, operation.uid, str(operation.drain_round))


def diagnostics_pod_name(case: Case) -> str:
    """The name of the Pod that looks before anything is disturbed."""
    return names.name(case.node, names.DIAGNOSTICS_TEMPLATE, case.uid)


def operation_name(case: Case, template: str, number: int) -> str:
    """The name of the case's attempt of this number, counted from 1."""
    return names.name(case.node, template, case.uid, str(number))


def _pod(cache: ClusterCache, name: str) -> Pod | None:
    return cache.pods.get(f"{cache.namespaces.operations}/{name}")


def fleet_context(cache: ClusterCache, now: datetime) -> guard.FleetContext:
    """What is true of the whole fleet in one pass."""
    hosts = frozenset(pod.node for pod in cache.replicas if pod.ready and not pod.deleting)
    known = frozenset(template.name for template in cache.templates if not missing(cache, {template.name}))
    return guard.FleetContext(known, cache.paused, hosts, causes(cache, now))


def missing(cache: ClusterCache, operations: Set[str]) -> frozenset[str]:
    """Which of these templates, and of those that they want done after them, are not there."""
    found = [template for name in operations if (template := cache.templates.get(name))]
    wanted = operations | {name for template in found for name in template.after}
    return frozenset(name for name in wanted if cache.templates.get(name) is None)


def causes(cache: ClusterCache, now: datetime) -> dict[Cause, frozenset[str]]:
    """What many nodes have in common now, under the policies that ask about it and have a case."""
    asked = {case.policy for case in cache.cases if case.open}
    asking = [policy for policy in cache.policies if policy.correlation and policy.name in asked]
    found: dict[Cause, frozenset[str]] = {}
    for policy in asking:
        found |= shared(policy, cache.nodes, cache.cases, now)
    return found


def drains_running(cache: ClusterCache) -> int:
    """How many operations are draining now."""
    return sum(operation.phase is OperationPhase.DRAINING for operation in cache.operations)


def budgets_over(cache: ClusterCache, node: Node) -> list[str]:
    """The budgets that speak for a node and where they stand, a phrase each."""
    ledgers = {ledger.name: ledger for ledger in cache.budgets}
    found = [(ledger, budget.account(ledger, cache.counted()[ledger.name])) for ledger in budget.over(node, ledgers)]
    return [f"{ledger.name}: {len(stands.unavailable)} of {stands.most} unavailable" for ledger, stands in found]
