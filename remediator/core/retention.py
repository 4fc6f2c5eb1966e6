"""Which ended cases are kept as a record of faults."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from remediator.core.case import Case
from remediator.core.node import Node
from remediator.core.policy import Policy

NEWEST = 20
AGE = timedelta(days=90)


def expired(
    cases: Iterable[Case], nodes: Mapping[str, Node], policies: Mapping[str, Policy], now: datetime
) -> list[Case]:
    """Ended cases beyond the newest 20 of their node and policy, or older than 90 days; oldest first.

    Kept whatever their number and age are cases that a decision still rests on: those with an attempt that counts
    towards `attempts.max`, and those whose onset still stands, since the next case would be opened for it at once.
    """
    groups: defaultdict[tuple[str, str], list[Case]] = defaultdict(list)
    for case in cases:
        if case.ended is not None and not case.finalizer:
            groups[case.node, case.policy].append(case)
    longest = max((policy.attempts_window for policy in policies.values()), default=timedelta(0))
    old = [
        case
        for ended in groups.values()
        for rank, case in enumerate(sorted(ended, key=_ended, reverse=True))
        if (rank >= NEWEST or now - _ended(case) > AGE)
        and not _counts(case, policies[case.policy].attempts_window if case.policy in policies else longest, now)
        and not _stands(case, nodes.get(case.node))
    ]
    return sorted(old, key=_ended)


def _ended(case: Case) -> datetime:
    return case.ended or case.created


def _counts(case: Case, window: timedelta, now: datetime) -> bool:
    """Whether an attempt of the case counts towards the attempts of its node. A policy that is gone may come back."""
    return any(now - attempt.started < window for attempt in case.tries)


def _stands(case: Case, node: Node | None) -> bool:
    """Whether the node still shows what the case was opened for, since the same moment."""
    trigger = case.trigger
    condition = node.conditions.get(trigger.condition) if node and trigger and node.uid == case.node_uid else None
    return condition is not None and trigger is not None and condition.since == trigger.since
