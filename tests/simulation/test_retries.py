"""A node that boots without one of its GPUs has not recovered; its case may try again when a user says so."""

import pytest

from remediator_sim.simulation.plan import Plan, Step
from remediator_sim.simulation.seed import play
from tests.simulation.small import LOST, NODES

pytestmark = pytest.mark.sampled("retries")

LESS = Step(60.0, "lose-gpus", "gpu-01", (("count", 1), ("seconds", 3480.0)))
AGAIN = Step(60.0, "retry", "gpu-01", (("escalated", True), ("seconds", 300.0), ("times", 1)))


def plan(*steps: Step) -> Plan:
    """A reboot cures what is wrong with a node."""
    budgets = (("fleet", (("maxUnavailable", 2),)),)
    return Plan(7, NODES, (("gpu-lost", "Enforce"),), budgets, (Step(60.0, "fault", "gpu-01", LOST), *steps), 6000.0)


def test_a_node_that_lacks_a_gpu_after_its_reboot_is_handed_to_a_person() -> None:
    outcome = play(plan(LESS))
    (case,) = outcome.ending.nodes["gpu-01"].cases
    assert (case.phase, outcome.broken) == ("Escalated", ())


def test_a_case_that_a_user_lets_try_again_recovers_once_the_gpu_is_back() -> None:
    outcome = play(plan(LESS, AGAIN))
    (case,) = outcome.ending.nodes["gpu-01"].cases
    assert (case.phase, outcome.broken) == ("Recovered", ())
    assert "RetriedByUser" in case.reasons


def test_a_recovery_with_one_gpu_less_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("remediator.core.inventory.missing", lambda *asked: "")
    assert any("gpu-01" in sentence and "recovered" in sentence for sentence in play(plan(LESS)).broken)
