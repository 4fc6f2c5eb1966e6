"""What is believed of a node and since when, what is not believed and why, in sentences. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from remediator.core.duration import in_words
from remediator.core.health import Health, shows
from remediator.core.judgement import ConditionDoubt, Judgement, judge
from remediator.core.node import Node
from remediator.core.policy import Policy

Judged = Sequence[tuple[Policy, Judgement]]


def judged(node: Node, policies: Iterable[Policy], now: datetime) -> Judged:
    """What each policy that selects the node makes of it, by name."""
    selecting = sorted((policy for policy in policies if policy.selects(node)), key=lambda policy: policy.name)
    return [(policy, judge(node, policy, now)) for policy in selecting]


def believed(node: Node, judgements: Judged, now: datetime) -> Iterator[str]:
    """Each condition that shows a fault and is believed, with its age and what it says."""
    clauses = [clause for policy, _ in judgements for when in policy.when for clause in when.clauses]
    shown = {clause.condition for clause in clauses if shows(node, clause, now)}
    for condition in (node.conditions[name] for name in sorted(shown)):
        text = f": {condition.message}" if condition.message else ""
        lasts = f"(for {in_words(now - condition.since)}, since {condition.since:%Y-%m-%d %H:%M:%S} UTC)"
        yield f"believed: {condition.type}={condition.status} ({condition.reason}){text} {lasts}"


def doubts(judgements: Judged) -> tuple[ConditionDoubt, ...]:
    """All that leaves a policy without an answer."""
    return tuple(sorted({doubt for _, judgement in judgements for doubt in judgement.doubts}))


def grouped(doubted: Iterable[ConditionDoubt]) -> list[str]:
    """Doubts of one kind in one phrase each: a node whose detectors have not spoken lacks thirty conditions.

    >>> grouped([Doubt("GpuXid", "is absent"), Doubt("Ready", "is Unknown"), Doubt("CniUnavailable", "is absent")])
    ['CniUnavailable, GpuXid: each is absent', 'Ready is Unknown']
    """
    by_why: defaultdict[str, set[str]] = defaultdict(set)
    for doubt in doubted:
        by_why[doubt.why].add(doubt.condition)
    return sorted(
        f"{', '.join(sorted(names))}{': each' if len(names) > 1 else ''} {why}" for why, names in by_why.items()
    )


def standing(judgements: Judged) -> Iterator[str]:
    """The policies that select the node: each that finds it unhealthy in a line of its own, the others by mode."""
    others: defaultdict[Health, defaultdict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for policy, judgement in judgements:
        if judgement.health is Health.UNHEALTHY:
            yield f"policy {policy.name} ({policy.mode.value}), health: Unhealthy"
        else:
            others[judgement.health][policy.mode.value].append(policy.name)
    for health in (Health.UNKNOWN, Health.HEALTHY):
        for mode, names in sorted(others[health].items()):
            yield _group(names, mode, health)


def _group(policies: Sequence[str], mode: str, health: Health) -> str:
    """Policies of one mode under which the node has the same health.

    >>> _group(["gpu-lost"], "Enforce", Health.HEALTHY)
    'policy gpu-lost (Enforce), health: Healthy'
    >>> _group(["gpu-lost", "gpu-xid"], "DryRun", Health.UNKNOWN)
    '2 policies (DryRun), health: Unknown: gpu-lost, gpu-xid'
    """
    if len(policies) == 1:
        return f"policy {policies[0]} ({mode}), health: {health.name.capitalize()}"
    return f"{len(policies)} policies ({mode}), health: {health.name.capitalize()}: {', '.join(policies)}"
