"""A kubelet that starts no Pods, and its watchdog: small plans in virtual time, in which no promise is broken."""

import pytest

from nodelib.contract.order import DEEDS
from remediator_sim.shipped import folder
from remediator_sim.simulation.cluster import SHIPPED
from remediator_sim.simulation.plan import Plan, Step
from remediator_sim.simulation.programs import PROGRAMS, WATCHDOG
from remediator_sim.simulation.seed import play

pytestmark = pytest.mark.sampled("watchdog in virtual time")

NODES = ("gpu-01", "gpu-02", "gpu-03")
POLICY = "node-not-ready"
LADDER = [{"operation": name, "attempts": 1} for name in ("restart-runtime", "restart-kubelet", "reboot-by-watchdog")]


def a_plan(*steps, cures):
    """Its Ready is False, and for two hours its kubelet starts nothing."""
    hangs = Step(1.0, "stuck", "gpu-01", (("seconds", 7200),))
    fault = Step(60.0, "fault", "gpu-01", (("condition", "Ready"), ("cures", (cures,)), ("tries", 1)))
    budgets = (("fleet", (("maxUnavailable", 2),)),)
    specs = ((POLICY, (("ladder", LADDER), ("verify", {"settle": "5m", "fresh": "3m", "timeout": "20m"}))),)
    return Plan(7, NODES, ((POLICY, "Enforce"),), budgets, (hangs, fault, *steps), 1500.0, specs=specs)


def crash(phase):
    words = (("case", ("gpu-01", phase)), ("how", "now"), ("part", ""), ("back", 20))
    return Step(60.0, "crash", "leader", words)


RUNTIME, KUBELET, REBOOT = ("restart-runtime", "Succeeded"), ("restart-kubelet", "Succeeded"), "reboot-by-watchdog"
PLANS = {
    "a restart of the runtime": (a_plan(cures="restart-runtime"), (RUNTIME,)),
    "a restart of the kubelet": (a_plan(cures="restart-kubelet"), (RUNTIME, KUBELET)),
    "a reboot": (a_plan(cures="reboot"), (RUNTIME, KUBELET, (REBOOT, "Succeeded"))),
    "the leader is killed in mid-case": (a_plan(crash("Operating"), cures="restart-runtime"), (RUNTIME,)),
}


@pytest.mark.parametrize("name", PLANS)
def test_orders_are_carried_out_while_the_kubelet_starts_nothing_and_no_promise_is_broken(name):
    plan, attempts = PLANS[name]
    outcome = play(plan)
    (case,) = outcome.ending.nodes["gpu-01"].cases
    assert (case.phase, case.attempts, outcome.broken) == ("Recovered", attempts, ())
    assert not outcome.ending.pods


def test_while_the_leader_is_killed_again_and_again_an_attempt_is_begun_once():
    plan = a_plan(*(crash(phase) for phase in ("Draining", "Operating", "Verifying")), cures="restart-kubelet")
    outcome = play(plan)
    began = [line for line in outcome.journal.splitlines() if " runs restart-" in line]
    assert len(began) == len(set(began)) == 2
    assert outcome.broken == ()


def test_the_watchdog_of_a_simulated_node_does_what_a_real_one_does_by_models_that_are_held_to_their_programs():
    real = {name: (deed.program.removesuffix(".py").replace("_", "-"), deed.fixed) for name, deed in DEEDS.items()}
    assert real == WATCHDOG
    assert {program for program, _ in WATCHDOG.values()} <= set(PROGRAMS)


def test_what_a_simulation_reads_is_in_the_wheel_of_the_simulator():
    hook = (folder() / "remediator_sim" / "build_hook.py").read_text()
    assert [part for part in SHIPPED if f'"{part}"' not in hook] == []
