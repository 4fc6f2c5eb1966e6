"""Correlation: many nodes show the same condition and probably have one cause, so no node is repaired."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from remediator.core.case import Case
from remediator.core.node import Node
from remediator.core.policy import Correlation, Policy


@dataclass(frozen=True, slots=True)
class SharedCause:
    """What nodes have in common: one policy, one condition, the same words. Detectors put no changing numbers there."""

    policy: str
    condition: str
    text: str


def shared_cause(case: Case) -> SharedCause | None:
    """What a case was opened for; None where the condition has no message, which is nothing in common."""
    trigger = case.trigger
    return SharedCause(case.policy, trigger.condition, trigger.message) if trigger and trigger.message else None


def shared_causes(
    policy: Policy, nodes: Iterable[Node], cases: Iterable[Case], now: datetime
) -> Mapping[SharedCause, frozenset[str]]:
    """The causes that enough nodes show, with those nodes.

    Counted are nodes whose condition holds now, before any case was opened for them as well, and nodes whose case for
    it ended within the window: when a server comes back, the last node to notice is no single fault.
    """
    if policy.correlation is None:
        return {}
    begun: defaultdict[SharedCause, dict[str, datetime]] = defaultdict(dict)
    for case in cases:
        cause = shared_cause(case) if case.policy == policy.name else None
        if cause and case.trigger and case.ended and now - case.ended <= policy.correlation.within:
            begun[cause][case.node] = case.trigger.since
    for node in nodes:
        for cause, since in _shown(policy, node):
            begun[cause][node.name] = since
    return {cause: frozenset(times) for cause, times in begun.items() if _burst(times.values(), policy.correlation)}


def _shown(policy: Policy, node: Node) -> Iterable[tuple[SharedCause, datetime]]:
    for clause in (clause for when in policy.when for clause in when.clauses):
        condition = node.conditions.get(clause.condition)
        if condition is None or not clause.met_by(condition) or not condition.message or not policy.selects(node):
            continue
        yield SharedCause(policy.name, condition.type, condition.message), condition.since


def _burst(times: Iterable[datetime], rule: Correlation) -> bool:
    """Whether so many of the times lie within the window of each other."""
    ordered = sorted(times)
    return any(last - first <= rule.within for first, last in zip(ordered, ordered[rule.nodes - 1 :], strict=False))
