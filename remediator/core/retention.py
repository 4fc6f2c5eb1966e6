"""Which ended cases are kept as a record of faults."""

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping
from datetime import datetime, timedelta

from remediator.core.case import Case
from remediator.core.giving_way import unanswered
from remediator.core.lemon import did_something
from remediator.core.node import Node
from remediator.core.operation import Operation
from remediator.core.policy import Policy
from remediator.core.relapse import AGAIN

NEWEST = 20
AGE = timedelta(days=90)
WITHOUT_CASE = timedelta(days=7)


def orphaned(operations: Iterable[Operation], cases: Container[str], now: datetime) -> list[Operation]:
    """Operations that ended a week ago or earlier and are of no case (`cases`: their uids); oldest first.

    Users and other programs make some, which are refused. Those of a case go with it.
    """
    ended = ((each.finished, each) for each in operations if each.finished is not None and each.case_uid not in cases)
    old = [(finished, each) for finished, each in ended if now - finished > WITHOUT_CASE]
    return [each for _, each in sorted(old, key=lambda pair: (pair[0], pair[1].name))]


def expired(
    cases: Iterable[Case], nodes: Mapping[str, Node], policies: Mapping[str, Policy], now: datetime
) -> list[Case]:
    """Ended cases beyond the newest 20 of their node and policy, or older than 90 days; oldest first.

    Kept whatever their number and age are cases that a decision still rests on: those with an attempt that counts
    towards `attempts.max`, those that a relapse or a lemon is known by, and those whose onset still stands, since the
    next case would be opened for it at once.
    """
    groups: defaultdict[tuple[str, str], list[Case]] = defaultdict(list)
    for case in cases:
        if case.ended is not None and not case.finalizer:
            groups[case.node, case.policy].append(case)
    longest = max((policy.attempts_window for policy in policies.values()), default=timedelta(0))
    memory = max((_memory(policy) for policy in policies.values()), default=timedelta(0))
    old = [
        case
        for ended in groups.values()
        for rank, case in enumerate(sorted(ended, key=_ended, reverse=True))
        if (rank >= NEWEST or now - _ended(case) > AGE)
        and not _counts(case, policies[case.policy].attempts_window if case.policy in policies else longest, now)
        and not (did_something(case) and now - _ended(case) < memory)
        and not _stands(case, nodes.get(case.node))
    ]
    return sorted(old, key=_ended)


def _ended(case: Case) -> datetime:
    return case.ended or case.created


def _counts(case: Case, window: timedelta, now: datetime) -> bool:
    """Whether an attempt of the case counts towards the attempts of its node. A policy that is gone may come back."""
    begun = [attempt.started for attempt in case.tries] or ([case.started] if case.started else [])
    return any(now - started < window for started in begun)


def _memory(policy: Policy) -> timedelta:
    """For how long what was done to a node, or to a board, is asked about."""
    relapse = policy.relapse + AGAIN if policy.relapse else timedelta(0)
    return max(relapse, policy.lemon.window if policy.lemon else timedelta(0))


def _stands(case: Case, node: Node | None) -> bool:
    """Whether the node still shows what the case was opened for, since the same moment, and would get no other case."""
    if unanswered(case):
        return False
    trigger = case.trigger
    condition = node.conditions.get(trigger.condition) if node and trigger and node.uid == case.node_uid else None
    return condition is not None and trigger is not None and condition.since == trigger.since
