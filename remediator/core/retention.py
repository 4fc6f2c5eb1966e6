"""Which ended cases are kept as a record of faults."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta

from remediator.core.case import Case

NEWEST = 20
AGE = timedelta(days=90)


def expired(cases: Iterable[Case], now: datetime) -> list[Case]:
    """Ended cases beyond the newest 20 of their node, or older than 90 days; oldest first."""
    by_node: defaultdict[str, list[Case]] = defaultdict(list)
    for case in cases:
        if case.ended is not None and not case.finalizer:
            by_node[case.node].append(case)
    old = [
        case
        for ended in by_node.values()
        for rank, case in enumerate(sorted(ended, key=_ended, reverse=True))
        if rank >= NEWEST or now - _ended(case) > AGE
    ]
    return sorted(old, key=_ended)


def _ended(case: Case) -> datetime:
    return case.ended or case.created
