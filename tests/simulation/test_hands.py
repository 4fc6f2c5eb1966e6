"""Somebody deletes Pods of ours, nothing finds a place for them, or a status is emptied: no node is harmed by that."""

import pytest

from remediator_sim.simulation.plan import Step
from remediator_sim.simulation.seed import play
from remediator_sim.simulation.world import SeedOutcome
from tests.simulation.scenario import a_plan, boots_of, fault, killed, moments_of, the_case

pytestmark = pytest.mark.sampled("hands", rare=True)


def played(*steps: Step, until: float = 3000.0) -> SeedOutcome:
    """A node that a reboot cures."""
    return play(a_plan(fault("GpuLost", "reboot"), *steps, policies=("gpu-lost",), until=until))


def deletes(template: str, after: float = 0.0) -> Step:
    return Step(60.0, "delete-pod", "gpu-01", (("template", template), ("after", after)))


def empties(what: str, moment: str, after: float = 0.0) -> Step:
    return Step(60.0, "empty-status", "gpu-01", (("of", what), ("moment", moment), ("after", after)))


@pytest.mark.parametrize("template", ["collect-diagnostics", "drain"])
def test_a_pod_that_somebody_deletes_before_the_operation_is_made_again_and_the_node_boots_once(template: str) -> None:
    outcome = played(deletes(template), killed("Operating"))
    assert moments_of(outcome, "somebody deletes Pod")
    assert (the_case(outcome)[0], boots_of(outcome), outcome.broken) == ("Recovered", 1, ())


def test_an_operation_whose_pod_somebody_deletes_counts_as_an_attempt_and_the_next_one_cures() -> None:
    outcome = played(deletes("reboot"), killed(at=600.0))
    assert moments_of(outcome, "somebody deletes Pod")
    phase, attempts = the_case(outcome)
    assert (phase, attempts[0], outcome.broken) == ("Recovered", ("reboot", "Failed"), ())


@pytest.mark.parametrize("seconds", [600, 4000])
def test_a_pod_for_which_no_node_is_found_makes_no_case_climb(seconds: float) -> None:
    outcome = played(Step(30.0, "unplaced", "gpu-01", (("seconds", seconds),)), killed(at=500.0), until=9000.0)
    phase, attempts = the_case(outcome)
    tried = [outcome for _, outcome in attempts if outcome != "Cancelled"]
    assert (phase, tried, boots_of(outcome), outcome.broken) == ("Recovered", ["Succeeded"], 1, ())


def test_an_operation_without_its_image_is_no_attempt_though_its_kubelet_ends_its_pod_in_a_pause() -> None:
    """A kubelet ends a Pod after the 15 minutes of its operation, started or not; all is paused for an hour then."""
    steps = (Step(30.0, "no-image", "gpu-01", (("seconds", 6000),)), Step(600.0, "pause", "", (("seconds", 3600),)))
    plan = a_plan(fault("NfsStale", "remount-nfs"), *steps, policies=("nfs-stale",), until=12000.0)
    outcome = play(plan)
    phase, attempts = the_case(outcome)
    tried = [attempt for attempt in attempts if attempt != ("remount-nfs", "Cancelled")]
    assert tried == [("remount-nfs", "Succeeded"), ("gpu-check", "Succeeded")]
    assert (phase, boots_of(outcome), len(attempts) - len(tried), outcome.broken) == ("Recovered", 0, 2, ())


MOMENTS = ("claim", "drain", "drained", "intent")
OF_CASE = [(what, moment) for what in ("case", "budget") for moment in MOMENTS]


@pytest.mark.parametrize("after", [0.0, 5.0, 40.0])
@pytest.mark.parametrize(("what", "moment"), [*OF_CASE, *(("operation", moment) for moment in MOMENTS[1:])])
def test_a_status_that_somebody_empties_costs_the_node_no_second_reboot(what: str, moment: str, after: float) -> None:
    outcome = played(empties(what, moment, after), killed(at=400.0))
    assert moments_of(outcome, "is emptied")
    assert boots_of(outcome) <= 1
    assert outcome.broken == ()
    assert not outcome.ending.pods
