"""The fleet on one screen: open cases by what each waits for and who must act, budgets, breakers, who leads. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import groupby
from typing import Any

from remediator.core import keep_out, missing_fields, names
from remediator.core.actors import Actor
from remediator.core.breaker import Breaker, starts
from remediator.core.budget import Budget
from remediator.core.budget_text import as_shown
from remediator.core.case import Case
from remediator.core.case_data import Data, case_data
from remediator.core.duration import in_words
from remediator.core.failures import closing
from remediator.core.idle_test import allowed
from remediator.core.missing_fields import Missing
from remediator.core.open_cases import Group, groups
from remediator.core.policy import Policy
from remediator.core.running import Leading, Running
from remediator.kube.overview import Overview

MOST_NODES, MOST_BUDGETS = 8, 8  # that are named on a line, and that have one
HEADINGS = {
    Actor.OPERATOR: "an operator must act:",
    Actor.ADMINISTRATOR: "an administrator must act (policies, budgets, templates, the cluster):",
    Actor.NOBODY: "nobody must act, these go on by themselves:",
}


def told(fleet: Overview, leader: Leading, running: Running, namespace: str, now: datetime) -> Iterator[str]:
    """The lines of the screen."""
    yield from head(fleet, leader, running, namespace, now)
    yield from _groups(groups(fleet.cases), now)
    yield from _budgets(fleet.budgets, now)


def head(fleet: Overview, leader: Leading, running: Running, namespace: str, now: datetime) -> Iterator[str]:
    """Those of the fleet as a whole."""
    yield f"fleet: {_fleet(fleet)}"
    yield f"controller: {leader.described(now)}"
    if leader.running:
        yield f"  Pods with rights in the API run on nodes with {running.api_pods_node_selector!r}"
    if fleet.paused:
        yield f"everything is paused: the namespace {namespace} has the annotation {names.PAUSED}"
    yield from _definitions(fleet.missing)
    most = f"{running.breaker.starts} starts in {in_words(running.breaker.window)}"
    yield f"breaker of the fleet: at least {_recent(fleet, running.breaker, now)} of {most}"
    modes = Counter(policy.mode.value for policy in fleet.policies)
    yield f"policies: {', '.join(f'{count} {mode}' for mode, count in sorted(modes.items())) or 'none'}"
    yield from (f"  breaker open: {line}" for line in _failing(fleet.policies, now))
    yield from _tests(fleet)


def _definitions(missing: Missing) -> Iterator[str]:
    """What the API server drops since the definitions are older, and the remedy."""
    if missing:
        yield f"definitions: older than this version, fields are dropped: {missing_fields.in_words(missing)}"
        yield f"  to bring them up to date: {missing_fields.REMEDY}"


def _tests(fleet: Overview) -> Iterator[str]:
    """The tests of idle nodes, a line for each policy that has some or could have."""
    for policy in sorted(fleet.policies, key=lambda policy: policy.name):
        if policy.idle_test is not None:
            nodes = sorted(pod.tested for pod in fleet.idle_tests if pod.idle_test == policy.name)
            most = allowed(policy.idle_test, policy.selected or 0)
            more = f", and {len(nodes) - MOST_NODES} more" if len(nodes) > MOST_NODES else ""
            where = f": {', '.join(nodes[:MOST_NODES])}{more}" if nodes else ""
            yield f"idle tests of policy {policy.name}: {len(nodes)} of at most {most}{where}"


def data(fleet: Overview, leader: Leading, running: Running, now: datetime) -> dict[str, Any]:
    """The same for scripts: every case and every budget."""
    return {
        "nodes": fleet.nodes,
        "paused": fleet.paused,
        "controller": controller_data(leader, now),
        "missingFields": {kind: list(fields) for kind, fields in fleet.missing.items()},
        "breaker": breaker_data(_recent(fleet, running.breaker, now), running.breaker, exact=False),
        "policies": [_policy(policy, now) for policy in sorted(fleet.policies, key=lambda policy: policy.name)],
        "groups": [_group(group, now) for group in groups(fleet.cases)],
        "idleTests": [{"node": pod.tested, "policy": pod.idle_test, "since": pod.created} for pod in fleet.idle_tests],
        "budgets": [_budget(budget, now) for budget in sorted(fleet.budgets, key=lambda budget: budget.name)],
    }


def controller_data(leader: Leading, now: datetime) -> Data:
    """Who leads."""
    selector = leader.running.api_pods_node_selector if leader.running else None
    holder = {"leads": leader.leads(now), "holder": leader.holder, "renewedAt": leader.renewed}
    return holder | {"apiPodsNodeSelector": selector}


def breaker_data(count: int, breaker: Breaker, *, exact: bool) -> Data:
    """The breaker of the fleet; not `exact`: it may be more."""
    return {
        "starts": count,
        "exact": exact,
        "most": breaker.starts,
        "windowSeconds": int(breaker.window.total_seconds()),
    }


def _fleet(fleet: Overview) -> str:
    nodes = "an unknown number of nodes" if fleet.nodes is None else _amount(fleet.nodes, "node")
    if not fleet.cases:
        return f"{nodes}; no case is open"
    cases = "1 case is open, on one" if len(fleet.cases) == 1 else f"{len(fleet.cases)} cases are open, on {_on(fleet)}"
    return f"{nodes}; {cases} of them"


def _on(fleet: Overview) -> int:
    return len({case.node for case in fleet.cases})


def _amount(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _recent(fleet: Overview, breaker: Breaker, now: datetime) -> int:
    """Starts of open cases that count, and claims of cases that do not say yet that they have one."""
    known = starts(fleet.cases)
    told_of = {start.case for start in known}
    claims = {claim.case: claim.since for budget in fleet.budgets for claim in budget.claims}
    coming = (since for case, since in claims.items() if case not in told_of)
    return len(breaker.recent([*(start.at for start in known), *coming], now))


def _failing(policies: Iterable[Policy], now: datetime) -> Iterator[str]:
    for policy in sorted(policies, key=lambda policy: policy.name):
        if policy.breaker.stays_open(policy.closed_at, now):
            yield f"{policy.breaker.message}; {closing(f'policy/{policy.name}', policy.closed_at, now)}"


def _groups(ordered: Iterable[Group], now: datetime) -> Iterator[str]:
    for actor, of_actor in groupby(ordered, lambda group: group.wait.actor):
        yield HEADINGS[actor]
        for group in of_actor:
            yield f"  {group.wait.word}: {len(group.cases)}, {_longest(group, now)}: {_named(group.cases)}"
            yield from _taken_out(group.cases, now)
            if group.wait.remedy and actor is not Actor.NOBODY:
                yield f"    {group.wait.remedy}"


def _taken_out(cases: Iterable[Case], now: datetime) -> Iterator[str]:
    """Who has their nodes, until when, and why."""
    out = [case for case in cases if keep_out.is_out(case)]
    yield from (f"    {case.node}: {keep_out.described(case, now)}" for case in out[:MOST_NODES])


def _longest(group: Group, now: datetime) -> str:
    return f"{'longest ' if len(group.cases) > 1 else ''}for {in_words(now - group.since)}"


def _named(cases: Iterable[Case]) -> str:
    nodes = list(dict.fromkeys(case.node for case in cases))
    more = [f"and {len(nodes) - MOST_NODES} more"] if len(nodes) > MOST_NODES else []
    return ", ".join([*nodes[:MOST_NODES], *more])


def _budgets(budgets: Iterable[Budget], now: datetime) -> Iterator[str]:
    """Those of which something is used, the fullest first."""
    known = list(budgets)
    used = sorted((budget for budget in known if _room(budget, now) is not None), key=lambda each: _order(each, now))
    yield f"budgets: {len(known)}, of which used: {len(used)}"
    yield from (f"  {as_shown(budget, now)}" for budget in used[:MOST_BUDGETS])
    if len(used) > MOST_BUDGETS:
        yield f"  and {len(used) - MOST_BUDGETS} more"


def _order(budget: Budget, now: datetime) -> tuple[int, str]:
    return _room(budget, now) or 0, budget.name


def _room(budget: Budget, now: datetime) -> int | None:
    """How many more nodes may become unavailable under it; None where it is as if nothing had happened."""
    counts = budget.shown
    if counts is None or budget.failing.stays_open(budget.closed_at, now):
        return -1
    return counts.allowed if counts.unavailable or counts.quarantined else None


def _policy(policy: Policy, now: datetime) -> Data:
    stays = policy.breaker.stays_open(policy.closed_at, now)
    return {"name": policy.name, "mode": policy.mode.value, "breakerOpen": policy.breaker.message if stays else ""}


def _group(group: Group, now: datetime) -> Data:
    return {
        "actor": group.wait.actor.value,
        "waitsFor": group.wait.word,
        "remedy": group.wait.remedy,
        "since": group.since,
        "cases": [case_data(case, now) for case in group.cases],
    }


def _budget(budget: Budget, now: datetime) -> Data:
    counts = budget.shown
    stays = budget.failing.stays_open(budget.closed_at, now)
    numbers = {
        "total": counts.total if counts else None,
        "unavailable": counts.unavailable if counts else None,
        "allowed": counts.allowed if counts else None,
        "quarantined": counts.quarantined if counts else None,
    }
    return {"name": budget.name} | numbers | {"breakerOpen": budget.failing.message if stays else ""}
