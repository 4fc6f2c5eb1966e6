"""GpuDeviceTainted: taints of ResourceSlices become a Condition, and policies act on it as on any other."""

import pytest

from remediator.core.devices import CONDITION
from remediator.kube.api import devices
from tests.harness.controller import controller_harness, running, until
from tests.harness.kinds import POLICIES, plain

SLICES = plain(devices.RESOURCE_SLICE)
TAINT = {"key": "gpu.nvidia.com/xid", "value": "79", "effect": "NoSchedule"}
ASKS = {"when": [{"condition": CONDITION, "for": "0s"}]}


@pytest.fixture
async def harness():
    async with controller_harness() as harness:
        yield harness


def spec(node, *taints, generation=1):
    """One slice of two GPUs, the second with these taints."""
    attributes = {"gpu.nvidia.com/uuid": {"string": "GPU-9f3c01ab"}, "index": {"int": 1}}
    gpus = [{"name": "gpu-0"}, {"name": "gpu-1", "attributes": attributes, "taints": list(taints)}]
    pool = {"name": node, "generation": generation, "resourceSliceCount": 1}
    return {"driver": "gpu.nvidia.com", "nodeName": node, "pool": pool, "devices": gpus}


async def publish(harness, node, *taints):
    await harness.client.create(SLICES, {"metadata": {"name": f"slice-{node}"}, "spec": spec(node, *taints)})


async def change(harness, node, *taints):
    await harness.change(SLICES, f"slice-{node}", spec=spec(node, *taints, generation=2))


def condition(harness, node):
    """Status, reason and message; None where nothing is said."""
    conditions = harness.look(node)["status"]["conditions"]
    ours = next((one for one in conditions if one["type"] == CONDITION), None)
    return ours and (ours["status"], ours["reason"], ours["message"])


async def test_a_tainted_gpu_is_a_condition_of_its_node_and_opens_a_case(harness):
    await harness.policy("gpu-device-tainted", **ASKS)
    await harness.node("gpu-1")
    await publish(harness, "gpu-1")
    async with running(harness, device_taints=True):
        await until(lambda: condition(harness, "gpu-1"))
        assert condition(harness, "gpu-1")[:2] == ("False", "NoDeviceTaint")
        await change(harness, "gpu-1", TAINT)
        case = await until(lambda: next(iter(harness.cases("gpu-1")), None))
        assert condition(harness, "gpu-1") == (
            "True",
            "gpu.nvidia.com/xid",
            "gpu-1 (GPU-9f3c01ab) gpu.nvidia.com/xid=79:NoSchedule",
        )
        assert case["spec"]["trigger"]["reason"] == "gpu.nvidia.com/xid"
        await change(harness, "gpu-1")
        await until(lambda: condition(harness, "gpu-1")[0] == "False")
        await until(lambda: harness.ended("gpu-1", "Recovered"))


async def test_where_no_policy_asks_nothing_is_written_until_one_does(harness):
    await harness.node("gpu-1")
    await publish(harness, "gpu-1", TAINT)
    async with running(harness, device_taints=True):
        await harness.policy("gpu-lost")
        await harness.quiet()
        assert condition(harness, "gpu-1") is None
        await harness.change(POLICIES, "gpu-lost", spec={"mode": "DryRun"} | ASKS)
        await until(lambda: condition(harness, "gpu-1"))


async def test_a_node_without_gpus_of_dra_is_left_alone_and_one_that_loses_its_driver_proves_nothing(harness):
    await harness.policy("gpu-device-tainted", mode="DryRun", **ASKS)
    await harness.node("gpu-1")
    await harness.node("gpu-2")
    await publish(harness, "gpu-1", TAINT)
    async with running(harness, device_taints=True):
        await until(lambda: condition(harness, "gpu-1"))
        await harness.client.delete(SLICES, "slice-gpu-1")
        await until(lambda: condition(harness, "gpu-1")[:2] == ("Unknown", "NoResourceSlice"))
    assert condition(harness, "gpu-2") is None


async def test_without_the_setting_nobody_watches(harness):
    await harness.policy("gpu-device-tainted", mode="DryRun", **ASKS)
    await harness.node("gpu-1")
    await publish(harness, "gpu-1", TAINT)
    async with running(harness):
        await harness.quiet()
    assert condition(harness, "gpu-1") is None
