"""The breaker of a budget: how many attempts may start on its nodes in a time, and how many of them may be in vain."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remediator.core import admission as core_admission
from remediator.core.admission import Basis, StartRequest
from remediator.core.breaker import Breaker
from remediator.core.budget import BreakerRule
from remediator.core.budget_breaker import closes_in, longest, opened, rate, shown, state, why
from remediator.core.case import Phase
from remediator.core.census import snapshot
from remediator.core.policy import AttemptRecord, FailureBreaker
from remediator.core.reasons import Reason
from tests.builders import a_budget, a_case, a_sick_node, an_attempt, at, minutes, pool

WIDE = Breaker(1000, minutes(10))
NOW = at(20)


def limited(name="fleet", selector=None, **rule):
    """A budget that admits many, with a breaker."""
    chosen = {"selector": selector} if selector else {}
    return a_budget(name, 100, breaker=BreakerRule(**rule), **chosen)


def vain(marks, first=0):
    """The records of attempts, one a minute, in vain where "x"."""
    return tuple(
        AttemptRecord(f"op-{n}", "reboot", at(n), mark == "x", f"node-{n}") for n, mark in enumerate(marks, first)
    )


def asking(name, *, labels=None, **more):
    return StartRequest(a_case(name, node=f"node-{name}", **more), a_sick_node(f"node-{name}", labels=labels), 1, ())


def admit(requests, budgets, starts=None, breaker=WIDE):
    ledgers = replace(snapshot(budgets, [request.node for request in requests]), starts=starts or {})
    admission = core_admission.admit(requests, Basis(ledgers, [], breaker, NOW))
    held = {request.case.name: blocks for request, blocks in admission.held}
    return [request.case.name for request in admission.admitted], held


@pytest.mark.parametrize(
    ("rule", "total", "most"),
    [
        ({"starts": 5}, 3, 5),
        ({"percent": 10}, 59, 5),
        ({"percent": 10}, 9, 1),
        ({"percent": 10}, 0, 1),
        ({"percent": 100}, 8, 8),
        ({"starts": 5, "percent": 10}, 20, 2),
        ({"starts": 5, "percent": 10}, 500, 5),
        ({"most": 4}, 500, None),
    ],
    ids=["a count", "rounded down", "never below one", "no node yet", "all", "the percentage", "the count", "neither"],
)
def test_how_many_attempts_may_start_in_the_window(rule, total, most):
    found = rate(limited(**rule), total)
    assert (found.starts if found else None) == most


def test_five_starts_of_eight_go_and_three_wait_until_the_window_is_over():
    admitted, held = admit([asking(name) for name in "abcdefgh"], [limited(starts=5, window=minutes(10))])
    assert admitted == list("abcde")
    (refused,) = held["f"]
    assert (refused.reason, refused.until) == (Reason.BREAKER_OPEN, at(30))
    assert refused.message.startswith("budget fleet: 5 starts in 10 min;")


def test_starts_before_this_pass_count_until_the_window_is_over():
    starts = {"fleet": [at(5), at(11), at(12)]}
    assert admit([asking("a"), asking("b")], [limited(starts=3, window=minutes(10))], starts)[0] == ["a"]
    _, held = admit([asking("a")], [limited(starts=2, window=minutes(10))], starts)
    assert held["a"][0].until == at(21)


def test_a_percentage_counts_the_nodes_of_all_groups():
    """Of 10 nodes in 5 racks 20 % are two, wherever they are."""
    requests = [asking(f"{rack}{n}", labels={"rack": rack}) for rack in "abcde" for n in range(2)]
    budget = replace(limited(percent=20), group_by="rack", grouped_by="rack")
    admitted, held = admit(requests, [budget])
    assert (admitted, {block.reason for blocks in held.values() for block in blocks}) == (
        ["a0", "a1"],
        {Reason.BREAKER_OPEN},
    )


def test_a_budget_that_is_open_holds_no_node_of_another():
    """Severity and age put the case of pool a first; pool b goes on all the same."""
    budgets = [limited("a", selector=pool("a"), starts=1), limited("b", selector=pool("b"), starts=1)]
    requests = [asking(f"{p}{n}", labels={"pool": p}) for p in "ab" for n in range(2)]
    admitted, held = admit(requests, budgets)
    assert (admitted, sorted(held)) == (["a0", "b0"], ["a1", "b1"])


def test_each_climb_is_a_start_and_the_first_attempt_was_one_with_its_claim():
    claimed = {"started": at(15), "phase": Phase.DRAINING}
    first = asking("first", **claimed)
    climbing = asking("climbing", attempts=(an_attempt(started=16),), **claimed)
    budget = limited(starts=2, window=minutes(10))
    starts = {"fleet": [at(15), at(16)]}
    admitted, held = admit([first, climbing], [budget], starts)
    assert (admitted, list(held)) == (["first"], ["climbing"])


def test_a_claim_older_than_the_window_is_asked_about_again():
    late = asking("late", started=at(9), phase=Phase.DRAINING)
    assert admit([late], [limited(starts=1, window=minutes(10))], {"fleet": [at(15)]})[1]["late"][0].until == at(25)
    assert admit([late], [limited(starts=1, window=minutes(12))], {"fleet": [at(9), at(15)]})[0] == ["late"]


@given(st.lists(st.integers(0, 40), max_size=30), st.integers(1, 5))
def test_no_window_ever_has_more_starts_than_the_budget_says(wishes, most):
    given_ = []
    for number, minute in enumerate(sorted(wishes)):
        request = asking(f"c{number}")
        ledgers = replace(
            snapshot([limited(starts=most, window=minutes(10))], [request.node]), starts={"fleet": given_}
        )
        if core_admission.admit([request], Basis(ledgers, [], WIDE, at(minute))).admitted:
            given_.append(at(minute))
    for end in given_:
        assert sum(end - minutes(10) < start <= end for start in given_) <= most


@pytest.mark.parametrize(
    ("marks", "rule", "message"),
    [
        ("xxx", {"most": 4}, ""),
        ("xxxx", {"most": 4}, "4 of the last 4 attempts under budget fleet were in vain"),
        ("x.x.x.x.", {"most": 4}, "4 of the last 8 attempts under budget fleet were in vain"),
        ("x.x.x.x..", {"most": 4}, ""),
        ("xx", {"of": 3, "most": 2}, "2 of the last 2 attempts under budget fleet were in vain"),
        ("xx..", {"of": 3, "most": 2}, ""),
        ("x" * 16, {"of": 16, "most": 16}, "16 of the last 16 attempts under budget fleet were in vain"),
        ("xxxx", {"starts": 5}, ""),
    ],
)
def test_it_opens_by_failures_when_so_many_of_the_newest_were_in_vain(marks, rule, message):
    assert opened(limited(**rule), vain(marks), at(60)) == message


OPEN = replace(limited(most=4), failing=FailureBreaker(at(4), "4 of 4", vain("xxxx")))


def test_it_stays_open_though_later_attempts_worked_and_every_case_has_gone():
    assert state(OPEN, (), at(60)) == OPEN.failing, "and nothing is written again"
    assert state(OPEN, vain("........", 4), at(60)).opened == at(4)


@pytest.mark.parametrize(("minute", "closes"), [(3, False), (4, True), (59, True), (61, False)])
def test_a_user_closes_it_with_a_time_after_it_opened_that_is_not_in_the_future(minute, closes):
    closed = replace(OPEN, closed_at=at(minute))
    assert (state(closed, (), at(60)).opened is None) is closes
    assert closes_in(closed, at(60)) == (60 if minute == 61 else None)


def test_without_a_rule_nothing_is_kept():
    assert state(replace(OPEN, breaker=None), vain("x"), at(60)) == FailureBreaker()


def test_it_holds_starts_of_cases_that_hold_their_node_too_and_names_the_command():
    admitted, held = admit([asking("new"), asking("old", started=at(19), phase=Phase.DRAINING)], [OPEN])
    assert (admitted, {name: blocks[0].reason for name, blocks in held.items()}) == (
        [],
        dict.fromkeys(("new", "old"), Reason.BUDGET_FAILING),
    )
    assert held["new"][0].message == (
        "4 of 4; remediator close-breaker budget/fleet; look why, then close the breaker with remediator close-breaker "
        "budget/NAME"
    )


def test_what_explain_shows_of_it():
    assert shown(limited(starts=5, window=minutes(10)), 20, [at(1), at(11), at(12)], NOW) == "2 of 5 starts in 10 min"
    assert shown(OPEN, 20, [], NOW) == "breaker open: 4 of 4; remediator close-breaker budget/fleet"
    assert (shown(a_budget(), 20, [], NOW), why(a_budget(), NOW)) == ("", "")


def test_the_longest_window_is_that_of_the_fleet_unless_a_budget_counts_for_longer():
    assert longest(
        [limited(starts=1, window=minutes(30)), limited(most=4, window=minutes(60))], minutes(10)
    ) == minutes(30)
    assert longest([limited(starts=1, window=minutes(30))], minutes(60)) == minutes(60)
