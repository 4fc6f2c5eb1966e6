"""What the watchdog of a node is ordered where its kubelet starts no Pods, and orders that nobody takes."""

from dataclasses import replace

import pytest

from remediator.controller import kubelet_leases, waits
from remediator.controller.handlers.operation import HANDLERS
from remediator.controller.operation_view import operation_view
from remediator.controller.pods import pod_name
from remediator.core.operation_table import Move, operation_move
from remediator.core.pod import PodPhase
from remediator.core.template import RunOn
from tests.builders import a_pod, a_template, at, minutes
from tests.harness.controller import Answer, cure, running, until
from tests.remediator.controller.test_dead_nodes import CYCLED, dead
from tests.remediator.controller.test_observe_plan import INTENDED, OF, RUNNING, a_cache, shown

pytestmark = pytest.mark.sampled("watchdog")

UNREACHABLE = {
    "when": [{"condition": "Ready", "status": "Unknown", "for": "0s"}],
    "ladder": [{"operation": "restart-kubelet", "attempts": 1}, {"operation": "power-cycle", "attempts": 1}],
}
ORDERED = replace(INTENDED, template="restart-kubelet")
ORDER = pod_name(ORDERED)
BY_WATCHDOG = a_template("restart-kubelet", run_on=RunOn.WATCHDOG, timeout=minutes(15))


def planned(*pods, now, template=BY_WATCHDOG):
    """What the operation does, and its effects; its intent was written at minute 4."""
    cache = a_cache(RUNNING, ORDERED, *pods, templates=(template,))
    view = operation_view(cache, ORDERED, now)
    move = operation_move(view.observation)
    return move, HANDLERS[move].plan(view, now)


@pytest.mark.parametrize(("run_on", "seconds"), [(RunOn.WATCHDOG, 540), (RunOn.TARGET, 900)])
def test_an_order_has_the_time_that_is_left_so_that_its_program_has_ended_when_nobody_waits_any_more(run_on, seconds):
    """Made at minute 10: 9 of the 15 minutes since the intent are left. A kubelet counts from the start of a Pod."""
    move, (create,) = planned(now=at(10), template=replace(BY_WATCHDOG, run_on=run_on))
    assert (move, create.body["spec"]["activeDeadlineSeconds"]) == (Move.CREATE_POD, seconds)
    assert create.gated, "everything is read once more before"


@pytest.mark.parametrize(
    ("phase", "reason"), [(PodPhase.PENDING, "WatchdogSilent"), (PodPhase.RUNNING, "TimedOut")], ids=str
)
def test_an_order_that_nobody_takes_counts_and_has_a_word_of_its_own(phase, reason):
    order = a_pod(ORDER, phase, node="", **OF)
    assert planned(order, now=at(18))[0] is Move.WAIT
    move, effects = planned(order, now=at(19))
    assert (move, shown(effects)) == (Move.TIME_OUT, [("delete", "Pod", ORDER), ("operation", "Failed", reason)])


@pytest.fixture
async def fleet(harness, monkeypatch):
    """Leases are good for a second, and looked at every 0.2 s."""
    monkeypatch.setattr(waits, "LOOK_AGAIN", 0.2)
    monkeypatch.setattr(kubelet_leases, "FRESH", 0.1)
    await harness.template("restart-kubelet", runOn="Watchdog", timeout="3s")
    await harness.template("power-cycle", runOn="Elsewhere", timeout="20s", success={"bootIDChanged": True})
    harness.answer("power-cycle", CYCLED)
    return harness


async def starts_kubelet(harness, node):
    """The order is placed nowhere; when it is carried out the kubelet reports again."""
    (order,) = harness.pods("restart-kubelet")
    harness.seen = order["spec"].get("nodeName"), order["spec"].get("schedulerName")
    await harness.condition(node, "True", "Ready")


async def test_a_kubelet_that_hangs_is_restarted_by_the_watchdog_and_the_power_stays_on(fleet):
    await fleet.policy("node-unreachable", **UNREACHABLE)
    fleet.answer("restart-kubelet", Answer(message="restarted kubelet", does=starts_kubelet))
    await dead(fleet, "gpu-1")
    async with running(fleet):
        await until(lambda: fleet.ended("gpu-1", "Recovered"))
    assert (fleet.ran, fleet.seen) == (["restart-kubelet gpu-1"], (None, "remediator-watchdog"))
    (attempt,) = fleet.cases("gpu-1")[0]["status"]["attempts"]
    assert (attempt["outcome"], attempt["intent"]["bootID"]) == ("Succeeded", "boot-1")


async def test_where_no_watchdog_takes_the_order_the_ladder_goes_on(fleet):
    await fleet.policy("node-unreachable", **UNREACHABLE)
    fleet.answer("restart-kubelet", Answer(starts=False))
    await dead(fleet, "gpu-1")
    async with running(fleet):
        await until(lambda: fleet.ended("gpu-1", "Recovered"))
    assert fleet.ran == ["power-cycle gpu-1"]
    attempts = [(each["outcome"], each.get("reason")) for each in fleet.cases("gpu-1")[0]["status"]["attempts"]]
    assert attempts[0] == ("Failed", "WatchdogSilent")
    assert attempts[1][0] == "Succeeded"


async def test_a_node_that_reports_has_its_watchdog_asked_too(fleet):
    """Its kubelet reports and its runtime starts nothing."""
    await fleet.policy(ladder=[{"operation": "restart-kubelet", "attempts": 1}])
    fleet.answer("restart-kubelet", Answer(message="restarted kubelet", does=cure))
    await fleet.node("gpu-1", gpu="True")
    async with running(fleet):
        await until(lambda: fleet.ended("gpu-1", "Recovered"))
    assert "restart-kubelet gpu-1" in fleet.ran
