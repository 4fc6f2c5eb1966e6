"""A node dies while it is repaired: its case goes to a person, and nothing cuts its power beside that case."""

from typing import Any

import pytest

from remediator_sim.simulation.plan import Step
from remediator_sim.simulation.seed import play
from remediator_sim.simulation.world import SeedOutcome
from tests.simulation.scenario import a_plan, boots_of, during, fault, killed, moments_of

pytestmark = pytest.mark.sampled("dead in repair")

NODE, POLICIES = "gpu-01", ("gpu-lost", "node-unreachable")
CYCLES = f"begins {NODE}-power-cycle"
GUARDED = Step(1.0, "guard", NODE, (("seconds", 9000.0),))  # the drain waits for a Pod that a budget keeps
DEATHS = {
    "Draining": (GUARDED, Step(600.0, "dies", NODE)),
    "Operating": (during("Operating", "dies"),),
}


def repaired(*steps: Step, until: float, **more: Any) -> SeedOutcome:
    """Any boot would cure the node. The policy for dead nodes finds it 30 minutes after it has fallen silent."""
    ill = fault("GpuLost", "reboot", "power-cycle")
    return play(a_plan(ill, *steps, policies=POLICIES, until=until, **more))


def cases(outcome: SeedOutcome) -> list[tuple[str, str, str]]:
    """The cases of the node, oldest first, as policy, phase and reason."""
    return [(case.policy, case.phase, case.reason) for case in outcome.ending.nodes[NODE].cases]


@pytest.mark.parametrize("phase", DEATHS)
def test_its_case_goes_to_a_person_and_nobody_cuts_its_power_beside_that(phase: str) -> None:
    """Two and a half hours are played; the leader dies after the first of them."""
    outcome = repaired(*DEATHS[phase], killed(at=4000.0), until=9000.0)
    assert cases(outcome) == [("gpu-lost", "Escalated", "HealthUnknown")]
    assert [template for template, _ in outcome.ending.nodes[NODE].cases[0].attempts] == ["reboot"]
    assert (moments_of(outcome, CYCLES), outcome.broken) == ([], ())


def test_one_that_a_person_releases_while_it_is_silent_is_given_back_once_it_is_back() -> None:
    """Its last Pod may run on as long as it is silent. It is turned on in the third hour."""
    silent = during("Operating", "down", seconds=9000.0)
    outcome = repaired(silent, Step(6000.0, "release", NODE), until=13000.0)
    assert cases(outcome) == [("gpu-lost", "Escalated", "ReleasedByUser")]
    released, back, free = (moments_of(outcome, words)[0] for words in ("release gpu-01", "is up again", "is let go"))
    assert released < back < free
    assert (moments_of(outcome, CYCLES), boots_of(outcome), outcome.broken) == ([], 1, ())


def test_beside_a_case_that_only_waits_the_policy_for_dead_nodes_takes_the_node_and_the_other_case_is_held() -> None:
    """The first one waits for an approval, and is over once the fault has gone with the boot."""
    waits = (("gpu-lost", (("approval", "Required"),)),)
    outcome = repaired(Step(600.0, "dies", NODE), until=9000.0, specs=waits)
    first, second = outcome.ending.nodes[NODE].cases
    assert [(case.policy, case.phase) for case in (first, second)] == [
        ("gpu-lost", "Recovered"),
        ("node-unreachable", "Recovered"),
    ]
    assert {"ApprovalNeeded", "NodeBusy"} <= set(first.reasons)
    assert (first.attempts, boots_of(outcome), outcome.broken) == ((), 1, ())
