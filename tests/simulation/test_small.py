"""How small plans end in virtual time; tests/cluster/test_simulation.py plays them on a real control plane."""

import math
from dataclasses import replace

import pytest

from remediator_sim.simulation import world
from remediator_sim.simulation.plan import Step
from remediator_sim.simulation.seed import play
from tests.simulation.small import NODES, PLANS

pytestmark = pytest.mark.sampled("small", rare=True)

CURED, HELD = (("reboot", "Succeeded"),), ("remediator.dev/case", "remediator.dev/cordoned-by")
# By plan and node: phase and reason of its case, its attempts, and the reasons of its timeline besides the usual.
ENDS = {
    "a reboot cures two nodes under a budget of one": {
        "gpu-01": ("Recovered", "Verified", CURED, set()),
        "gpu-02": ("Recovered", "Verified", CURED, {"BudgetSpent"}),
    },
    "nothing cures it": {"gpu-01": ("Escalated", "LadderExhausted", CURED, {"LadderExhausted"})},
    "a budget of Pods holds the drain": {"gpu-01": ("Recovered", "Verified", CURED, set())},
    "the leader is killed in mid-case": {"gpu-01": ("Recovered", "Verified", CURED, set())},
    "a user excludes the node in mid-case": {"gpu-01": ("Recovered", "Verified", CURED, {"OptedOut"})},
    "of each rack one node is repaired at a time": {
        "gpu-01": ("Recovered", "Verified", CURED, set()),
        "gpu-02": ("Recovered", "Verified", CURED, set()),
        "gpu-05": ("Recovered", "Verified", CURED, {"BudgetSpent"}),
    },
    "three nodes that show the same are left alone and a fourth one is repaired": {
        **{node: ("Recovered", "ClearedItself", (), {"ClearedItself", "SharedCause"}) for node in NODES},
        "gpu-04": ("Recovered", "Verified", CURED, set()),
    },
    "its policy is deleted in mid-case and made again": {"gpu-01": ("Recovered", "Verified", CURED, {"PolicyMissing"})},
}
USUAL = {"Claimed", "Diagnosed", "Operating", "OperationStarted", "OperationSucceeded", "Verified"}


@pytest.mark.parametrize("name", PLANS)
def test_a_small_plan_ends_in_this_way_and_breaks_no_promise(name):
    outcome = play(PLANS[name])
    cases = {node: ending.cases for node, ending in outcome.ending.nodes.items() if ending.cases}
    ends = {
        node: (case.phase, case.reason, case.attempts, set(case.reasons) - USUAL) for node, (case,) in cases.items()
    }
    assert (ends, outcome.broken) == (ENDS[name], ())
    assert not outcome.ending.pods


def test_a_node_that_is_handed_to_a_person_stays_marked_and_the_others_are_clean():
    ending = play(PLANS["nothing cures it"]).ending
    assert [ending.nodes[node].cordoned for node in NODES] == [True, False, False]
    assert set(HELD) <= set(ending.nodes["gpu-01"].marks)
    assert (ending.claims, ending.nodes["gpu-01"].bad) == (("gpu-01",), ("UnkillableProcess",))
    assert not any("case" in mark for node in NODES[1:] for mark in ending.nodes[node].marks)


def test_what_nobody_lets_go_on_is_waited_for_one_hour_and_the_hours_after_it_tell_nothing_more(monkeypatch):
    plan = PLANS["a user excludes the node in mid-case"]
    stays = [Step(step.at, step.kind, step.target, (*step.words[:1], ("seconds", 1e6))) for step in plan.steps[-1:]]
    plan = plan.with_steps((*plan.steps[:-1], *stays))
    skipped = play(plan)
    monkeypatch.setattr(world, "STILL", math.inf)
    whole = play(plan)
    story, rest = skipped.journal.splitlines()[:-2], whole.journal.splitlines()
    assert rest[: len(story)] == story
    assert [line.split(maxsplit=2)[2] for line in rest[len(story) :]] == [
        "A          is killed",
        "B          is killed",
    ]
    assert (story[-1][3:5], skipped.journal.splitlines()[-1][3:5], rest[-1][3:5]) == ("09", "10", "18"), "hours"
    assert (skipped.ending, skipped.broken) == (whole.ending, ())
    assert {name for name, count in skipped.checks.items() if count} == {n for n, c in whole.checks.items() if c}


def test_nodes_that_wait_for_each_other_for_longer_than_six_hours_are_all_repaired():
    plan = PLANS["a reboot cures two nodes under a budget of one"]
    slow = (("verify", {"settle": "2h", "timeout": "3h", "fresh": "3m"}),)  # each node: two hours and a few minutes
    faults = tuple(Step(60.0, "fault", node, plan.steps[0].words) for node in NODES)
    outcome = play(replace(plan, steps=faults, specs=(("gpu-lost", slow),)))
    phases = [case.phase for node in NODES for case in outcome.ending.nodes[node].cases]
    assert (phases, outcome.broken) == (["Recovered"] * 3, ())
