"""ClusterCache → facts about the whole fleet. Pure: it only reads stores."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import datetime, timedelta
from itertools import islice
from operator import attrgetter
from typing import NamedTuple

from remediator import windows
from remediator.controller.budget_attempts import starts_under
from remediator.controller.cache import ClusterCache
from remediator.core import account, budget, budget_breaker, dead_node, failures, names, places
from remediator.core.budget_text import group_as_shown
from remediator.core.case import Case, Phase
from remediator.core.correlation import Causes, shared_causes
from remediator.core.dead_node import DeadNodes
from remediator.core.guard import FleetContext, Hosted
from remediator.core.node import Node, Status
from remediator.core.operation import OperationPhase
from remediator.core.pod import Pod
from remediator.core.policy import Approval, AttemptRecord, Policy
from remediator.core.template import Template
from remediator.core.window import Shut
from remediator.core.writers import DETECTOR_STALE

MOST_AVOIDED = 50


def fleet_context(cache: ClusterCache, now: datetime, causes: Causes | None = None) -> FleetContext:
    """What is true of the whole fleet in one pass. `causes`: what nodes have in common, where that is known already."""
    whole = cache.by_template("whole", lambda template: not missing(cache, {template.name}))
    control_plane = {pod.node: static_pod(cache.control_plane.by("node", pod.node)) for pod in cache.control_plane}
    return FleetContext(
        frozenset(name for name, known in whole.items() if known),
        cache.paused,
        _controller_nodes(cache),
        all_causes(cache, now) if causes is None else causes,
        failing(cache, now),
        control_plane=control_plane,
        lease_holders=cache.lease_holders,
        leases_untaken=cache.leases_untaken,
        places=cache.places.now,
        needs=cache.by_template("needs", lambda template: api_pods_of(cache, template)),
        boots=_needing_boot(cache),
        silent=cache.silent,
        dead=DeadNodes(dead_node.on_target(cache.templates), cache.zones.now),
        shut=shut_policies(cache.policies, now),
        working=dict(cache.working),
        absences=cache.absences,
    )


def _needing_boot(cache: ClusterCache) -> frozenset[str]:
    """The templates whose operations are for one boot of their node."""
    return frozenset(name for name, needed in cache.by_template("boots", _needs_boot).items() if needed)


_needs_boot = attrgetter("needs_boot")


def shut_policies(policies: Iterable[Policy], now: datetime) -> dict[str, Shut]:
    """What the windows of each policy say, where none of them is open."""
    states = ((policy.name, windows.shut(policy.windows, now)) for policy in policies if policy.windows)
    return {name: shut for name, shut in states if shut is not None}


def may_start(now: datetime, policy: Policy) -> bool:
    """Whether a new case of the policy could begin now, as far as the policy itself says."""
    ready = policy.readiness is None or policy.readiness.status is not Status.FALSE
    waits = policy.approval is Approval.REQUIRED or policy.breaker.stays_open(policy.closed_at, now)
    return ready and not waits and windows.shut(policy.windows, now) is None


def api_pods_of(cache: ClusterCache, template: Template) -> tuple[Template, ...]:
    """The templates of the Pods with rights in the API that an operation and what completes it need."""
    drain = cache.templates.get(names.DRAIN_TEMPLATE)
    after = (cache.templates.get(name) for name in template.after)
    return tuple(pod for each in (template, *after) if each is not None for pod in places.needs(each, drain))


def hosted(cache: ClusterCache, node: str) -> Hosted:
    """What this node runs that nothing may disturb."""
    last = _controller_nodes(cache) == {node}
    return Hosted(
        static_pod(cache.control_plane.by("node", node)),
        last,
        cache.lease_holders.get(node, ""),
        cache.leases_untaken.get(node, ""),
    )


def static_pod(pods: Iterable[Pod]) -> str:
    """The first static one of these Pods of the control plane, "" where there is none."""
    return min((pod.name for pod in pods if pod.mirror), default="")


def _controller_nodes(cache: ClusterCache) -> frozenset[str]:
    """Where our ready replicas run; a mirror Pod is none, since any kubelet can make it look like one."""
    return frozenset(pod.node for pod in cache.replicas if pod.ready and not pod.deleting and not pod.mirror)


def attempt_records(cache: ClusterCache, now: datetime) -> dict[str, tuple[AttemptRecord, ...]]:
    """What became of the newest attempts under each policy that had any: its status says it, and since then cases."""
    by_policy: defaultdict[str, list[Case]] = defaultdict(list)
    for case in cache.cases_since(now - failures.COUNTS_FOR):
        if case.attempts:
            by_policy[case.policy].append(case)
    return {
        policy.name: failures.merged(policy.breaker.records, failures.records(by_policy[policy.name]))
        for policy in cache.policies
        if policy.breaker.records or policy.name in by_policy
    }


def failing(cache: ClusterCache, now: datetime) -> dict[str, str]:
    """The policies whose breaker on failures is open: why, and what closes it."""
    records = attempt_records(cache, now)
    asked = failures.of_which_attempts_tell(cache.policies, records)
    messages = ((policy, failures.opened(policy, records, now)) for policy in asked)
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


class RecentCases(NamedTuple):
    """The cases that are open or have ended lately, by policy; and those of all policies that a person has."""

    by_policy: Mapping[str, Sequence[Case]]
    escalated: Sequence[Case]


def recent_cases(cache: ClusterCache, now: datetime) -> RecentCases:
    """Those that any policy asks about when it asks what nodes have in common."""
    asking = (policy.correlation.within for policy in cache.policies if policy.correlation)
    by_policy: defaultdict[str, list[Case]] = defaultdict(list)
    for case in cache.cases_since(now - max(asking, default=timedelta(0))):
        by_policy[case.policy].append(case)
    cases = (case for cases in by_policy.values() for case in cases)
    return RecentCases(by_policy, [case for case in cases if case.open and case.phase is Phase.ESCALATED])


def all_causes(cache: ClusterCache, now: datetime) -> Causes:
    """What many nodes have in common now, under the policies that ask about it and have a case."""
    recent = recent_cases(cache, now)
    each = (causes(cache, policy, recent, now) for policy in correlated(cache))
    return {cause: bursts for shared in each for cause, bursts in shared.items()}


def correlated(cache: ClusterCache) -> list[Policy]:
    """The policies that ask what nodes have in common, and have a case that is open."""
    with_case = {case.policy for case in cache.unfinished if case.open}
    return [policy for policy in cache.policies if policy.correlation and policy.name in with_case]


def causes(cache: ClusterCache, policy: Policy, recent: RecentCases, now: datetime) -> Causes:
    """The same under one policy: of the nodes that show what it looks for, and those of cases open or ended lately."""
    if policy.correlation is None:
        return {}
    mine = recent.by_policy.get(policy.name, ())
    clauses = (clause for when in policy.when for clause in when.clauses)
    names = dict.fromkeys(
        name for clause in clauses for name in cache.nodes_by.showing((clause.condition, clause.status))
    )
    names |= dict.fromkeys(case.node for case in mine)
    nodes = (node for name in names if (node := cache.nodes.get(name)))
    return shared_causes(policy, nodes, [*mine, *recent.escalated], now)


def drains_running(cache: ClusterCache) -> int:
    """How many operations are draining now by a Pod of ours; one that a user has made only shows it."""
    draining = (each for each in cache.unfinished_operations if each.phase is OperationPhase.DRAINING)
    return sum(bool(operation.case_uid and operation.drain_pod) for operation in draining)


def about_to_go(cache: ClusterCache) -> tuple[str, ...]:
    """Nodes that carry our marks or whose detectors have stopped, at most 50: a Pod of ours had better not go there."""
    going = (node.name for node in cache.nodes if node.case_uid or node.degraded or _untold(node))
    return tuple(sorted(islice(going, MOST_AVOIDED)))


def _untold(node: Node) -> bool:
    stale = node.conditions.get(DETECTOR_STALE)
    return stale is not None and stale.status is not Status.FALSE


def budgets_over(cache: ClusterCache, node: Node, now: datetime) -> list[str]:
    """The budgets of a node and how much of each, or of its group in it, is used, a phrase each; and its breaker."""
    if not cache.whole:
        known = cache.ledgers()
        return [group_as_shown(known.budgets[name], group, now) for name, group in known.index.places(node)]
    ledgers, starts = cache.ledgers(), cache.starts(now - budget_breaker.longest(cache.budgets, timedelta()))
    by_budget = starts_under(cache, starts)
    lines: list[str] = []
    for name, group in ledgers.index.places(node):
        ledger, members = ledgers.budgets[name], ledgers.members.get(name, account.NOBODY)
        breaker = budget_breaker.shown(ledger, members.total, by_budget.get(name, ()), now)
        lines.append(_standing(ledger, group, members) + (f"; {breaker}" if breaker else ""))
    return lines


def _standing(ledger: budget.Budget, group: str, counted: account.Members) -> str:
    if not ledger.group_by:
        return f"{ledger.name}: {_used(account.account(ledger, counted))}"
    if not group:
        return f"{ledger.name}: the node has no label {ledger.group_by}, so that nothing starts on it"
    standing = account.account_of_group(ledger, counted, group, account.claims_by_group(ledger))
    together = f"; all groups: {_used(account.account(ledger, counted))}" if ledger.limits_all_groups else ""
    return f"{ledger.name}, {ledger.group_by} {group}: {_used(standing) if standing else 'no node'}{together}"


def _used(standing: account.Account) -> str:
    unavailable = f"{len(standing.unavailable)} of {standing.most} unavailable"
    quarantined = f", {len(standing.quarantined)} of {standing.most_quarantined} quarantined"
    waiting = quarantined if standing.quarantined else ""
    return unavailable + waiting
