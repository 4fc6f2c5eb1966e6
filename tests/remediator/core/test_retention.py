"""Which ended cases are forgotten: beyond the newest 20 of their node, or older than 90 days."""

from datetime import timedelta

from remediator.core.retention import expired
from tests.builders import a_case, at

DAY = 24 * 60


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
