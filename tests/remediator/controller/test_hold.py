"""When status.blockedBy is written anew."""

from dataclasses import replace

import pytest

from remediator.controller.effects import ChangeNode, SaveCase
from remediator.controller.hold import hold
from remediator.core.case import Block, Phase
from remediator.core.reasons import Reason
from tests.builders import a_case, at

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
        pytest.param(held(SPENT), [SPENT], at(0), at(60), False, None, id="the same for an hour: nothing"),
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
