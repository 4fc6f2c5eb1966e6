"""Intervals of the lease are the shipped ones around each step, and grow with the time to the next one."""

from types import SimpleNamespace

import pytest

from remediator.kube.api.builtin import LeaseSpec
from remediator_sim.simulation.intervals import stretch
from remediator_sim.simulation.plan import Step
from remediator_sim.simulation.replica import ReplicaModel
from remediator_sim.simulation.steps.idle_tests import PATIENCE


@pytest.mark.parametrize(
    ("at", "factor"),
    [(1000.0, 1.0), (988.0, 1.0), (1030.0, 1.0), (938.0, 10.0), (1031.0, 60.0), (0.0, 60.0)],
)
def test_around_a_step_at_1000_s(at, factor):
    assert stretch([Step(1000.0, "crash")], at) == factor


def test_an_issue_that_a_user_writes_into_leaves_them_as_they_are_and_a_death_before_github_does_not():
    assert stretch([Step(1000.0, "issue")], 1000.0) == 60.0
    assert stretch([Step(1000.0, "github-crash")], 1000.0) == 1.0


def test_while_a_step_waits_for_a_test_it_may_come_at_any_moment():
    """It waits for 900 s at most, and 30 s more are felt."""
    step = Step(1000.0, "in-test")
    assert [stretch([step], at) for at in (1000.0, 1000.0 + PATIENCE + 30, 1000.0 + PATIENCE + 31)] == [1.0, 1.0, 60.0]


def test_a_lease_outlives_the_longest_wait_for_its_renewal_while_intervals_shrink():
    steps = [Step(1000.0, "crash")]
    for at in range(0, 1000, 5):
        slept = 2.4 * stretch(steps, at)
        assert slept < 10 * stretch(steps, at + slept)


def test_intervals_become_longer_only_once_the_lease_says_that_it_lasts_longer_and_shorter_at_once():
    """Others take a lease of 15 s after 15 s: who leads must not think meanwhile that it has 600."""
    spec = LeaseSpec(holder_identity="a-1", lease_duration_seconds=15)
    elector = SimpleNamespace(_seen=SimpleNamespace(spec=spec))
    settings = SimpleNamespace(lease_duration=15.0, lease_renew=10.0, lease_retry=2.0)
    host = ReplicaModel.__new__(ReplicaModel)
    host.replica = SimpleNamespace(leader=SimpleNamespace(_elector=elector), settings=settings)

    def intervals() -> tuple[float, ...]:
        return elector._duration, elector._renew, elector._retry, elector._look_every

    assert not host.stretch(60.0)
    assert intervals() == (900.0, 10.0, 2.0, 1.0)
    spec.lease_duration_seconds = 900
    assert host.stretch(60.0)
    assert intervals() == (900.0, 600.0, 120.0, 60.0)
    assert host.stretch(1.0)
    assert intervals() == (15.0, 10.0, 2.0, 1.0)
