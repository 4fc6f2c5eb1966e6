"""What Pods a cluster runs: learnt, remembered for a while, and another only when it is noticeably so."""

import doctest

import pytest

from remediator.scheduler.packing import points, workload
from remediator.scheduler.packing.room import Task
from remediator.scheduler.packing.workload import HALF_LIFE, MOST_KINDS, Learner, shares

SMALL, LARGE, RARE = Task(1000, 1), Task(8000, 8), Task(2000, 2)


@pytest.mark.parametrize("module", [points, workload])
def test_the_examples_hold(module) -> None:
    assert doctest.testmod(module).failed == 0


def test_shares_leave_out_what_is_rare_and_add_up_to_one() -> None:
    assert shares({SMALL: 60, LARGE: 36, RARE: 4}) == {SMALL: 0.625, LARGE: 0.375}
    assert shares({SMALL: 60, LARGE: 36, RARE: 4}, covered=1.0) == {SMALL: 0.6, LARGE: 0.36, RARE: 0.04}
    assert shares({}) == {}


def test_nothing_is_said_of_a_workload_before_ten_pods_are_there() -> None:
    learner = Learner()
    assert [learner.note([SMALL]) for _ in range(10)] == [False] * 9 + [True]
    assert learner.workload == {SMALL: 1.0}


def test_a_workload_that_stays_the_same_is_not_another_one() -> None:
    learner = Learner()
    changes = sum(learner.note([SMALL, LARGE]) for _ in range(2000))
    assert changes == 1
    assert learner.workload[SMALL] == pytest.approx(0.5, abs=0.1)


@pytest.mark.slow
def test_old_pods_are_forgotten_by_halves() -> None:
    learner = Learner()
    for task, count in ((SMALL, 2 * HALF_LIFE), (LARGE, HALF_LIFE)):
        for _ in range(count):
            learner.note([task])
    assert learner.workload[LARGE] == pytest.approx(0.5, abs=0.1)
    for _ in range(8 * HALF_LIFE):
        learner.note([LARGE])
    assert learner.workload == {LARGE: 1.0}


def test_more_kinds_than_are_counted_cost_no_more_memory() -> None:
    learner = Learner()
    for cpu in range(10 * MOST_KINDS):
        learner.note([Task(cpu, 1)])
    assert len(learner._weights) <= 2 * MOST_KINDS
    assert sum(learner.workload.values()) == pytest.approx(1)
