"""Other controllers ask for a repair: it is done once, whoever dies, waits no longer or asks twice."""

import pytest

from remediator_sim.simulation.plan import Step
from remediator_sim.simulation.requesters import REQUESTERS
from remediator_sim.simulation.seed import play
from remediator_sim.simulation.variants import REQUESTS
from remediator_sim.simulation.world import SeedOutcome
from tests.simulation.scenario import a_plan, boots_of, during, killed, moments_of

NAME = "request-gpu-01-60"


def asks(by: str = "NodeHealthCheck", at: float = 60.0, patience: float = 2400.0, released: float = 0.0) -> Step:
    """A controller asks for a reboot of the first node."""
    words = (("by", by), ("template", "reboot"), ("patience", patience), ("released", released))
    return Step(at, "request", "gpu-01", words)


def played(*steps: Step) -> SeedOutcome:
    return play(a_plan(*steps, policies=("gpu-lost",), shows=(REQUESTS,)))


@pytest.mark.sampled
@pytest.mark.parametrize("phase", ["Draining", "Operating", "Verifying"])
@pytest.mark.parametrize("by", sorted(REQUESTERS))
def test_each_has_its_node_rebooted_once_and_is_told_though_the_leader_dies_meanwhile(by: str, phase: str) -> None:
    outcome = played(asks(by), killed(phase))
    assert (boots_of(outcome), outcome.broken) == (1, ())
    assert len(moments_of(outcome, "=True RemediatorSucceeded")) == 1
    assert moments_of(outcome, "=True RemediatorSucceeded")[0] < moments_of(outcome, f"{NAME} is gone")[0]


@pytest.mark.slow
def test_nothing_is_done_before_nvsentinel_has_released_the_node() -> None:
    outcome = played(asks("NVSentinel", released=600.0), killed(at=400.0))
    (released,) = moments_of(outcome, "says NVSentinelOwnershipReleased=True")
    assert released < moments_of(outcome, "is cordoned")[0]
    assert (boots_of(outcome), outcome.broken) == (1, ())


@pytest.mark.sampled
@pytest.mark.parametrize("by", sorted(REQUESTERS))
def test_one_that_is_not_waited_for_while_a_user_excludes_the_node_is_never_done(by: str) -> None:
    excluded = Step(30.0, "exclude", "gpu-01", (("seconds", 2400),))
    outcome = played(excluded, asks(by, patience=600.0), killed(at=500.0))
    assert (boots_of(outcome), outcome.broken) == (0, ())
    assert moments_of(outcome, f"{NAME} is gone")


@pytest.mark.sampled
@pytest.mark.parametrize("by", sorted(REQUESTERS))
def test_one_that_is_not_waited_for_while_its_pod_runs_goes_when_nothing_works_on_the_node(by: str) -> None:
    outcome = played(asks(by, patience=50.0), killed("Operating"))
    assert (boots_of(outcome), outcome.broken) == (1, ())
    assert moments_of(outcome, "ended with 137: reboot")[0] < moments_of(outcome, f"{NAME} is gone")[0]


@pytest.mark.slow
def test_two_that_ask_for_one_node_are_served_one_after_the_other() -> None:
    outcome = played(asks(), asks("NVSentinel", at=61.0), killed("Draining"))
    assert (boots_of(outcome), outcome.broken) == (2, ())
    assert len(moments_of(outcome, "=True RemediatorSucceeded")) == 2


@pytest.mark.slow
def test_a_user_who_deletes_its_operation_takes_it_back_for_good() -> None:
    outcome = played(asks(), during("Draining", "delete-operation"), killed(at=300.0))
    assert (boots_of(outcome), outcome.broken) == (0, ())
    assert moments_of(outcome, "RemediatorTakenBack")
