"""How often a node and its boards have failed lately: one small level that falls by itself. Pure.

A failure is a case that is over. It counts 1 when it ends and half as much after each HALF_LIFE. The sum over a node
gives its level. A node falls from each level to the next one in one half-life, and is forgotten in the end.

* Failures belong to the host. Those of a board on other hosts come with it once this host has had a case about it; only
  those that were over by then, since anybody who is root on a node may name any board.
* One workload counts once on a node, however often it fails there, and one failure alone gives no level: a Pod that
  breaks each node that it comes to must not make all nodes look bad.
* What a person has given back has been looked at: failures before that do not count.
* A fault that many nodes had together (SharedCause), a cancelled case, and what a user asked for are no failures. Where
  nothing was done to the node, its case counts only under a policy that would repair: otherwise the cause lies outside.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from remediator.core.case import Case, Phase
from remediator.core.lemon import did_something
from remediator.core.reasons import Reason
from remediator.core.relapse import given_back

HALF_LIFE = timedelta(hours=72)
LEVELS = (1.25, 2.5, 5.0)  # from this sum on level 1, 2 and 3; each is twice the one before
FORGOTTEN = 10 * HALF_LIFE  # then it counts less than a thousandth
_NO_BOARDS: frozenset[str] = frozenset()  # of most cases: one object, since Python makes one of 216 bytes for each


class PastFailure(NamedTuple):
    """One case that is over. `workload`: the only job on the node when it was taken, "" where nobody knows one."""

    case: str
    node: str
    policy: str
    opened: datetime
    ended: datetime
    workload: str = ""
    boards: frozenset[str] = frozenset()  # serial numbers and UUIDs
    repaired: bool = True  # something was done to the node
    given_back: bool = False  # a person had the node, and has given it back


def failure(case: Case) -> PastFailure | None:
    """A case as a failure; None where it is none."""
    if case.ended is None or case.manual is not None or case.new_node is not None:
        return None
    if not (did_something(case) or _passed(case) or given_back(case)):
        return None
    if any(event.reason is Reason.SHARED_CAUSE for event in case.timeline):
        return None
    boards = frozenset(key for gpu in case.gpus for key in gpu.keys) or _NO_BOARDS
    workload, repaired = case.sole_workload, bool(case.tries)
    return PastFailure(
        case.name, case.node, case.policy, case.created, case.ended, workload, boards, repaired, given_back(case)
    )


def _passed(case: Case) -> bool:
    """Whether the fault went by itself."""
    return case.phase is Phase.RECOVERED and not case.attempts


def of_node(own: Iterable[PastFailure], of_board: Callable[[str], Iterable[PastFailure]]) -> list[PastFailure]:
    """All failures that count for a node: `own` are those of the host, `of_board` those of each board, on any host."""
    kept = _since_given_back(own)
    first: dict[str, datetime] = {}
    for known in kept:
        for board in known.boards:
            first[board] = min(first.get(board, known.opened), known.opened)
    names = {known.case for known in kept}
    brought = {
        other.case: other
        for board, since in first.items()
        for other in of_board(board)
        if other.case not in names and other.node != kept[0].node and other.ended <= since
    }
    return [*kept, *brought.values()]


def _since_given_back(own: Iterable[PastFailure]) -> list[PastFailure]:
    ordered = sorted(own, key=lambda known: known.ended)
    given = [index for index, known in enumerate(ordered) if known.given_back]
    return ordered[given[-1] + 1 :] if given else ordered


def count(failures: Iterable[PastFailure], repairing: Collection[str], now: datetime) -> float:
    """The sum of what failures count now. `repairing`: the policies that repair nodes.

    >>> at = datetime(2026, 1, 1)
    >>> twice = [Failure(name, "gpu-1", "gpu-lost", at, at) for name in ("a", "b")]
    >>> [count(twice, (), at + HALF_LIFE * half_lives) for half_lives in (0, 1, 2)]
    [2.0, 1.0, 0.5]
    """
    newest: dict[str, datetime] = {}
    for known in failures:
        if known.repaired or known.policy in repairing:
            workload = known.workload or known.case
            newest[workload] = max(newest.get(workload, known.ended), known.ended)
    return sum(math.exp2(-(max(now - ended, timedelta(0)) / HALF_LIFE)) for ended in newest.values())


def level(counted: float) -> int:
    """0 to 3.

    >>> [level(counted) for counted in (0, 1.2, 1.25, 2.5, 5)]
    [0, 0, 1, 2, 3]
    """
    return bisect_right(LEVELS, counted)
