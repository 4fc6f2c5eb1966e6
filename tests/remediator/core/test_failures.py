"""The breaker on failures: what counts as in vain, when it opens, and that only a user closes it."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remediator.core.case import AttemptOutcome, CaseEvent, Phase, slim
from remediator.core.failures import KEPT, how_to_close, merged, of_which_attempts_tell, opened, records, state
from remediator.core.policy import AttemptRecord, FailureBreaker
from remediator.core.reasons import Reason
from remediator.kube.api.decode.times import LATEST
from tests.builders import a_case, a_policy, an_attempt, at

FAILED, DONE = AttemptOutcome.FAILED, AttemptOutcome.SUCCEEDED
POLICY = a_policy(ladder=(("reboot", 1),))


def seen(*in_vain, template="reboot", prefix="op"):
    """The records of attempts, one a minute, in vain where "x"."""
    return tuple(
        AttemptRecord(f"{prefix}-{n}", template, at(n), mark == "x", f"{prefix}-node-{n}")
        for n, mark in enumerate("".join(in_vain))
    )


def why(in_vain, policy=POLICY, minute=60, **others):
    return opened(policy, {policy.name: seen(in_vain)} | others, at(minute))


@pytest.mark.parametrize(
    ("attempts", "more", "in_vain"),
    [
        ([FAILED], {}, []),
        ([FAILED], {"phase": Phase.ESCALATED}, [True]),
        ([DONE], {"phase": Phase.VERIFYING}, []),
        ([DONE], {"phase": Phase.RECOVERED, "ended": at(9)}, [False]),
        ([DONE], {"phase": Phase.ESCALATED}, [True]),
        ([DONE], {"phase": Phase.CANCELLED, "ended": at(9)}, []),
        ([DONE], {"phase": Phase.CANCELLED, "ended": at(9), "reason": Reason.RELEASED_BY_USER}, [True]),
        ([DONE, DONE], {"phase": Phase.RECOVERED, "ended": at(9)}, [False]),
        ([FAILED, DONE], {"phase": Phase.RECOVERED, "ended": at(9)}, [False]),
        ([FAILED], {"phase": Phase.RECOVERED, "ended": at(9)}, []),
        ([FAILED, DONE], {"phase": Phase.ESCALATED}, [True]),
        ([FAILED, AttemptOutcome.REFUSED], {"phase": Phase.ESCALATED}, [True]),
        ([FAILED, AttemptOutcome.OPEN], {}, []),
        ([AttemptOutcome.CANCELLED, AttemptOutcome.REFUSED], {"phase": Phase.ESCALATED}, []),
    ],
)
def test_a_case_that_went_to_a_user_says_that_its_last_attempt_was_in_vain(attempts, more, in_vain):
    case = a_case(attempts=tuple(an_attempt(outcome=outcome, started=n) for n, outcome in enumerate(attempts)), **more)
    assert [record.in_vain for record in records([case])] == in_vain


HELD, UNKNOWN, EXHAUSTED = (
    CaseEvent(at(3), Reason.HEALTH_UNKNOWN, "held"),
    CaseEvent(at(8), Reason.HEALTH_UNKNOWN, "a person must look"),
    CaseEvent(at(8), Reason.LADDER_EXHAUSTED, "a person must look"),
)
RELEASED = {"ended": at(9), "reason": Reason.RELEASED_BY_USER}


@pytest.mark.parametrize(
    ("timeline", "more", "in_vain"),
    [
        ((UNKNOWN,), {}, []),
        ((UNKNOWN,), RELEASED, []),
        ((replace(UNKNOWN, reason=Reason.POLICY_MISSING),), {}, []),
        ((HELD, EXHAUSTED), {}, [True]),
        ((HELD, EXHAUSTED), RELEASED, [True]),
        ((UNKNOWN, EXHAUSTED), {}, [True]),
    ],
)
def test_health_that_nobody_knows_says_nothing_of_an_attempt_also_once_its_case_was_released(timeline, more, in_vain):
    """The last: a user let it try again."""
    released = CaseEvent(at(9), Reason.RELEASED_BY_USER, "released")
    told = (*timeline, released) if more else timeline
    case = slim(a_case(attempts=(an_attempt(outcome=DONE),), phase=Phase.ESCALATED, timeline=told, **more))
    assert [record.in_vain for record in records([case])] == in_vain


@pytest.mark.parametrize("reason", ["DrainTimeout", "DrainFailed"])
def test_an_attempt_that_ended_in_its_drain_says_nothing_of_the_operation(reason):
    kept = an_attempt(outcome=FAILED, reason=reason)
    case = a_case(attempts=(an_attempt(outcome=FAILED, operation="ran"), kept), phase=Phase.ESCALATED)
    assert [record.operation for record in records([case])] == ["ran"]


@pytest.mark.parametrize(
    ("marks", "message"),
    [
        ("", ""),
        ("xxx", ""),
        ("xxxx", "4 of the last 4 attempts under policy gpu-lost were in vain"),
        ("x.x.x.x.", "4 of the last 8 attempts under policy gpu-lost were in vain"),
        ("x.x.x.x..", ""),
        ("xxxx........", ""),
    ],
)
def test_it_opens_when_four_of_the_last_eight_attempts_were_in_vain(marks, message):
    assert why(marks) == message


def test_one_template_that_fails_under_many_policies_opens_the_breaker_of_each():
    others = {name: seen("xx", prefix=name) for name in ("a", "b")}
    assert why("", **others) == "4 of the last 4 attempts of template reboot were in vain"
    assert why("", policy=a_policy(ladder=(("reset-gpu", 1),)), **others) == ""


def test_four_nodes_and_two_policies_must_say_it_of_a_template():
    on_three = {name: tuple(replace(record, node=f"{name}-0") for record in seen("xxx", prefix=name)) for name in "abc"}
    assert why("", **on_three) == ""
    assert why("", a=seen("xxxxxxxx")) == "", "one policy"


def test_four_nodes_that_their_second_rung_cures_open_nothing():
    ladder = (("reset-gpu", 1), ("reboot", 1))
    assert opened(a_policy(ladder=ladder), _climbs(4, Phase.RECOVERED, "reset-gpu", "reboot"), at(60)) == ""


@pytest.mark.parametrize(("boards", "stops"), [(2, ""), (3, ""), (4, "4 of the last 4"), (9, "8 of the last 8")])
def test_two_dead_boards_stop_no_policy_and_four_stop_theirs_however_often_each_was_rebooted(boards, stops):
    dead = _climbs(boards, Phase.ESCALATED, "reboot", "reboot", "reboot")
    assert opened(POLICY, dead, at(60)) == (f"{stops} attempts under policy gpu-lost were in vain" if stops else "")
    assert opened(a_policy("gpu-xid", ladder=(("reboot", 1),)), dead, at(60)) == ""


def test_one_node_that_users_let_try_again_counts_once_beside_three_others():
    again = tuple(replace(record, node="gpu-0") for record in seen("xxxxx"))
    three = tuple(replace(record, operation=f"more-{n}", node=f"gpu-{n}") for n, record in enumerate(seen("xxx"), 1))
    assert opened(POLICY, {"gpu-lost": again + three[:2]}, at(60)) == ""
    assert opened(POLICY, {"gpu-lost": again + three}, at(60)).startswith("4 of the last 4")


def test_a_rung_that_only_cordons_cures_nothing_and_is_not_counted():
    bad = _climbs(3, Phase.ESCALATED, "reboot", "cordon")
    assert [record.template for record in bad["gpu-lost"]] == ["reboot"] * 3
    assert opened(a_policy(ladder=(("reboot", 1), ("cordon", 1))), bad, at(60)) == ""


@pytest.mark.parametrize(("hours", "stops"), [(23, True), (25, False)])
def test_attempts_of_more_than_a_day_ago_do_not_count(hours, stops):
    assert bool(why("xxxx", minute=hours * 60)) is stops


def _climbs(nodes, phase, *templates):
    """The records of so many cases that each went through these rungs and ended so."""
    cases = [
        a_case(
            f"case-{n}",
            node=f"gpu-{n}",
            phase=phase,
            attempts=tuple(
                an_attempt(rung, DONE, started=n + rung, template=template, operation=f"{n}-{rung}")
                for rung, template in enumerate(templates)
            ),
        )
        for n in range(nodes)
    ]
    return {"gpu-lost": tuple(records(cases))}


COMMAND = "remediator close-breaker {}"
OPEN = replace(POLICY, breaker=FailureBreaker(at(4), "4 of 4", seen("xxxx")))


def test_it_stays_open_though_later_attempts_worked_and_every_case_has_gone():
    assert opened(OPEN, {"gpu-lost": seen("xxxx....")}, at(60)) == "4 of 4"
    assert opened(OPEN, {}, at(60)) == "4 of 4"
    assert state(OPEN, {"gpu-lost": OPEN.breaker.records}, at(60)) == OPEN.breaker, "and nothing is written again"


@pytest.mark.parametrize(("minute", "closes"), [(3, False), (4, True), (59, True), (61, False), (9999, False)])
def test_a_user_closes_it_with_a_time_after_it_opened_that_is_not_in_the_future(minute, closes):
    closed = replace(OPEN, closed_at=at(minute))
    assert (opened(closed, {"gpu-lost": seen("xxxx")}, at(60)) == "") is closes


@pytest.mark.parametrize(
    ("closed_at", "message", "words"),
    [
        (None, "4 of the last 4 attempts under policy gpu-lost were in vain", f"{COMMAND.format('policy/gpu-lost')}"),
        (at(3), "4 of the last 8 attempts of template reboot were in vain", COMMAND.format("template/reboot")),
        (at(61), "4 of 4", "it closes at 2026-"),
        (LATEST, "4 of 4", f"is no time, or lies more than a day ahead: {COMMAND.format('policy/gpu-lost')}"),
    ],
)
def test_it_says_with_which_command_it_is_closed_and_what_is_wrong_with_the_time_that_was_set(
    closed_at, message, words
):
    assert words in how_to_close(replace(OPEN, closed_at=closed_at), message, at(60))


def test_after_it_was_closed_only_later_attempts_count():
    closed = replace(OPEN, closed_at=at(5))
    assert opened(closed, {"gpu-lost": seen("xxxxxxxxx")}, at(60)) == "", "minutes 6 to 8"
    assert opened(closed, {"gpu-lost": seen("xxxxxxxxxx")}, at(60)).startswith("4 of the last 4")


def test_the_newest_attempts_are_kept_each_once():
    kept = merged(seen("." * 20), seen("x" * 20))
    assert (len(kept), kept[0].operation, all(record.in_vain for record in kept)) == (KEPT, "op-4", True)


RUNGS = ("reboot", "reset-gpu", "drain")
BREAKERS = (FailureBreaker(), FailureBreaker(at(1), "it opened"))


@given(
    st.lists(st.tuples(st.sampled_from(RUNGS), st.sampled_from(BREAKERS)), min_size=1, max_size=5),
    st.dictionaries(
        st.sampled_from("abcde"), st.tuples(st.text("xo", min_size=1, max_size=8), st.sampled_from(RUNGS)), max_size=4
    ),
)
def test_a_breaker_of_which_no_attempt_tells_is_closed(given_policies, given_records):
    policies = [
        a_policy(name, ladder=((rung, 1),), breaker=breaker)
        for name, (rung, breaker) in zip("abcde", given_policies, strict=False)
    ]
    everything = {name: seen(marks, template=rung, prefix=name) for name, (marks, rung) in given_records.items()}
    left_out = {policy.name for policy in policies} - {
        policy.name for policy in of_which_attempts_tell(policies, everything)
    }
    assert {policy.name for policy in policies if opened(policy, everything, at(60))}.isdisjoint(left_out)
    assert left_out or any(policy.breaker.opened or everything for policy in policies)
