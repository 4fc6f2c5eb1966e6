"""Other systems that work on a node, and reporters that fall silent, in small plans."""

from dataclasses import replace

import pytest

from remediator_sim.simulation.plan import Step
from remediator_sim.simulation.reporters import when
from remediator_sim.simulation.seed import play
from remediator_sim.simulation.steps.signs import SIGNS
from remediator_sim.simulation.variants import REPORTERS
from tests.simulation.small import PLANS

pytestmark = pytest.mark.sampled("signs")

CURED = PLANS["the leader is killed in mid-case"]
FAULT = next(step for step in CURED.steps if step.kind == "fault")
BEFORE, AFTER = "", "claim"  # the moments


def ending(kind: str, moment: str, **words: object):
    step = Step(FAULT.at - 1.0, kind, FAULT.target, (("moment", moment), ("seconds", 240), *words.items()))
    plan = CURED.with_steps((step, FAULT))
    if kind == "quiet-reporter":
        clauses = (("when", when("GpuLost", "0s")),)
        plan = replace(plan, shows=(REPORTERS,), specs=(("gpu-lost", clauses),))
    outcome = play(plan)
    (case,) = outcome.ending.nodes[FAULT.target].cases
    return outcome, case


@pytest.mark.parametrize("sign", range(len(SIGNS)), ids=[sign.key for sign in SIGNS])
def test_a_case_waits_for_another_system_and_goes_on_once_its_sign_is_gone(sign):
    outcome, case = ending("maintain", BEFORE, sign=sign)
    assert (case.phase, outcome.broken) == ("Recovered", ())
    assert "UnderMaintenance" in case.reasons
    assert SIGNS[sign].key not in outcome.ending.nodes[FAULT.target].marks


def test_a_case_waits_for_another_system_that_comes_once_its_node_is_taken():
    outcome, case = ending("maintain", AFTER, sign=0)
    assert (case.phase, outcome.broken) == ("Recovered", ())
    assert "UnderMaintenance" in case.reasons


def test_what_a_reporter_writes_that_falls_silent_counts_again_once_it_is_back():
    outcome, case = ending("quiet-reporter", AFTER)
    assert (case.phase, outcome.broken) == ("Recovered", ())
    lines = [line for line in outcome.journal.splitlines() if "the reporter on" in line]
    assert len(lines) == 2
