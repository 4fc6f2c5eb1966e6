"""Failures of the last weeks: what counts, for which node, and how a level falls by itself."""

from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest

from remediator.core.case import Case, CaseEvent, Manual, Phase, slim
from remediator.core.gpus import Gpu
from remediator.core.jobs_at_stake import BlastRadius, JobAtStake
from remediator.core.reasons import Reason
from remediator.scheduler.health.book import FailureBook
from remediator.scheduler.health.history import FORGOTTEN, HALF_LIFE, LEVELS, PastFailure, count, failure, level
from tests.builders import a_case, an_attempt, at

HOUR = 60
BOARD = Gpu("1563521020414", "GPU-9f3c01ab-77aa")


def ended(name: str, hour: float, node: str = "gpu-1", job: str = "", **more: object) -> Case:
    """A case that lasted an hour and was repaired, with one job on the node where one is named."""
    jobs = (JobAtStake("Job", "default", job, 8, 8, at(0), 1),) if job else ()
    facts: dict[str, object] = {
        "phase": Phase.RECOVERED,
        "attempts": (an_attempt(),),
        "ended": at(HOUR * hour),
        "finalizers": (),
        "blast": BlastRadius(at(0), jobs, len(jobs)),
    } | more
    return a_case(name, node=node, created=HOUR * (hour - 1), **facts)


def book(*cases: Case, hour: float = 0) -> FailureBook:
    kept = FailureBook()
    for case in cases:
        kept.put(case.name, slim(case), at(HOUR * hour))
    return kept


def counted(*cases: Case, node: str = "gpu-1", hour: float = 0, repairing: tuple[str, ...] = ("gpu-lost",)) -> float:
    return book(*cases, hour=hour).counted(node, repairing, at(HOUR * hour))


def test_a_failure_counts_one_and_half_as_much_after_each_72_hours() -> None:
    assert [counted(ended("a", 0), hour=hour) for hour in (0, 72, 144)] == [1.0, 0.5, 0.25]


def test_one_failure_is_no_level_and_two_are_the_first_for_49_hours() -> None:
    """2 × 0.5^(48/72) is 1.26, and one hour later it is less than 1.25."""
    levels = [level(counted(ended("a", 0), ended("b", 0), hour=hour)) for hour in (0, 48, 49)]
    assert level(counted(ended("a", 0))) == 0
    assert levels == [1, 1, 0]


def test_levels_grow_with_failures_and_fall_one_by_one() -> None:
    cases = [ended(f"case-{index}", 0) for index in range(8)]
    assert [level(counted(*cases[:number])) for number in (1, 2, 3, 5, 8)] == [0, 1, 2, 3, 3]
    assert [level(counted(*cases, hour=72 * half_lives)) for half_lives in (0, 1, 2, 3)] == [3, 2, 1, 0]


def test_each_level_is_twice_the_one_before_so_that_each_takes_one_half_life_to_fall() -> None:
    assert [after / before for before, after in pairwise(LEVELS)] == [2.0, 2.0]


def test_one_workload_counts_once_on_a_node_however_often_it_fails_there() -> None:
    poison = [ended(f"case-{index}", index, job="poison") for index in range(8)]
    assert counted(*poison, hour=7) == 1.0
    assert counted(*poison, ended("other", 7, job="train"), hour=7) == 2.0


def test_cases_without_a_known_workload_count_each() -> None:
    several = BlastRadius(
        at(0), (JobAtStake("Job", "d", "a", 4, 4, at(0), 1), JobAtStake("Job", "d", "b", 4, 4, None, 0)), 2
    )
    assert counted(ended("a", 0, blast=several), ended("b", 0, blast=None), ended("c", 0)) == 3.0


NO_FAILURES = [
    pytest.param(a_case(phase=Phase.HELD), id="open"),
    pytest.param(ended("a", 0, phase=Phase.CANCELLED, reason=Reason.CASE_DELETED), id="cancelled"),
    pytest.param(ended("a", 0, policy="", manual=Manual("by-hand", "u", "reboot", {})), id="asked for by a user"),
    pytest.param(
        ended("a", 0, timeline=(CaseEvent(at(0), Reason.SHARED_CAUSE, "a dead switch"),)), id="many nodes had it"
    ),
]


@pytest.mark.parametrize("case", NO_FAILURES)
def test_what_is_no_failure_of_the_node(case: Case) -> None:
    assert failure(case) is None


def test_a_fault_that_goes_by_itself_counts_only_under_a_policy_that_repairs() -> None:
    """A dead file server of which only a person is told says nothing of the nodes that mount it."""
    passed = ended("a", 0, attempts=())
    assert counted(passed) == 1.0
    assert counted(passed, repairing=()) == 0.0
    assert counted(ended("a", 0), repairing=()) == 1.0, "a repair counts, though its policy is gone"


def test_what_a_person_has_given_back_begins_anew() -> None:
    before = [ended(f"case-{index}", index) for index in range(4)]
    given = ended("given", 5, phase=Phase.ESCALATED, reason=Reason.RELEASED_BY_USER)
    assert counted(*before, given, hour=5) == 0.0
    assert counted(*before, given, ended("again", 6), hour=6) == 1.0


def test_a_board_brings_its_failures_to_the_node_that_it_was_moved_to() -> None:
    """Three cases on gpu-1 about a board, which is then moved: the first case about it on gpu-2 counts four."""
    there = [ended(f"there-{hour}", hour, gpus=(BOARD,)) for hour in (1, 2, 3)]
    here = ended("here", 6, node="gpu-2", gpus=(replace(BOARD, uuid=""),))
    assert counted(*there, node="gpu-2", hour=6) == 0.0, "nobody knows yet where it is"
    assert level(counted(*there, here, node="gpu-2", hour=6)) == 2
    assert level(counted(*there, here, node="gpu-1", hour=6)) == 2, "the host keeps its own"


def test_whoever_is_root_on_a_node_harms_no_other_by_naming_its_board() -> None:
    """gpu-2 has had one case; gpu-1 names its board in five, all later."""
    real = ended("real", 1, node="gpu-2", gpus=(BOARD,))
    lies = [ended(f"lie-{hour}", hour, gpus=(BOARD,)) for hour in range(2, 7)]
    assert counted(real, *lies, node="gpu-2", hour=1) == 1.0


def test_failures_of_more_than_30_days_ago_are_forgotten() -> None:
    kept = book(ended("a", 0))
    late = at(0) + FORGOTTEN
    kept.forget_old("gpu-1", late - timedelta(seconds=1))
    assert list(kept.nodes()) == ["gpu-1"]
    kept.forget_old("gpu-1", late)
    assert list(kept.nodes()) == []
    assert not kept.put("a", ended("a", 0), late)
    assert timedelta(days=30) == FORGOTTEN


def test_a_case_that_is_deleted_takes_its_failure_with_it() -> None:
    kept = book(ended("a", 0, gpus=(BOARD,)))
    assert kept.put("a", None, at(0))
    assert (kept.of("gpu-1"), list(kept.nodes())) == ([], [])


def test_a_failure_that_lies_ahead_by_a_wrong_clock_counts_one() -> None:
    ahead = PastFailure("a", "gpu-1", "gpu-lost", at(0), at(0) + HALF_LIFE)
    assert count([ahead], (), at(0)) == 1.0


def test_failures_that_name_no_board_share_one_empty_set() -> None:
    one, other = (failure(ended(name, 1)) for name in ("a", "b"))
    assert one.boards == frozenset()
    assert one.boards is other.boards
