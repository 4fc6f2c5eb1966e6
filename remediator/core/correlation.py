"""Many nodes, one cause: a dead file server, a broken switch, a bad driver. No node's repair cures that."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from remediator.core.case import Case
from remediator.core.node import Node
from remediator.core.policy import Correlation, Policy


@dataclass(frozen=True, slots=True)
class Cause:
    """What nodes have in common: one policy, one condition, the same words. Detectors put no changing numbers there."""

    policy: str
    condition: str
    text: str


def cause(case: Case) -> Cause | None:
    """What a case was opened for; None where the condition said nothing, for silence is nothing in common."""
    trigger = case.trigger
    return Cause(case.policy, trigger.condition, trigger.message) if trigger and trigger.message else None


def shared(
    policy: Policy, nodes: Iterable[Node], cases: Iterable[Case], now: datetime
) -> Mapping[Cause, frozenset[str]]:
    """The causes that enough nodes show, with those nodes.

    Counted are nodes whose condition holds now, before any case was opened for them as well, and nodes whose case for
    it ended within the window: when a server comes back, the last node to notice is no single fault.
    """
    if policy.correlation is None:
        return {}
    begun: defaultdict[Cause, dict[str, datetime]] = defaultdict(dict)
    for case in cases:
        found = cause(case) if case.policy == policy.name else None
        if found and case.trigger and case.ended and now - case.ended <= policy.correlation.within:
            begun[found][case.node] = case.trigger.since
    for node in nodes:
        for found, since in _shown(policy, node):
            begun[found][node.name] = since
    return {found: frozenset(times) for found, times in begun.items() if _burst(times.values(), policy.correlation)}


def _shown(policy: Policy, node: Node) -> Iterable[tuple[Cause, datetime]]:
    for clause in (clause for when in policy.when for clause in when.clauses):
        found = node.conditions.get(clause.condition)
        if found is None or found.status is not clause.status or not found.message or not policy.selects(node):
            continue
        if not clause.reasons or found.reason in clause.reasons:
            yield Cause(policy.name, found.type, found.message), found.since


def _burst(times: Iterable[datetime], rule: Correlation) -> bool:
    """Whether so many of the times lie within the window of each other."""
    ordered = sorted(times)
    return any(last - first <= rule.within for first, last in zip(ordered, ordered[rule.nodes - 1 :], strict=False))
