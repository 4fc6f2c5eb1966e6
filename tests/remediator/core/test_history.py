"""How long a case was in its phase, how long a hold lasts, how long its drains took, when the last fault was."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from remediator.core.case import Block, CaseEvent, Phase
from remediator.core.history import dated, drained_for, held_since, last_fault, phase_since
from remediator.core.operation import Operation
from remediator.core.reasons import Reason
from tests.builders import a_case, at, minutes

R = Reason


def told(*events: tuple[float, Reason]) -> tuple[CaseEvent, ...]:
    return tuple(CaseEvent(at(minute), reason, "") for minute, reason in events)


@pytest.mark.parametrize(
    ("events", "since"),
    [
        ((), at(0)),
        (((1, R.DRY_RUN), (2, R.BUDGET_SPENT)), at(0)),
        (((1, R.DRY_RUN), (3, R.CLAIMED), (4, R.DIAGNOSED), (5, R.STARTED), (6, R.DRAINING)), at(3)),
        (((3, R.CLAIMED), (7, R.OPERATING)), at(7)),
        (((3, R.CLAIMED), (7, R.OPERATING), (9, R.FAILED), (11, R.STARTED), (12, R.BREAKER_OPEN)), at(11)),
        (((3, R.CLAIMED), (9, R.FAILED), (11, R.LADDER_EXHAUSTED)), at(11)),
    ],
)
def test_a_phase_began_with_the_first_line_of_the_last_run_that_tells_of_it(
    events: tuple[tuple[float, Reason], ...], since: datetime
) -> None:
    assert phase_since(a_case(timeline=told(*events))) == since


@pytest.mark.parametrize(
    ("events", "since"),
    [
        ((), at(0)),
        (((2, R.BUDGET_SPENT),), at(2)),
        (((2, R.BUDGET_SPENT), (5, R.BREAKER_OPEN)), at(2)),
        (((2, R.BUDGET_SPENT), (5, R.CLAIMED), (6, R.BREAKER_OPEN)), at(5)),
        (((2, R.BUDGET_SPENT), (5, R.CLAIMED), (6, R.FAILED), (8, R.BUDGET_SPENT)), at(8)),
    ],
)
def test_a_hold_lasts_since_its_reason_was_told_after_the_last_attempt(
    events: tuple[tuple[float, Reason], ...], since: datetime
) -> None:
    assert held_since(a_case(timeline=told(*events)), R.BUDGET_SPENT) == since


def test_a_hold_lasts_since_the_time_that_it_shows_whatever_the_timeline_has_left() -> None:
    shown = Block(R.BUDGET_SPENT, "1 of 1", since=at(3))
    case = a_case(blocks=(shown,), timeline=told((9, R.BUDGET_SPENT)))
    assert (held_since(case, R.BUDGET_SPENT), held_since(case, R.BREAKER_OPEN)) == (at(3), at(0))


def test_what_is_shown_next_keeps_the_time_of_each_reason_that_stays_and_a_new_one_begins_now() -> None:
    case = a_case(blocks=(Block(R.BUDGET_SPENT, "1 of 1", since=at(3)), Block(R.PAUSED, "", since=at(4))))
    blocks = (Block(R.BREAKER_OPEN, ""), Block(R.BUDGET_SPENT, "2 of 2"))
    assert [block.since for block in dated(case, blocks, at(8))] == [at(8), at(3)]


def operation(**times: Any) -> Operation:
    return Operation("op", "uid", "gpu-1", "uid-gpu-1", "uid-case-1", "reboot", at(0), **times)


def test_drains_count_from_their_start_to_the_intent_or_to_the_end() -> None:
    drained = [
        operation(drain_started=at(1), intent_at=at(4), finished=at(9)),
        operation(drain_started=at(10), finished=at(12)),
        operation(finished=at(20)),
        operation(drain_started=at(30)),
        operation(drain_started=at(9), intent_at=at(8)),
    ]
    assert drained_for(drained) == minutes(5)
    assert drained_for([]) == timedelta(0)


def test_the_last_fault_is_that_of_this_very_node_and_none_while_a_case_is_open() -> None:
    ended = [a_case("a", ended=at(5)), a_case("b", ended=at(9)), a_case("c", ended=at(20), node_uid="uid-of-another")]
    assert last_fault(ended, "uid-gpu-1") == at(9)
    assert last_fault([*ended, a_case("d", phase=Phase.HELD)], "uid-gpu-1") is None
    assert last_fault([], "uid-gpu-1") is None
