"""Mildest first, each rung as often as it allows, then a person."""

from dataclasses import replace

import pytest

from remediator.core.case import AttemptOutcome, Phase
from remediator.core.ladder import Next, follow_up, next_rung
from remediator.core.reasons import Reason
from tests.builders import a_case, a_policy, an_attempt, at

# reset-gpu once, reboot twice; 4 attempts a week
POLICY = a_policy(ladder=(("reset-gpu", 1), ("reboot", 2)))
NOW = at(60)

CANCELLED, REFUSED, SUCCEEDED = AttemptOutcome.CANCELLED, AttemptOutcome.REFUSED, AttemptOutcome.SUCCEEDED


@pytest.mark.parametrize(
    ("attempts", "rung", "expected"),
    [
        pytest.param([], 0, Next(0, 1), id="begin with the mildest"),
        pytest.param([an_attempt(0)], 0, Next(1, 2), id="its one attempt is used: next_rung"),
        pytest.param([an_attempt(0), an_attempt(1)], 1, Next(1, 3), id="a rung of two is tried again"),
        pytest.param([an_attempt(0), an_attempt(1), an_attempt(1)], 1, Reason.LADDER_EXHAUSTED, id="then a person"),
        pytest.param(
            [an_attempt(0), an_attempt(1, REFUSED)],
            1,
            Reason.LADDER_EXHAUSTED,
            id="refused is not tried again",
        ),
        pytest.param([an_attempt(0, REFUSED)], 0, Next(1, 2), id="refused on one rung, the next is tried"),
        pytest.param([an_attempt(0, SUCCEEDED)], 0, Next(1, 2), id="worked, and the fault is still there"),
        pytest.param([an_attempt(0, CANCELLED)], 0, Next(1, 2), id="one that was stopped counts as a try"),
        pytest.param([], 1, Next(1, 1), id="never back down"),
        pytest.param([], 5, Reason.LADDER_EXHAUSTED, id="a ladder that a person made shorter"),
    ],
)
def test_what_comes_next(attempts, rung, expected):
    case = a_case(attempts=tuple(attempts), rung=rung)
    assert next_rung(POLICY, case, [case], NOW) == expected


@pytest.mark.parametrize(
    ("outcome", "expected"), [(SUCCEEDED, Reason.LADDER_EXHAUSTED), (REFUSED, Next(1, 2)), (CANCELLED, Next(0, 2))]
)
def test_nothing_is_tried_on_a_node_that_takes_new_pods_since_a_gpu_was_isolated(outcome, expected):
    """A rung of two attempts, and a reboot after it: both would end Pods that have come since."""
    policy = a_policy(ladder=(("isolate-gpu", 2), ("reboot", 1)))
    case = a_case(attempts=(an_attempt(0, outcome, template="isolate-gpu"),))
    assert next_rung(policy, case, [], NOW) == expected


def test_a_rung_of_several_attempts_is_climbed_at_once_when_it_refuses():
    policy = a_policy(ladder=(("reboot", 3), ("power-cycle", 1)))
    case = a_case(attempts=(an_attempt(0, REFUSED),))
    assert next_rung(policy, case, [], NOW) == Next(1, 2)


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        pytest.param([(30, "gpu-lost")] * 3, Next(0, 1), id="three of four are spent"),
        pytest.param([(30, "gpu-lost")] * 4, Reason.ATTEMPTS_SPENT, id="four of four are spent: a flapping node"),
        pytest.param([(30, "nfs-hung")] * 4, Next(0, 1), id="attempts under another policy are not counted"),
        pytest.param([(-120, "gpu-lost")] * 4, Next(0, 1), id="nor those before the window"),
        pytest.param([(0, "gpu-lost")] * 4, Next(0, 1), id="nor those exactly as old as the window"),
    ],
)
def test_attempts_of_earlier_cases_count_inside_the_window(others, expected):
    policy = a_policy(attempts=4, window=60)
    past = [
        a_case(f"past-{number}", policy=name, attempts=(an_attempt(started=started),), ended=at(started + 5))
        for number, (started, name) in enumerate(others)
    ]
    case = a_case()
    assert next_rung(policy, case, [*past, case], NOW) == expected


def test_its_own_attempts_count_however_old_they_are_and_once():
    policy = a_policy(ladder=(("reboot", 9),), attempts=2, window=1)
    case = a_case(attempts=(an_attempt(), an_attempt(started=5)))
    assert next_rung(policy, case, [case], NOW) is Reason.ATTEMPTS_SPENT


def test_every_ladder_ends():
    """Whatever is recorded, following the ladder takes at most attempts.max operations."""
    policy = a_policy(ladder=(("a", 10), ("b", 10)), attempts=7)
    case = a_case()
    tried = []
    while isinstance(following := next_rung(policy, a_case(attempts=tuple(tried), rung=case.rung), [], NOW), Next):
        tried.append(an_attempt(following.rung))
        assert following.attempt == len(tried)
    assert (len(tried), following) == (7, Reason.ATTEMPTS_SPENT)


FIRST, SECOND = an_attempt(0, operation="op-1"), an_attempt(0, operation="op-2")


def _followed(operation, template):
    return an_attempt(0, operation=f"{template} of {operation}", template=template, follows=operation)


@pytest.mark.parametrize(
    ("attempts", "expected"),
    [
        pytest.param([], None, id="nothing was tried"),
        pytest.param([FIRST], "a", id="the first of two"),
        pytest.param([FIRST, _followed("op-1", "a")], "b", id="then the second"),
        pytest.param([FIRST, _followed("op-1", "a"), _followed("op-1", "b")], None, id="then no more"),
        pytest.param([FIRST, _followed("op-1", "a"), SECOND], "a", id="another try is followed up anew"),
    ],
)
def test_each_try_is_followed_up_by_what_its_template_names_in_order(attempts, expected):
    assert follow_up(a_case(attempts=tuple(attempts)), ("a", "b")) == expected


def test_what_follows_a_try_up_is_no_try_of_the_ladder_nor_of_the_policy():
    policy = a_policy(ladder=(("reset-gpu", 1), ("reboot", 2)), attempts=2)
    case = a_case(attempts=(FIRST, _followed("op-1", "a"), _followed("op-1", "b")))
    assert next_rung(policy, case, [case], NOW) == Next(1, 2)


COVERS = {"power-cycle": ("reboot",), "reboot": ("reset-gpu",)}
CLIMB = a_policy(ladder=(("reboot", 2), ("reset-gpu", 1), ("power-cycle", 1), ("reset-gpu", 1)), attempts=9)


@pytest.mark.parametrize(
    ("attempts", "expected"),
    [
        pytest.param([(0, SUCCEEDED)], Next(0, 2), id="its own rung is tried again"),
        pytest.param([(0, SUCCEEDED), (0, SUCCEEDED)], Next(2, 3), id="what a reboot covers is skipped"),
        pytest.param([(0, CANCELLED), (0, REFUSED)], Next(1, 3), id="a reboot that was not done covers nothing"),
        pytest.param(
            [(0, SUCCEEDED), (2, SUCCEEDED)], Reason.LADDER_EXHAUSTED, id="nor is anything left that is not covered"
        ),
    ],
)
def test_what_an_operation_covers_is_not_tried_further_up(attempts, expected):
    tried = tuple(an_attempt(rung, outcome, template=CLIMB.ladder[rung].operation) for rung, outcome in attempts)
    case = a_case(attempts=tried, rung=attempts[-1][0])
    assert next_rung(CLIMB, case, [], NOW, COVERS) == expected


def test_templates_that_cover_each_other_leave_each_rung_its_first_try():
    policy = a_policy(ladder=(("a", 1), ("b", 1), ("c", 1)))
    case = a_case(attempts=(an_attempt(0, SUCCEEDED, template="a"),))
    assert next_rung(policy, case, [], NOW, {"a": ("b",), "b": ("a",)}) == Next(2, 2)
    assert next_rung(policy, a_case(), [], NOW, {"a": ("b",), "b": ("a",)}) == Next(0, 1)


BOOTED = an_attempt(0, CANCELLED, started=30, reason="Rebooted", counts=False)
STOPPED = an_attempt(0, CANCELLED, started=30, reason="PolicyPaused")


@pytest.mark.parametrize(
    ("attempts", "more", "expected"),
    [
        pytest.param((), {}, Reason.ATTEMPTS_SPENT, id="taken, and nothing was tried"),
        pytest.param((BOOTED,), {}, Reason.ATTEMPTS_SPENT, id="the node booted by itself while its drain waited"),
        pytest.param((STOPPED,), {}, Next(0, 1), id="users stopped it"),
        pytest.param((), {"started": None}, Next(0, 1), id="the node was never taken"),
        pytest.param((), {"phase": Phase.CANCELLED}, Next(0, 1), id="a user ended it"),
    ],
)
def test_a_node_that_recovers_by_itself_again_and_again_goes_to_a_person(attempts, more, expected):
    """Four cases within an hour had taken it; each counts for one of the four attempts of its policy."""
    facts = {"attempts": attempts, "started": at(30), "ended": at(40), "phase": Phase.RECOVERED} | more
    past = [a_case(f"past-{number}", **facts) for number in range(4)]
    assert next_rung(a_policy(attempts=4, window=60), a_case(), past, NOW) == expected
    assert next_rung(a_policy(attempts=4, window=60), a_case(), past[:3], NOW) == Next(0, 1)
    assert next_rung(a_policy(attempts=4, window=29), a_case(), past, NOW) == Next(0, 1)


@pytest.mark.parametrize(
    ("attempts", "rung", "expected"),
    [
        pytest.param([an_attempt(0), an_attempt(1)], 1, Next(1, 3), id="the rung that it came to last"),
        pytest.param([an_attempt(0), an_attempt(1, REFUSED)], 1, Next(1, 3), id="also where that was refused"),
        pytest.param([an_attempt(0)], 5, Next(1, 2), id="the last one of a ladder that became shorter"),
        pytest.param([an_attempt(0), *[an_attempt(1)] * 3], 1, Reason.ATTEMPTS_SPENT, id="4 attempts are the limit"),
    ],
)
def test_a_case_that_a_user_lets_try_again_begins_on_its_last_rung_with_all_tries_of_it(attempts, rung, expected):
    policy = a_policy(ladder=(("reset-gpu", 1), ("reboot", 1)))
    case = a_case(attempts=tuple(attempts), rung=rung).trying_again(NOW)
    assert next_rung(policy, case, [case], NOW) == expected


@pytest.mark.parametrize("rung", [0, 1, 5])
def test_a_case_that_a_user_lets_try_again_has_nothing_left_under_a_ladder_that_was_emptied(rung):
    case = a_case(attempts=(an_attempt(0),), rung=rung).trying_again(NOW)
    assert next_rung(a_policy(ladder=()), case, [case], NOW) is Reason.LADDER_EXHAUSTED


def test_what_was_tried_since_counts_for_the_rung():
    policy = a_policy(ladder=(("reset-gpu", 1), ("reboot", 1)))
    case = a_case(attempts=(an_attempt(0), an_attempt(1)), rung=1).trying_again(NOW)
    case = replace(case, attempts=(*case.attempts, an_attempt(1)))
    assert next_rung(policy, case, [case], NOW) is Reason.LADDER_EXHAUSTED
