"""When status.blockedBy is written anew."""

from dataclasses import replace

import pytest

from remediator.controller.effects import ChangeNode, SaveCase
from remediator.controller.hold import hold
from remediator.core.case import Block, CaseEvent, Phase
from remediator.core.idle import deadline
from remediator.core.jobs_at_stake import BlastRadius
from remediator.core.policy import Urgency
from remediator.core.reasons import Reason
from tests.builders import a_case, a_policy, at, minutes

SPENT = Block(Reason.BUDGET_SPENT, "budget rack-a: 1 of 1 unavailable (gpu-12)")
OTHER = Block(Reason.BUDGET_SPENT, "budget rack-a: 1 of 1 unavailable (gpu-7)")
BREAKER = Block(Reason.BREAKER_OPEN, "10 starts in 10 min", until=at(5))
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
    assert [undated(after) for after in saves(result)] == [tuple(blocks)] * saved


def saves(result):
    return [effect.after for effect in result.effects if isinstance(effect, SaveCase)]


def undated(case):
    return tuple(replace(block, since=None) for block in case.blocks)


def shown_at(case, minute, *blocks):
    """The case after a pass in which these hold it, and whether that pass wrote it."""
    (after,) = saves(hold(case, blocks, None, at(minute))) or (case,)
    return after, after is not case


def test_each_hold_says_since_when_its_reason_lasts_whatever_its_text_and_begins_anew_when_it_comes_back():
    case, since = held(phase=Phase.NEW), []
    for minute, blocks in [(1, [SPENT]), (3, [OTHER]), (7, [BREAKER, OTHER]), (9, [BREAKER]), (12, [SPENT, BREAKER])]:
        case, _ = shown_at(case, minute, *blocks)
        since.append({block.reason: block.since for block in case.blocks})
    spent, breaker = Reason.BUDGET_SPENT, Reason.BREAKER_OPEN
    assert since == [
        {spent: at(1)},
        {spent: at(1)},
        {spent: at(1), breaker: at(7)},
        {breaker: at(7)},
        {spent: at(12), breaker: at(7)},
    ]


def test_two_budgets_that_are_full_are_one_reason_and_show_one_time():
    case, _ = shown_at(held(phase=Phase.NEW), 1, SPENT)
    case, _ = shown_at(case, 5, SPENT, OTHER)
    assert [block.since for block in case.blocks] == [at(1), at(1)]


def test_a_hold_that_an_older_version_wrote_gets_its_time_with_the_next_write_and_none_is_made_for_it():
    old = replace(held(SPENT), timeline=(CaseEvent(at(2), Reason.BUDGET_SPENT, ""),))
    assert shown_at(old, 9, SPENT) == (old, False)
    case, written = shown_at(old, 9, OTHER)
    assert (written, case.blocks[0].since) == (True, at(2))


def test_a_pass_that_finds_what_the_case_shows_writes_nothing_whatever_time_has_gone_by():
    case, _ = shown_at(held(phase=Phase.NEW), 1, SPENT)
    assert [shown_at(case, minute, SPENT)[1] for minute in (1, 2, 29)] == [False] * 3


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


OUTSIDE = Block(Reason.OUTSIDE_WINDOW, "no window is open", until=at(480))


@pytest.mark.parametrize(("beside", "told"), [(OUTSIDE, True), (DRY_RUN, False)])
def test_a_window_that_opens_by_itself_silences_nothing_that_a_user_must_act_on(beside, told):
    result = hold(held(UNKNOWN, beside), (UNKNOWN, beside), at(0), at(60))
    events = [effect.after.timeline[-1].reason for effect in result.effects if isinstance(effect, SaveCase)]
    assert events == [Reason.HELD_LONG] * told


def test_a_window_that_closes_every_20_minutes_does_not_keep_what_lasts_from_being_told():
    case = held(phase=Phase.NEW)
    for minute in range(0, 60, 10):
        case, _ = shown_at(case, minute, UNKNOWN, *[OUTSIDE] * (minute // 10 % 2))
    assert not any(block.reported for block in case.blocks)
    case, _ = shown_at(case, 60, UNKNOWN)
    assert case.timeline[-1].message == "held for 1 h: HealthUnknown (since 2026-01-01 12:00 UTC): GpuLost is absent"


def test_what_held_a_case_during_a_pause_is_told_an_hour_after_the_pause_though_it_says_since_when_it_lasts():
    paused = Block(Reason.PAUSED, "by a user")
    case, _ = shown_at(held(phase=Phase.NEW), 0, UNKNOWN, paused)
    case, _ = shown_at(case, 300, UNKNOWN)
    assert (case.blocks[0].since, hold(case, (UNKNOWN,), at(300), at(301)).report_at) == (at(0), at(360))
    case, _ = shown_at(case, 360, UNKNOWN)
    assert case.timeline[-1].message == "held for 1 h: HealthUnknown (since 2026-01-01 12:00 UTC): GpuLost is absent"


@pytest.mark.parametrize(("minute", "reported"), [(0, []), (59.9, []), (60, [Reason.HEALTH_UNKNOWN])])
def test_a_window_beside_it_is_never_told_itself(minute, reported):
    blocks = hold(held(), (UNKNOWN, OUTSIDE), at(0), at(minute)).effects[0].after.blocks
    assert [block.reason for block in blocks if block.reported] == reported


def test_it_is_told_once_and_for_as_long_as_it_lasts():
    case = held(replace(SPENT, reported=True))
    assert hold(case, (SPENT,), at(0), at(300)).effects[:-1] == ()
    (save, _) = hold(case, (OTHER,), at(0), at(300)).effects
    assert undated(save.after) == (replace(OTHER, reported=True),)


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
    later, words = (30, "30 min") if block is SPENT else (60, "1 h")
    assert enforced.report_at == at(weeks + later)
    (save, *_) = hold(save.after, (block,), at(weeks), at(weeks + later)).effects
    event = save.after.timeline[-1]
    assert event.reason is Reason.HELD_LONG
    since = "2026-01-22 12:00 UTC"
    assert event.message == f"held for {words}: {block.reason.value} (since {since}): {block.message}"


RADIUS = BlastRadius(at(0), count=1, gpus=8, gpu_hours=80)
NEEDED = Block(Reason.APPROVAL_NEEDED, "policy gpu-lost needs an approval for each case")


@pytest.mark.parametrize(
    ("before", "seen", "now", "saved"),
    [
        pytest.param(None, RADIUS, at(0, 1), True, id="the first look: at once"),
        pytest.param(RADIUS, RADIUS, at(29), False, id="the same"),
        pytest.param(RADIUS, None, at(29), False, id="nobody has looked: what was seen stays"),
        pytest.param(RADIUS, replace(RADIUS, count=2), at(0, 59), False, id="another job, 59 s"),
        pytest.param(RADIUS, replace(RADIUS, count=2), at(0, 60), True, id="another job, 60 s: now"),
    ],
)
def test_what_a_start_would_end_is_shown_beside_what_holds_it(before, seen, now, saved):
    result = hold(replace(held(NEEDED), blast=before), (NEEDED,), at(0), now, seen)
    writes = [effect for effect in result.effects if isinstance(effect, SaveCase)]
    assert [(effect.after.blast, len(effect.after.timeline)) for effect in writes] == [(seen, 0)] * saved


def stepped(*stops):
    """A case that waits for an idle node; from minute 60 on the first of these holds it, from 120 on all, for 40 h."""
    case = a_case(phase=Phase.DRAINING, started=at(0), timeline=(CaseEvent(at(0), Reason.CLAIMED, ""),))
    for minute in range(0, 2460, 10):
        reasons = [Reason.WAITING_FOR_IDLE] if minute < 60 else stops[: 1 if minute < 120 else None]
        effects = hold(case, tuple(Block(reason, reason.value) for reason in reasons), None, at(minute)).effects
        saves = [effect.after for effect in effects if isinstance(effect, SaveCase)]
        case = saves[-1] if saves else case
    return case


@pytest.mark.parametrize(
    "stops",
    [[Reason.TICKET_ONLY], [Reason.HELD_BY_USER, Reason.APPROVAL_NEEDED], [Reason.POLICY_PAUSED, Reason.NODE_BUSY]],
)
def test_of_forty_hours_in_which_a_user_had_stopped_it_none_counts_as_a_wait(stops):
    left = deadline(stepped(*stops), a_policy(urgency=Urgency.WHEN_IDLE, idle_deadline=minutes(1440)), at(2460))
    assert left - at(2460) >= minutes(1320)
