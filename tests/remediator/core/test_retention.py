"""Which ended cases are forgotten: beyond the newest 20 of their node and policy, or older than 90 days."""

from dataclasses import replace
from datetime import timedelta

import pytest

from remediator.core import retention
from remediator.core.policy import Lemon
from remediator.core.reasons import Reason
from tests.builders import a_case, a_policy, a_sick_node, an_attempt, at, minutes

DAY = 24 * 60


def expired(cases, now, nodes=(), policies=()):
    """Those of a fleet of these nodes and policies."""
    return retention.expired(
        cases, {node.name: node for node in nodes}, {policy.name: policy for policy in policies}, now
    )


def ended(name: str, day: float, **more):
    return a_case(name, ended=at(day * DAY), **{"finalizers": ()} | more)


def test_the_newest_twenty_of_each_node_are_kept():
    cases = [ended(f"c{day}", day, node=node) for node in ("a", "b") for day in range(22)]
    assert [(case.name, case.node) for case in expired(cases, at(23 * DAY))] == [
        ("c0", "a"),
        ("c0", "b"),
        ("c1", "a"),
        ("c1", "b"),
    ]


def test_ninety_days_are_kept_and_not_a_second_more():
    case = ended("c", 0)
    assert expired([case], at(90 * DAY)) == []
    assert expired([case], at(90 * DAY) + timedelta(seconds=1)) == [case]


def test_open_cases_and_those_that_still_hold_marks_are_never_forgotten():
    cases = [a_case("open"), ended("marked", 0, finalizers=("remediator.dev/release",))]
    assert expired(cases, at(999 * DAY)) == []


def test_the_finalizer_of_somebody_else_does_not_keep_a_case():
    case = ended("c", 0, finalizers=("example.com/mine",))
    assert expired([case], at(91 * DAY)) == [case]


def test_one_whose_fault_gets_another_case_is_not_kept_for_what_still_shows():
    """Else a node whose Condition changes its reason to and fro would keep 144 cases more each day."""
    sick = a_sick_node("gpu-1", minute=23 * DAY)
    cases = [ended(f"c{day}", day, reason=Reason.CLEARED_ITSELF) for day in range(22)]
    assert expired(cases, at(23 * DAY), [sick]) == cases[:2]
    assert expired([replace(case, started=case.ended) for case in cases], at(23 * DAY), [sick]) == []


def test_cases_of_another_policy_on_the_node_push_none_out():
    """A policy that only watches may flap all day; the attempts of the other one are still counted."""
    flapping = [ended(f"c{day}", day, policy="watch") for day in range(20)]
    assert expired([ended("reboots", 0), *flapping], at(21 * DAY)) == []


def test_a_case_is_kept_for_as_long_as_an_attempt_of_it_counts():
    cases = [ended(f"c{hour}", hour / 24, attempts=(an_attempt(started=hour * 60),)) for hour in range(40)]
    week = a_policy(window=7 * DAY)
    assert expired(cases, at(7 * DAY), policies=[week]) == cases[:1], "the first began a week ago"
    assert expired(cases, at(2 * DAY), policies=[a_policy(window=DAY)]) == cases[:20]


def test_a_case_whose_policy_is_gone_is_kept_for_the_longest_window_of_all():
    cases = [ended(f"c{hour}", hour / 24, attempts=(an_attempt(started=hour * 60),)) for hour in range(21)]
    assert expired(cases, at(2 * DAY), policies=[a_policy("other", window=7 * DAY)]) == []


def test_a_case_is_kept_for_as_long_as_the_node_shows_what_it_was_opened_for():
    released = ended("released", 1)
    assert expired([released], at(100 * DAY), [a_sick_node()]) == []
    again = a_sick_node(uid="another")
    assert expired([released], at(100 * DAY), [again]) == [released], "a namesake is another node"


@pytest.mark.parametrize(
    ("policy", "days"),
    [
        (a_policy("other", lemon=Lemon(3, minutes(200 * DAY))), 200),
        (a_policy("other", relapse=minutes(100 * DAY)), 107),
        (a_policy("other", lemon=Lemon(3, minutes(DAY)), relapse=minutes(DAY)), 90),
    ],
)
def test_a_case_is_kept_for_as_long_as_a_policy_asks_what_was_done_before(policy, days):
    """A board may come back on another node, under another policy; a relapse is asked about 7 days longer."""
    case = ended("c", 0, attempts=(an_attempt(),))
    assert expired([case], at((days - 1) * DAY), policies=[policy]) == []
    assert expired([case], at((days + 1) * DAY), policies=[policy]) == [case]
    idle = ended("idle", 0)
    assert expired([idle], at(91 * DAY), policies=[policy]) == [idle], "it did nothing"
