"""Another controller that takes, holds, steals and forgets the Lease of a node, in small plans."""

import re
from dataclasses import replace

import pytest

from remediator_sim.simulation.plan import Step
from remediator_sim.simulation.seed import play
from remediator_sim.simulation.variants import NODE_LEASES
from tests.simulation.small import PLANS

pytestmark = pytest.mark.sampled("Leases of nodes")

CURED = PLANS["the leader is killed in mid-case"]
FAULT = next(step for step in CURED.steps if step.kind == "fault")


def ending(moment: str, *, steals: bool, returns: bool):
    words = (("moment", moment), ("seconds", 240), ("steals", steals), ("returns", returns))
    step = Step(FAULT.at - 1.0, "lease", FAULT.target, words)
    outcome = play(replace(CURED.with_steps((step, FAULT)), shows=(NODE_LEASES,), until=FAULT.at + 2400.0))
    (case,) = outcome.ending.nodes[FAULT.target].cases
    return outcome, case


def holders(journal: str) -> list[str]:
    """Who held the Lease of the node, one after the other."""
    return re.findall(r"its Lease is held by ([\w-]+)", journal)


def test_a_case_waits_for_whoever_holds_the_lease_of_its_node_and_gives_its_own_back():
    outcome, case = ending("", steals=False, returns=True)
    assert (case.phase, outcome.broken) == ("Recovered", ())
    assert "UnderMaintenance" in case.reasons
    assert holders(outcome.journal) == ["node-maintenance", "nobody", "remediator", "nobody"]


def test_a_lease_that_is_never_given_back_holds_a_case_until_it_has_expired_for_both_clocks():
    outcome, case = ending("", steals=False, returns=False)
    assert (case.phase, outcome.broken) == ("Recovered", ())
    assert holders(outcome.journal) == ["node-maintenance", "remediator", "nobody"]


@pytest.mark.parametrize("moment", ["claim", "drain"])
def test_whoever_steals_the_lease_of_a_case_has_it_until_they_give_it_back(moment):
    outcome, case = ending(moment, steals=True, returns=True)
    assert (case.phase, outcome.broken) == ("Recovered", ())
    assert holders(outcome.journal)[:2] == ["remediator", "node-maintenance"]
    assert holders(outcome.journal)[-1] == "nobody"
