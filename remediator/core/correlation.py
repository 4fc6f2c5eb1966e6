"""Correlation: many nodes show the same condition and probably have one cause, so no node is repaired."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime, timedelta

from remediator.core.case import Case, Phase
from remediator.core.health import Health, health_of, shows
from remediator.core.node import Node
from remediator.core.policy import DRIVER, KERNEL, MESSAGE, REASON, Correlation, Policy
from remediator.core.reasons import Reason


@dataclass(frozen=True, slots=True)
class SharedCause:
    """What nodes have in common: one policy, one condition, and what the policy compares, as text.

    By default these are the words of the condition: detectors put no changing numbers there.
    """

    policy: str
    condition: str
    text: str


@dataclass(frozen=True, slots=True)
class Burst:
    """Nodes that came to show one cause close together, by name, and the first and the last of their onsets."""

    nodes: tuple[str, ...]
    first: datetime
    last: datetime

    def near(self, onset: datetime, within: timedelta) -> bool:
        """Whether a node with this onset belongs to them."""
        return self.first - onset <= within and onset - self.last <= within


Causes = Mapping[SharedCause, tuple[Burst, ...]]
Onset = tuple[datetime, str]  # since when a node, by name, shows a cause


def shared_cause(case: Case) -> SharedCause | None:
    """What a case was opened for; None where that is nothing in common. The same for whoever has only the case."""
    trigger = case.trigger
    text = (trigger.cause or trigger.message) if trigger else ""
    return SharedCause(case.policy, trigger.condition, text) if trigger and text else None


def common_text(policy: Policy, reason: str, message: str, node: Node) -> str:
    """What the policy compares of a condition and its node; "" where one of these is missing.

    >>> from collections import namedtuple
    >>> by = lambda *keys: namedtuple("P", "correlation")(namedtuple("C", "by")(keys))
    >>> node = Node("gpu-1", "u", {"rack": "a"}, {}, kernel="6.8.0")
    >>> common_text(by("message"), "Xid79", "GPU lost", node), common_text(by("row"), "Xid79", "GPU lost", node)
    ('GPU lost', '')
    >>> common_text(by("reason", "rack", "kernelVersion"), "Xid79", "GPU lost", node)
    'reason Xid79, rack a, kernelVersion 6.8.0'
    """
    own = {REASON: reason, MESSAGE: message, KERNEL: node.kernel, DRIVER: node.driver}
    keys = policy.correlation.by if policy.correlation else (MESSAGE,)
    values = [(key, own.get(key, node.labels.get(key, ""))) for key in keys]
    if not all(value for _, value in values):
        return ""
    return message if keys == (MESSAGE,) else ", ".join(f"{key} {value}" for key, value in values)


def cause_of(case: Case, policy: Policy, node: Node) -> SharedCause | None:
    """The same by what the policy compares now."""
    trigger = case.trigger
    text = common_text(policy, trigger.reason, trigger.message, node) if trigger else ""
    return SharedCause(case.policy, trigger.condition, text) if trigger and text else None


def shared_causes(policy: Policy, nodes: Iterable[Node], cases: Iterable[Case], now: datetime) -> Causes:
    """The causes that enough nodes came to show close together.

    Counted are nodes whose condition holds now, before any case was opened for them as well, and nodes whose case for
    it ended within the window: when a server comes back, the last node to notice is no single fault. A node with an
    open case counts on while nobody can tell how it is. Not counted are nodes that users keep out of service, those
    that wait for a user, and other evidence that proves nothing.
    """
    rule = policy.correlation
    if rule is None:
        return {}
    known = list(cases)
    quarantined = {case.node_uid for case in known if case.open and case.phase is Phase.ESCALATED}
    by_name = {node.name: node for node in nodes}
    out = {name for name, node in by_name.items() if _out(node, quarantined)}
    onsets: defaultdict[SharedCause, dict[str, datetime]] = defaultdict(dict)
    for case in known:
        if case.policy == policy.name and case.node not in out and case.trigger:
            node = by_name.get(case.node)
            if not (_unclear(case, policy, node, now) if case.open else _lately(case, rule, now)):
                continue
            cause = cause_of(case, policy, node) if node else shared_cause(case)
            if cause:
                onsets[cause][case.node] = case.trigger.since
    for node in (node for name, node in by_name.items() if name not in out):
        for cause, since in _shown(policy, node, now):
            onsets[cause][node.name] = since
    bursts = {cause: _bursts(((since, name) for name, since in times.items()), rule) for cause, times in onsets.items()}
    return {cause: group for cause, group in bursts.items() if group}


def sharing(case: Case, policy: Policy, node: Node, causes: Causes) -> tuple[str, ...]:
    """The nodes that a case has its cause in common with; none where its own onset is far from all of theirs.

    Its onset is that of its trigger, and that which the node shows now: a detector that has started anew tells another.
    """
    cause, shown = cause_of(case, policy, node), node.conditions.get(case.trigger.condition if case.trigger else "")
    onsets = [known.since for known in (case.trigger, shown) if known]
    if cause is None or policy.correlation is None:
        return ()
    within = policy.correlation.within
    bursts = (burst for burst in causes.get(cause, ()) if any(burst.near(onset, within) for onset in onsets))
    return next((burst.nodes for burst in bursts), ())


def was_in_group(case: Case) -> bool:
    """Whether a case was held with others for one cause; when the cause has gone, those still sick go one by one."""
    return any(event.reason is Reason.SHARED_CAUSE for event in case.timeline)


def under_repair(cases: Iterable[Case]) -> dict[SharedCause, str]:
    """Which case of a former group is being repaired now, by their cause: one that holds its node and goes on.

    One that something stops, or that a person has, keeps no other waiting.
    """
    going = (
        case for case in cases if case.open and case.claimed and case.phase is not Phase.ESCALATED and not case.blocks
    )
    return {cause: case.name for case in going if was_in_group(case) and (cause := shared_cause(case))}


def _lately(case: Case, rule: Correlation, now: datetime) -> bool:
    return case.ended is not None and now - case.ended <= rule.within


def _unclear(case: Case, policy: Policy, node: Node | None, now: datetime) -> bool:
    """Whether nobody can tell how the node of an open case is: it may still show what the case was opened for."""
    return node is not None and node.uid == case.node_uid and health_of(node, policy, now) is Health.UNKNOWN


def _out(node: Node, quarantined: Set[str]) -> bool:
    """Whether the node is out of service for reasons that users know."""
    return node.opted_out or node.cordoned_by_user or node.uid in quarantined


def _shown(policy: Policy, node: Node, now: datetime) -> Iterable[tuple[SharedCause, datetime]]:
    for clause in (clause for when in policy.when for clause in when.clauses):
        condition = node.conditions.get(clause.condition)
        if condition is None or not shows(node, clause, now) or not policy.selects(node):
            continue
        if text := common_text(policy, condition.reason, condition.message, node):
            yield SharedCause(policy.name, condition.type, text), condition.since


def _bursts(onsets: Iterable[Onset], rule: Correlation) -> tuple[Burst, ...]:
    """Runs of onsets of which so many lie within the window of each other; those that overlap are one."""
    ordered = sorted(onsets)
    runs: list[range] = []  # places in the order
    for first, last in enumerate(range(rule.nodes - 1, len(ordered))):
        if ordered[last][0] - ordered[first][0] <= rule.within:
            joins = bool(runs) and first in runs[-1]
            start = runs.pop().start if joins else first
            runs.append(range(start, last + 1))
    return tuple(_burst(ordered[run.start : run.stop]) for run in runs)


def _burst(run: Sequence[Onset]) -> Burst:
    return Burst(tuple(sorted(name for _, name in run)), run[0][0], run[-1][0])
