"""What the demo says at its end, and whether that is success."""

from dataclasses import replace

import pytest

from remediator_sim.invariants import Checked
from remediator_sim.scenarios import jobs
from remediator_sim.scenarios.packing import Packing, spread
from remediator_sim.scenarios.summary import FaultOutcome, Summary
from tests.harness.scheduler import node

HELD = Checked("I1", "No budget is exceeded", 3, ())
BROKEN = replace(HELD, broken=("budget b: 2 of 3",))
UNTESTED = replace(HELD, checks=0)
CURED = FaultOutcome("lost-gpu", ("gpu-a1",), "Recovered", 13.0, (), "a GPU falls off the bus")
PACKED = Packing(("pack-1", "pack-1", "pack-2"), ("pack-1", "pack-2", ""))
GOOD = Summary([CURED], 40.0, 1, 2, (), {"I1": HELD}, 7, (), (), PACKED, whole=True)


def test_a_demo_in_which_all_went_as_it_should_is_a_success() -> None:
    assert GOOD.wrong() == []


@pytest.mark.parametrize(
    ("summary", "wrong"),
    [
        (replace(GOOD, invariants={"I1": BROKEN}), "I1: budget b: 2 of 3"),
        (replace(GOOD, invariants={"I1": UNTESTED}), "I1: nothing put it to the test"),
        (replace(GOOD, faults=[CURED._replace(wrong=("it was rebooted twice",))]), "lost-gpu: it was rebooted twice"),
        (
            replace(GOOD, packing=PACKED._replace(placed=PACKED.alone)),
            "packing: pods of 1, 1 and 2 GPUs are on ('pack-1', 'pack-2', ''), and one waits",
        ),
        (replace(GOOD, violations=["an issue without a title"]), "GitHub: an issue without a title"),
    ],
)
def test_a_demo_is_red_for_each_thing_that_is_wrong(summary: Summary, wrong: str) -> None:
    assert summary.wrong() == [wrong]


def test_the_scheduler_of_the_simulator_alone_spreads_pods_so_that_the_last_one_waits() -> None:
    pods = [jobs.pod(jobs.Job(f"p{size}", size), f"p{size}") for size in (1, 1, 2)]
    assert spread(pods, [node("pack-1", 2), node("pack-2", 2)]) == PACKED.alone


def test_where_only_some_faults_strike_an_invariant_may_go_untested() -> None:
    assert replace(GOOD, invariants={"I1": UNTESTED}, whole=False).wrong() == []
