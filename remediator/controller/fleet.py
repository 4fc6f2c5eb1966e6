"""ClusterCache → facts about the whole fleet. Pure: it only reads stores."""

from collections import defaultdict
from collections.abc import Iterable, Set
from datetime import datetime
from itertools import islice

from remediator.controller.cache import ClusterCache
from remediator.core import budget, evidence, failures
from remediator.core.case import Case, OperationPhase
from remediator.core.correlation import Burst, Causes, SharedCause, shared_causes
from remediator.core.guard import FleetContext, Hosted
from remediator.core.node import Node, Status
from remediator.core.pod import Pod
from remediator.core.policy import AttemptRecord

MOST_AVOIDED = 50


def fleet_context(cache: ClusterCache, now: datetime) -> FleetContext:
    """What is true of the whole fleet in one pass."""
    known = frozenset(template.name for template in cache.templates if not missing(cache, {template.name}))
    control_plane = {pod.node: static_pod(cache.control_plane.by("node", pod.node)) for pod in cache.control_plane}
    return FleetContext(
        known,
        cache.paused,
        _controller_nodes(cache),
        causes(cache, now),
        failing(cache, now),
        control_plane=control_plane,
        silent=cache.silent,
    )


def hosted(cache: ClusterCache, node: str) -> Hosted:
    """What this node runs that nothing may disturb."""
    return Hosted(static_pod(cache.control_plane.by("node", node)), _controller_nodes(cache) == {node})


def static_pod(pods: Iterable[Pod]) -> str:
    """The first static one of these Pods of the control plane, "" where there is none."""
    return min((pod.name for pod in pods if pod.mirror), default="")


def _controller_nodes(cache: ClusterCache) -> frozenset[str]:
    """Where our ready replicas run; a mirror Pod is none, since any kubelet can make it look like one."""
    return frozenset(pod.node for pod in cache.replicas if pod.ready and not pod.deleting and not pod.mirror)


def attempt_records(cache: ClusterCache) -> dict[str, tuple[AttemptRecord, ...]]:
    """What became of the newest attempts under each policy: what its status says, and what cases say since then."""
    by_policy: defaultdict[str, list[Case]] = defaultdict(list)
    for case in cache.cases:
        if case.attempts:
            by_policy[case.policy].append(case)
    return {
        policy.name: failures.merged(policy.breaker.records, failures.records(by_policy[policy.name]))
        for policy in cache.policies
    }


def failing(cache: ClusterCache, now: datetime) -> dict[str, str]:
    """The policies whose breaker on failures is open: why, and what closes it."""
    records = attempt_records(cache)
    messages = ((policy, failures.opened(policy, records, now)) for policy in cache.policies)
    return {
        policy.name: f"{message}; {failures.how_to_close(policy, message, now)}"
        for policy, message in messages
        if message
    }


def missing(cache: ClusterCache, operations: Set[str]) -> frozenset[str]:
    """Which of these templates, and of those that they want done after them, are not there."""
    templates = [template for name in operations if (template := cache.templates.get(name))]
    needed = operations | {name for template in templates for name in template.after}
    return frozenset(name for name in needed if cache.templates.get(name) is None)


def causes(cache: ClusterCache, now: datetime) -> Causes:
    """What many nodes have in common now, under the policies that ask about it and have a case."""
    with_case = {case.policy for case in cache.cases if case.open}
    bursts: dict[SharedCause, tuple[Burst, ...]] = {}
    for policy in cache.policies:
        if policy.correlation and policy.name in with_case:
            bursts |= shared_causes(policy, cache.nodes, cache.cases, now)
    return bursts


def drains_running(cache: ClusterCache) -> int:
    """How many operations are draining now."""
    return sum(operation.phase is OperationPhase.DRAINING for operation in cache.operations)


def about_to_go(cache: ClusterCache) -> tuple[str, ...]:
    """Nodes that carry our marks or whose detectors have stopped, at most 50: a Pod of ours had better not go there."""
    going = (node.name for node in cache.nodes if node.case_uid or node.degraded or _untold(node))
    return tuple(sorted(islice(going, MOST_AVOIDED)))


def _untold(node: Node) -> bool:
    stale = node.conditions.get(evidence.DETECTOR_STALE)
    return stale is not None and stale.status is not Status.FALSE


def budgets_over(cache: ClusterCache, node: Node) -> list[str]:
    """The budgets of a node and how much of each is used, a phrase each."""
    ledgers = {ledger.name: ledger for ledger in cache.budgets}
    accounts = [(ledger, budget.account(ledger, cache.counted()[ledger.name])) for ledger in budget.over(node, ledgers)]
    return [f"{ledger.name}: {_used(account)}" for ledger, account in accounts]


def _used(account: budget.Account) -> str:
    unavailable = f"{len(account.unavailable)} of {account.most} unavailable"
    waiting = f", {len(account.quarantined)} of {account.most_quarantined} quarantined" if account.quarantined else ""
    return unavailable + waiting
