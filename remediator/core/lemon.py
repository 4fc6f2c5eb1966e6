"""Nodes and boards whose faults come back whatever is done to them: a person must look, with the history."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from remediator.core.case import Case, PastCase, Phase
from remediator.core.gpus import Gpu
from remediator.core.policy import Policy
from remediator.core.reasons import Reason
from remediator.core.relapse import AGAIN, earlier_relapse, given_back

MOST_SHOWN = 10  # cases of a history: the newest


@dataclass(frozen=True, slots=True)
class Known:
    """Why a person must look before anything is tried in a case, and the cases that say so."""

    reason: Reason
    message: str
    cases: tuple[Case, ...]


def known(policy: Policy, case: Case, of_node: Sequence[Case], of_gpus: Mapping[Gpu, Sequence[Case]]) -> Known | None:
    """What earlier cases say of a case in which nothing was tried yet; None where it may be tried.

    `of_node`: all cases of nodes of this name, whatever their uid: a node that was set up anew is the same machine.
    `of_gpus`: those of each GPU that this case is about, on whatever node.
    """
    if case.tries:
        return None
    if relapses := earlier_relapse(policy, case, of_node):
        return Known(Reason.RELAPSED, f"the second relapse of {case.node} within {days(AGAIN)}", relapses)
    if policy.lemon is None:
        return None
    most, window = policy.lemon.cases, policy.lemon.window
    node = _counted(case, _since_release(of_node), window)
    if len(node) >= most:
        return Known(Reason.LEMON, f"{case.node} had {_cases(node)} in {days(window)}", node)
    for gpu, cases in sorted(of_gpus.items()):
        board = _counted(case, _before_here(case, cases), window)
        if len(board) >= most and _borne_out(case, board):
            places = ", ".join(sorted({other.node for other in board})[:5])
            return Known(Reason.LEMON, f"{gpu} had {_cases(board)} in {days(window)}, on {places}", board)
    return None


def _before_here(case: Case, cases: Sequence[Case]) -> list[Case]:
    """Those of a board on this node, and those of other nodes that were over before it was first seen here.

    A board is in one node at a time. Another node that names one which is here is wrong, or somebody there lies.
    """
    first = min(other.created for other in (case, *cases) if other.node == case.node)
    return [other for other in cases if other.node == case.node or _end(other) <= first]


def _borne_out(case: Case, cases: Sequence[Case]) -> bool:
    """Whether more than one other node says it: whoever is root on one may name any board in its evidence."""
    nodes = {other.node for other in cases}
    return case.node in nodes or len(nodes) > 1


def history(cases: Iterable[Case]) -> tuple[PastCase, ...]:
    """What a person is shown of earlier cases: the newest, oldest first."""
    return tuple(_past(case) for case in sorted(cases, key=_end)[-MOST_SHOWN:])


def did_something(case: Case) -> bool:
    """Whether the case is over, has done something to its node, and no user has asked for that, or cancelled it.

    One whose node has gone in the middle counts: a machine that is set up anew is as sick as before. One in which only
    drains ran does not.
    """
    cancelled = case.phase is Phase.CANCELLED and case.reason is not Reason.NODE_GONE
    return case.ended is not None and bool(case.operated) and not cancelled and case.manual is None


def days(time: timedelta) -> str:
    """A time as people say it."""
    hours = time.total_seconds() / 3600
    return f"{hours / 24:g} days" if hours >= 48 and hours % 24 == 0 else f"{hours:g} h"


def _cases(cases: Sequence[Case]) -> str:
    return "one case" if len(cases) == 1 else f"{len(cases)} cases"


def _past(case: Case) -> PastCase:
    operations = tuple(
        dict.fromkeys(attempt.template for attempt in case.counted if not (attempt.follows or attempt.probe))
    )
    return PastCase(case.name, case.node, case.policy, _end(case), operations, case.phase)


def _end(case: Case) -> datetime:
    return case.ended or case.created


def _counted(case: Case, cases: Iterable[Case], window: timedelta) -> tuple[Case, ...]:
    """Those that count against this case, oldest first."""
    since = case.created - window
    counted = [other for other in cases if other.uid != case.uid and did_something(other) and _end(other) > since]
    return tuple(sorted(counted, key=_end))


def _since_release(cases: Iterable[Case]) -> list[Case]:
    """Those of a node since a person has given it back last: a person has looked at it then."""
    ended = sorted((case for case in cases if case.ended is not None), key=_end)
    repaired = [index for index, case in enumerate(ended) if given_back(case)]
    return ended[repaired[-1] + 1 :] if repaired else ended
