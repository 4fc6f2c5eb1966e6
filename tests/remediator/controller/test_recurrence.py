"""Faults that come back, on the whole controller: one rung higher, then a person, who is shown what was done before."""

import json
from datetime import timedelta

import pytest

from remediator.clock import SYSTEM
from remediator.controller.explain import explain, snapshot, snapshot_of
from remediator.core import names
from remediator.core.breaker import Breaker
from tests.harness.controller import Answer, ControllerHarness, cure, now, running, stamp, until

pytestmark = pytest.mark.sampled("recurrence")

LOST = "0000:3b:00.0 (GPU-9f3c01ab) is lost"
BOARD = {"address": "0000:3b:00.0", "uuid": "GPU-9f3c01ab-77aa-1234", "serial": "1563521020414"}
LADDER = [{"operation": "reset-gpu"}, {"operation": "reboot"}]
CURES, EVIDENCE = Answer(does=cure), Answer(message=json.dumps({"gpus": [BOARD]}))


async def falls_ill(harness: ControllerHarness, node: str, number: int) -> None:
    """The GPU is lost, each time since another moment."""
    at = stamp(now() - timedelta(minutes=5 - number))
    times = {"lastTransitionTime": at, "lastHeartbeatTime": stamp(harness._clock(node))}
    said = {"type": "GpuLost", "status": "True", "reason": "Said", "message": LOST}
    await harness._node_status(node, {"conditions": [said | times]})


async def lines(harness: ControllerHarness, node: str) -> list[str]:
    cache = await snapshot(harness.client, names.Namespaces(), SYSTEM)
    found = cache.nodes.get(node)
    assert found is not None
    return [line.strip() for line in explain(cache, found, Breaker(), SYSTEM.now())]


async def test_a_relapse_starts_one_rung_higher_and_the_second_goes_to_a_person_with_the_history(harness):
    await harness.template("reset-gpu")
    harness.answer("reset-gpu", CURES)
    await harness.policy(ladder=LADDER, relapse={"window": "72h"}, attempts={"max": 9})
    await harness.node("gpu-1")
    async with running(harness):
        for number in range(2):
            await falls_ill(harness, "gpu-1", number)
            await until(lambda count=number: len(harness.cases("gpu-1")) > count)
            await until(lambda: harness.ended("gpu-1", "Recovered"))
        await falls_ill(harness, "gpu-1", 3)
        await until(lambda: harness.phase("gpu-1") == "Escalated")
    assert harness.ran.count("reset-gpu gpu-1") == 1
    assert harness.ran.count("reboot gpu-1") == 1
    first, second, third = (case["status"] for case in harness.cases("gpu-1"))
    assert [(case["rung"], case["attempts"][0]["rung"]) for case in (first, second)] == [(1, 1), (2, 2)]
    assert (third["reason"], third["message"]) == (
        "Relapsed",
        "a person must look: the second relapse of gpu-1 within 7 days",
    )
    assert "attempts" not in third
    history = sorted((past["operations"], past["outcome"]) for past in third["history"])
    assert history == [(["reboot"], "Recovered"), (["reset-gpu"], "Recovered")]
    shown = [line for line in await lines(harness, "gpu-1") if line.startswith("before: ")]
    assert sorted(line.partition("UTC ")[2] for line in shown) == [
        "gpu-lost: reboot: Recovered",
        "gpu-lost: reset-gpu: Recovered",
    ]


async def test_a_board_that_was_moved_is_known_on_its_new_node_and_nothing_is_done_to_it(harness):
    """One case of the board in each of two nodes is enough; the decision comes after the diagnostics have found it."""
    harness.answer(names.DIAGNOSTICS_TEMPLATE, EVIDENCE)
    await harness.policy(lemon={"cases": 2, "window": "720h"})
    for node in ("gpu-1", "gpu-2", "gpu-3"):
        await harness.node(node)
    async with running(harness):
        for number, node in enumerate(("gpu-1", "gpu-2")):
            await falls_ill(harness, node, number)
            await until(lambda place=node: harness.ended(place, "Recovered"))
        await falls_ill(harness, "gpu-3", 2)
        await until(lambda: harness.phase("gpu-3") == "Escalated")
    assert [ran for ran in harness.ran if ran.endswith("gpu-3")] == ["collect-diagnostics gpu-3"]
    case = harness.cases("gpu-3")[0]["status"]
    known = "board 1563521020414 (GPU-9f3c01ab) had 2 cases in 30 days, on gpu-1, gpu-2"
    assert (case["reason"], case["message"]) == ("Lemon", f"a person must look: {known}")
    places = [(past["nodeName"], past["operations"]) for past in case["history"]]
    assert places == [("gpu-1", ["reboot"]), ("gpu-2", ["reboot"])]
    cache = await snapshot_of("gpu-3", harness.client, names.Namespaces(), SYSTEM)
    shown = [line for line in explain(cache, cache.nodes.get("gpu-3"), Breaker(), SYSTEM.now()) if "before: " in line]
    assert [line.partition(" on ")[2] for line in shown] == ["gpu-1: reboot: Recovered", "gpu-2: reboot: Recovered"]
    shown, _ = (line for line in await lines(harness, "gpu-3") if line.startswith("before: "))
    assert shown.endswith("UTC gpu-lost on gpu-1: reboot: Recovered")


async def test_a_node_that_boots_by_itself_while_its_drain_waits_ends_with_a_person(harness):
    """No attempt of the three cases counts, since nothing ran; but each had taken the node, and four are allowed."""
    await harness.policy(attempts={"max": 3, "window": "1h"})
    await harness.node("gpu-1")
    async with running(harness, drains=0):
        for number in range(3):
            await falls_ill(harness, "gpu-1", number)
            await until(lambda count=number: len(_attempts(harness)) > count, 30)
            await harness.boot("gpu-1")
            await harness.condition("gpu-1", "False")
            await until(lambda: harness.ended("gpu-1", "Recovered"), 30)
        await falls_ill(harness, "gpu-1", 4)
        await until(lambda: harness.phase("gpu-1") == "Escalated", 30)
    assert _attempts(harness) == [("Cancelled", "Rebooted", False)] * 3
    case = harness.cases("gpu-1")[-1]["status"]
    assert (case["reason"], len(case["history"])) == ("AttemptsSpent", 3)
    assert case["message"] == "a person must look: nothing was tried, and 3 cases before this one had taken the node"


def _attempts(harness: ControllerHarness) -> list[tuple[str, str, bool]]:
    attempts = [one for case in harness.cases("gpu-1") for one in case.get("status", {}).get("attempts") or ()]
    return [(one.get("outcome", ""), one.get("reason", ""), one.get("counts", True)) for one in attempts]
