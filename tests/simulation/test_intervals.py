"""Intervals of the lease are the shipped ones around each step, and grow with the time to the next one."""

import pytest

from remediator_sim.simulation.intervals import stretch
from remediator_sim.simulation.plan import Step


@pytest.mark.parametrize(
    ("at", "factor"),
    [(1000.0, 1.0), (988.0, 1.0), (1030.0, 1.0), (938.0, 10.0), (1031.0, 60.0), (0.0, 60.0)],
)
def test_around_a_step_at_1000_s(at, factor):
    assert stretch([Step(1000.0, "crash")], at) == factor


def test_an_issue_that_a_user_writes_into_leaves_them_as_they_are_and_a_death_before_github_does_not():
    assert stretch([Step(1000.0, "issue")], 1000.0) == 60.0
    assert stretch([Step(1000.0, "github-crash")], 1000.0) == 1.0


def test_a_lease_outlives_the_longest_wait_for_its_renewal_while_intervals_shrink():
    steps = [Step(1000.0, "crash")]
    for at in range(0, 1000, 5):
        slept = 2.4 * stretch(steps, at)
        assert slept < 10 * stretch(steps, at + slept)
