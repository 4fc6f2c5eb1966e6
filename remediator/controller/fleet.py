"""ClusterCache → facts about the whole fleet. Pure: it only reads stores."""

from collections import defaultdict
from collections.abc import Iterable, Set
from datetime import datetime
from itertools import islice

from remediator.controller.cache import ClusterCache
from remediator.core import budget, evidence, failures
from remediator.core.case import Case, OperationPhase
from remediator.core.correlation import Causes, shared_causes
from remediator.core.guard import FleetContext, Hosted
from remediator.core.node import Node, Status
from remediator.core.pod import Pod
from remediator.core.policy import AttemptRecord, Policy

MOST_AVOIDED = 50


def fleet_context(cache: ClusterCache, now: datetime, causes: Causes | None = None) -> FleetContext:
    """What is true of the whole fleet in one pass. `causes`: what nodes have in common, where that is known already."""
    known = frozenset(template.name for template in cache.templates if not missing(cache, {template.name}))
    control_plane = {pod.node: static_pod(cache.control_plane.by("node", pod.node)) for pod in cache.control_plane}
    return FleetContext(
        known,
        cache.paused,
        _controller_nodes(cache),
        all_causes(cache, now) if causes is None else causes,
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


def attempt_records(cache: ClusterCache, now: datetime) -> dict[str, tuple[AttemptRecord, ...]]:
    """What became of the newest attempts under each policy: what its status says, and what cases say since then."""
    by_policy: defaultdict[str, list[Case]] = defaultdict(list)
    for case in cache.cases_since(now - failures.COUNTS_FOR):
        if case.attempts:
            by_policy[case.policy].append(case)
    return {
        policy.name: failures.merged(policy.breaker.records, failures.records(by_policy[policy.name]))
        for policy in cache.policies
    }


def failing(cache: ClusterCache, now: datetime) -> dict[str, str]:
    """The policies whose breaker on failures is open: why, and what closes it."""
    records = attempt_records(cache, now)
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


def all_causes(cache: ClusterCache, now: datetime) -> Causes:
    """What many nodes have in common now, under the policies that ask about it and have a case."""
    return {cause: bursts for policy in correlated(cache) for cause, bursts in causes(cache, policy, now).items()}


def correlated(cache: ClusterCache) -> list[Policy]:
    """The policies that ask what nodes have in common, and have a case that is open."""
    with_case = {case.policy for case in cache.unfinished if case.open}
    return [policy for policy in cache.policies if policy.correlation and policy.name in with_case]


def causes(cache: ClusterCache, policy: Policy, now: datetime) -> Causes:
    """The same under one policy: asked are the nodes that show what it looks for, and those of cases ended lately."""
    if policy.correlation is None:
        return {}
    cases = list(cache.cases_since(now - policy.correlation.within))
    clauses = (clause for when in policy.when for clause in when.clauses)
    names = dict.fromkeys(
        name for clause in clauses for name in cache.nodes_by.showing((clause.condition, clause.status))
    )
    names |= dict.fromkeys(case.node for case in cases if case.policy == policy.name and case.ended is not None)
    nodes = (node for name in names if (node := cache.nodes.get(name)))
    return shared_causes(policy, nodes, cases, now)


def drains_running(cache: ClusterCache) -> int:
    """How many operations are draining now."""
    return sum(operation.phase is OperationPhase.DRAINING for operation in cache.unfinished_operations)


def about_to_go(cache: ClusterCache) -> tuple[str, ...]:
    """Nodes that carry our marks or whose detectors have stopped, at most 50: a Pod of ours had better not go there."""
    going = (node.name for node in cache.nodes if node.case_uid or node.degraded or _untold(node))
    return tuple(sorted(islice(going, MOST_AVOIDED)))


def _untold(node: Node) -> bool:
    stale = node.conditions.get(evidence.DETECTOR_STALE)
    return stale is not None and stale.status is not Status.FALSE


def budgets_over(cache: ClusterCache, node: Node) -> list[str]:
    """The budgets of a node and how much of each, or of its group in it, is used, a phrase each."""
    ledgers = cache.ledgers()
    return [
        _standing(ledgers.budgets[name], group, ledgers.members.get(name, budget.NOBODY))
        for name, group in ledgers.index.places(node)
    ]


def _standing(ledger: budget.Budget, group: str, counted: budget.Members) -> str:
    if not ledger.group_by:
        return f"{ledger.name}: {_used(budget.account(ledger, counted))}"
    if not group:
        return f"{ledger.name}: the node has no label {ledger.group_by}, so that nothing starts on it"
    standing = budget.accounts(ledger, counted).get(group)
    together = f"; all groups: {_used(budget.account(ledger, counted))}" if ledger.limits_all_groups else ""
    return f"{ledger.name}, {ledger.group_by} {group}: {_used(standing) if standing else 'no node'}{together}"


def _used(account: budget.Account) -> str:
    unavailable = f"{len(account.unavailable)} of {account.most} unavailable"
    waiting = f", {len(account.quarantined)} of {account.most_quarantined} quarantined" if account.quarantined else ""
    return unavailable + waiting
