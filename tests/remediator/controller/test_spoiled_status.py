"""What somebody else has written into a status of ours is rebuilt from what is observed; a fleet may be empty."""

from typing import Any

import pytest

from tests.harness.controller import DIAGNOSED, REBOOTED, RUNS, ControllerHarness, running, until
from tests.harness.kinds import BUDGETS, CASES, NODES, OPERATIONS

pytestmark = pytest.mark.sampled("spoiled status")


async def _wipe(harness: ControllerHarness, kind: Any, name: str) -> None:
    """A restore without status, or a user with rights on it."""
    await harness.client.patch(kind, name, {"status": None}, subresource="status")


@pytest.mark.parametrize("pod", ["collect-diagnostics", "drain", "reboot"])
async def test_a_case_whose_status_is_gone_in_the_middle_goes_on_and_its_node_is_rebooted_once(
    harness: ControllerHarness, pod: str
):
    """Each of its three Pods runs in turn as the status goes. A drain is no attempt that anybody asked for then."""
    harness.answer(pod, RUNS, *([] if pod == "reboot" else [DIAGNOSED]))
    await harness.policy()
    await harness.budget("pool", 1)
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: harness.pods(pod, "Running"))
        await _wipe(harness, CASES, harness.cases("gpu-1")[0]["metadata"]["name"])
        await until(lambda: harness.phase("gpu-1") in ("Draining", "Operating"))
        if pod != "drain":
            await harness.finish(pod, REBOOTED if pod == "reboot" else DIAGNOSED)
        await until(lambda: harness.ended("gpu-1", "Recovered"), 30)
    assert harness.ran.count("reboot gpu-1") == 1
    assert len(harness.cases("gpu-1")) == 1


async def test_a_case_of_which_somebody_says_that_it_has_ended_gives_its_node_back_with_nothing_of_ours_left(
    harness: ControllerHarness,
):
    harness.answer("reboot", RUNS)
    await harness.policy()
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: harness.pods("reboot", "Running"))
        said = {"phase": "Recovered", "endedAt": harness.cases("gpu-1")[0]["status"]["startedAt"]}
        name = harness.cases("gpu-1")[0]["metadata"]["name"]
        await harness.client.patch(CASES, name, {"status": said}, subresource="status")
        await until(lambda: harness.clean("gpu-1"), 30)
    assert harness.ran.count("reboot gpu-1") == 1


async def test_an_operation_that_somebody_removes_by_force_while_its_pod_runs_gets_no_second_pod(
    harness: ControllerHarness,
):
    """Its case makes the operation anew, under its name and with another uid: the Pod would have another name."""
    harness.answer("reboot", RUNS)
    await harness.policy()
    await harness.node("gpu-1", "True")
    async with running(harness):
        [pod] = await until(lambda: harness.pods("reboot", "Running"))
        [before] = harness.all(OPERATIONS)
        name = before["metadata"]["name"]
        await harness.client.patch(OPERATIONS, name, {"metadata": {"finalizers": []}})
        await harness.client.delete(OPERATIONS, name)
        said = f"somebody has removed the operation that made Pod {pod['metadata']['name']}"
        await until(lambda: any(said in one.get("status", {}).get("message", "") for one in harness.all(OPERATIONS)))
        assert harness.all(OPERATIONS)[0]["metadata"]["uid"] != before["metadata"]["uid"]
        await harness.finish("reboot", REBOOTED)
        await until(lambda: harness.ended("gpu-1", "Recovered"), 30)
    assert harness.ran.count("reboot gpu-1") == 1


@pytest.mark.parametrize("whole", [True, False])
async def test_a_ledger_that_somebody_has_emptied_is_filled_again_and_admits_nobody_before(
    harness: ControllerHarness, whole: bool
):
    """One of two nodes may be out. The second one must not start because the entry of the first is gone."""
    harness.answer("reboot", RUNS, REBOOTED)
    await harness.policy()
    await harness.budget("pool", 1)
    for node in ("gpu-1", "gpu-2"):
        await harness.node(node)
    async with running(harness):
        await harness.condition("gpu-1", "True")
        await until(lambda: harness.pods("reboot", "Running"))
        if whole:
            await _wipe(harness, BUDGETS, "pool")
        else:
            await harness.client.patch(BUDGETS, "pool", {"status": {"claims": []}}, subresource="status")
        await harness.condition("gpu-2", "True")
        await until(lambda: harness.reasons("gpu-2") == ["BudgetSpent"], 30)
        await until(lambda: harness.claims() == ["gpu-1"])
        assert not harness.pods("collect-diagnostics")
        await harness.finish("reboot", REBOOTED)
        await until(lambda: harness.ended("gpu-1", "Recovered") and harness.ended("gpu-2", "Recovered"), 30)


async def test_a_fleet_of_no_nodes_has_budgets_of_nothing_and_the_first_node_that_comes_is_repaired(
    harness: ControllerHarness,
):
    await harness.client.delete(NODES, "system-1")
    await harness.policy(correlation={"nodes": 3})
    await harness.budget("pool", "10%")
    async with running(harness):
        await until(lambda: all(one.get("status", {}).get("total") == 0 for one in harness.all(BUDGETS)))
        assert [one["status"]["allowed"] for one in harness.all(BUDGETS)] == [0] * len(harness.all(BUDGETS))
        await harness.client.create(NODES, {"metadata": {"name": "system-1", "labels": {"role": "system"}}})
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        await harness.client.patch(NODES, "system-1", {"status": ready}, subresource="status")
        await harness.node("gpu-1", "True")
        await until(lambda: harness.ended("gpu-1", "Recovered"), 30)
