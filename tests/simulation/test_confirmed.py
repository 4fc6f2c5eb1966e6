"""A second source that changes its mind while a node drains stops what has not been done yet, and counts nothing."""

import pytest

from remediator_sim.simulation.plan import Plan, Step
from remediator_sim.simulation.seed import play
from tests.simulation.small import LOST

pytestmark = pytest.mark.sampled("confirmed")

NODES = ("gpu-01", "gpu-02", "gpu-03")


def plan(mode: str, seconds: float) -> Plan:
    """A PodDisruptionBudget holds the drain for five minutes; meanwhile the second source does not agree any more."""
    during = (("case", ("gpu-01", "Draining")), ("mode", mode), ("seconds", seconds))
    steps = (
        Step(1.0, "guard", "gpu-01", (("seconds", 600.0),)),
        Step(60.0, "fault", "gpu-01", LOST),
        Step(60.0, "second-source", "", during),
    )
    budgets = (("fleet", (("maxUnavailable", 2),)),)
    return Plan(7, NODES, (("gpu-lost", "Enforce"),), budgets, steps, 2400.0, confirmed=("gpu-lost",))


@pytest.mark.parametrize("mode", ["denies", "away", "warns"])
def test_nothing_is_rebooted_while_the_second_source_does_not_agree_and_the_case_ends_well(mode: str) -> None:
    outcome = play(plan(mode, 1200.0))
    assert outcome.broken == ()
    reason = "NotConfirmed" if mode == "denies" else "ConfirmationUnknown"
    assert reason in outcome.journal
    assert "Recovered" in outcome.journal


def test_an_operation_that_does_not_ask_again_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("remediator.controller.handlers.operation._confirmed", lambda checked, *asked: checked)
    assert any("the second source agreed" in sentence for sentence in play(plan("denies", 1200.0)).broken)
