"""Correlation: many nodes show the same condition and probably have one cause, so no node is repaired."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from remediator.core.case import Case
from remediator.core.node import Node
from remediator.core.policy import MESSAGE, Correlation, Policy


@dataclass(frozen=True, slots=True)
class SharedCause:
    """What nodes have in common: one policy, one condition, and what the policy compares, as text.

    By default these are the words of the condition: detectors put no changing numbers there.
    """

    policy: str
    condition: str
    text: str


def shared_cause(case: Case) -> SharedCause | None:
    """What a case was opened for; None where that is nothing in common. The same for whoever has only the case."""
    trigger = case.trigger
    text = (trigger.cause or trigger.message) if trigger else ""
    return SharedCause(case.policy, trigger.condition, text) if trigger and text else None


def common_text(policy: Policy, reason: str, message: str, labels: Mapping[str, str]) -> str:
    """What the policy compares of a condition and its node; "" where one of these is missing.

    >>> from collections import namedtuple
    >>> by = lambda *keys: namedtuple("P", "correlation")(namedtuple("C", "by")(keys))
    >>> common_text(by("message"), "Xid79", "GPU lost", {}), common_text(by("rack"), "Xid79", "GPU lost", {})
    ('GPU lost', '')
    >>> common_text(by("reason", "rack"), "Xid79", "GPU lost", {"rack": "a"})
    'reason Xid79, rack a'
    """
    own = {"reason": reason, "message": message}
    keys = policy.correlation.by if policy.correlation else (MESSAGE,)
    values = [(key, own.get(key, labels.get(key, ""))) for key in keys]
    if not all(value for _, value in values):
        return ""
    return message if keys == (MESSAGE,) else ", ".join(f"{key} {value}" for key, value in values)


def cause_of(case: Case, policy: Policy, node: Node) -> SharedCause | None:
    """The same by what the policy compares now."""
    trigger = case.trigger
    text = common_text(policy, trigger.reason, trigger.message, node.labels) if trigger else ""
    return SharedCause(case.policy, trigger.condition, text) if trigger and text else None


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
    by_name = {node.name: node for node in nodes}
    for case in cases:
        if case.policy != policy.name:
            continue
        known = by_name.get(case.node)
        cause = cause_of(case, policy, known) if known else shared_cause(case)
        if cause and case.trigger and case.ended and now - case.ended <= policy.correlation.within:
            begun[cause][case.node] = case.trigger.since
    for node in by_name.values():
        for cause, since in _shown(policy, node):
            begun[cause][node.name] = since
    return {cause: frozenset(times) for cause, times in begun.items() if _burst(times.values(), policy.correlation)}


def _shown(policy: Policy, node: Node) -> Iterable[tuple[SharedCause, datetime]]:
    for clause in (clause for when in policy.when for clause in when.clauses):
        condition = node.conditions.get(clause.condition)
        if condition is None or not clause.met_by(condition) or not policy.selects(node):
            continue
        if text := common_text(policy, condition.reason, condition.message, node.labels):
            yield SharedCause(policy.name, condition.type, text), condition.since


def _burst(times: Iterable[datetime], rule: Correlation) -> bool:
    """Whether so many of the times lie within the window of each other."""
    ordered = sorted(times)
    return any(last - first <= rule.within for first, last in zip(ordered, ordered[rule.nodes - 1 :], strict=False))
