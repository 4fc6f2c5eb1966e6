"""When status.blockedBy is written anew."""

from dataclasses import replace

import pytest

from remediator.controller.effects import ChangeNode, SaveCase
from remediator.controller.hold import hold
from remediator.core.case import Block, CaseEvent, Phase
from remediator.core.reasons import Reason
from tests.builders import a_case, at, minutes

SPENT = Block(Reason.BUDGET_SPENT, "budget rack-a: 1 of 1 unavailable (gpu-12)")
OTHER = Block(Reason.BUDGET_SPENT, "budget rack-a: 1 of 1 unavailable (gpu-7)")
BREAKER = Block(Reason.BREAKER_OPEN, "10 starts in 0:10:00", until=at(5))
LONGER = replace(BREAKER, until=at(12))
DRY_RUN = Block(Reason.DRY_RUN, "would try reboot")


def held(*blocks, phase=Phase.HELD):
    return a_case(phase=phase, blocks=blocks)


@pytest.mark.parametrize(
    ("case", "blocks", "written", "now", "saved", "rewrite_at"),
    [
        pytest.param(held(SPENT), [SPENT], at(0), at(29), False, None, id="the same for 29 minutes: nothing"),
        pytest.param(held(SPENT), [DRY_RUN], at(0), at(0, 1), True, None, id="another reason: at once"),
        pytest.param(held(SPENT), [SPENT, BREAKER], at(0), at(0, 1), True, None, id="one reason more: at once"),
        pytest.param(held(SPENT), [OTHER], at(0), at(0, 59), False, at(1), id="another text, 59 s"),
        pytest.param(held(SPENT), [OTHER], at(0), at(0, 60), True, None, id="another text, 60 s: now"),
        pytest.param(held(SPENT), [OTHER], None, at(0, 1), True, None, id="another text, a new leader: now"),
        pytest.param(held(BREAKER), [LONGER], at(4, 50), at(4, 59), False, at(5, 50), id="until is to come: later"),
        pytest.param(held(BREAKER), [LONGER], at(4, 50), at(5), True, None, id="until has passed: now"),
        pytest.param(held(phase=Phase.NEW), [SPENT], None, at(0), True, None, id="held for the first time"),
    ],
)
def test_what_holds_a_case_is_written_when_it_is_news_and_its_text_once_a_minute(
    case, blocks, written, now, saved, rewrite_at
):
    result = hold(case, tuple(blocks), written, now)
    assert (result.saved, result.rewrite_at) == (saved, rewrite_at)
    assert [effect.after.blocks for effect in result.effects if isinstance(effect, SaveCase)] == [tuple(blocks)] * saved


@pytest.mark.parametrize(("blocks", "events"), [([OTHER], 0), ([DRY_RUN], 1)])
def test_only_another_reason_is_an_event_of_the_case(blocks, events):
    (save, *_) = hold(held(SPENT), tuple(blocks), at(0), at(2)).effects
    assert len(save.after.timeline) == events


@pytest.mark.parametrize(("block", "degraded"), [(SPENT, True), (BREAKER, True), (DRY_RUN, False)])
def test_a_node_that_only_waits_its_turn_gets_no_new_work_where_another_has_room(block, degraded):
    effects = hold(held(block), (block,), at(0), at(0)).effects
    assert [type(effect) for effect in effects] == [ChangeNode] * degraded


UNKNOWN = Block(Reason.HEALTH_UNKNOWN, "GpuLost is absent")


@pytest.mark.parametrize(
    ("block", "minute", "told"),
    [(SPENT, 29.9, False), (SPENT, 30, True), (UNKNOWN, 59.9, False), (UNKNOWN, 60, True), (DRY_RUN, 9999, False)],
)
def test_a_hold_that_no_user_chose_and_that_lasts_is_told(block, minute, told):
    result = hold(held(block), (block,), at(0), at(minute))
    events = [effect.after.timeline[-1].reason for effect in result.effects if isinstance(effect, SaveCase)]
    assert events == [Reason.HELD_LONG] * told
    if not told and block is not DRY_RUN:
        assert result.report_at == at(30 if block is SPENT else 60)


def test_it_is_told_once_and_for_as_long_as_it_lasts():
    case = held(replace(SPENT, reported=True))
    assert hold(case, (SPENT,), at(0), at(300)).effects[:-1] == ()
    (save, _) = hold(case, (OTHER,), at(0), at(300)).effects
    assert save.after.blocks == (replace(OTHER, reported=True),)


def test_reasons_that_take_turns_are_one_hold_and_one_that_a_user_chose_begins_anew():
    turns = [CaseEvent(at(n), reason, "") for n, reason in enumerate([Reason.HEALTH_UNKNOWN, Reason.NODE_BUSY] * 25)]
    case = a_case(phase=Phase.HELD, blocks=(UNKNOWN,), timeline=tuple(turns), created=-20)
    assert hold(case, (UNKNOWN,), at(0), at(50)).saved, "its timeline is full, so it is as old as the case"
    chosen = replace(case, timeline=(*turns[1:], CaseEvent(at(49), Reason.DRY_RUN, "")))
    assert hold(chosen, (UNKNOWN,), at(0), at(50)).report_at == at(49 + 60)


@pytest.mark.parametrize("block", [SPENT, UNKNOWN])
def test_a_case_that_waited_three_weeks_in_dry_run_is_not_told_as_held_for_21_days_once_it_may_act(block):
    weeks = 21 * 24 * 60
    waited = replace(
        held(DRY_RUN), timeline=(CaseEvent(at(0), Reason.DETECTED, ""), CaseEvent(at(0), Reason.DRY_RUN, ""))
    )
    enforced = hold(waited, (block,), at(0), at(weeks))
    (save, *_) = enforced.effects
    assert [event.reason for event in save.after.timeline[2:]] == [block.reason]
    assert not any(block.reported for block in save.after.blocks)
    later = 30 if block is SPENT else 60
    assert enforced.report_at == at(weeks + later)
    (save, *_) = hold(save.after, (block,), at(weeks), at(weeks + later)).effects
    event = save.after.timeline[-1]
    assert event.reason is Reason.HELD_LONG
    assert event.message.startswith(f"held for {minutes(later)}: {block.reason.value}")
