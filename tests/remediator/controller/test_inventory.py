"""A node that comes back with fewer GPUs than before its case has not recovered."""

import pytest

from tests.harness.controller import REBOOTED, Answer, running, until
from tests.harness.kinds import NODES

pytestmark = pytest.mark.sampled("inventory")

VERIFY = {"settle": "1s", "fresh": "1s", "timeout": "2s"}
GPU = "nvidia.com/gpu"


async def gpus(harness, count):
    """What the kubelet says of the GPUs of the node."""
    await harness.client.patch(NODES, "gpu-1", {"status": {"capacity": {GPU: str(count)}}}, subresource="status")


def reboots_into(*counts):
    """Reboots that cure the condition, after which the node has so many GPUs, one after the other."""
    left = list(counts)

    async def reboot(harness, node):
        await gpus(harness, left.pop(0))
        await REBOOTED.does(harness, node)

    return Answer(exit=137, does=reboot)


async def begin(harness, answer, **verify):
    """A node with 8 GPUs whose condition is bad."""
    await harness.policy(verify=VERIFY | verify)
    harness.answer("reboot", answer)
    await harness.node("gpu-1")
    await gpus(harness, 8)
    await harness.condition("gpu-1", "True")


async def test_a_node_with_fewer_gpus_than_before_goes_to_a_person_with_the_numbers(harness):
    await begin(harness, reboots_into(7, 7))
    async with running(harness):
        await until(lambda: harness.phase("gpu-1") == "Escalated")
        await harness.quiet()
    case = harness.cases("gpu-1")[0]
    assert case["spec"]["trigger"]["devices"] == {GPU: 8}
    assert [one["outcome"] for one in case["status"]["attempts"]] == ["Succeeded", "Succeeded"]
    assert case["status"]["message"].endswith("; gpu-1 has fewer devices than before: nvidia.com/gpu 7 of 8")
    assert "healthySince" not in case["status"], "nor is its release offered"


async def test_the_next_rung_may_bring_them_back(harness):
    await begin(harness, reboots_into(7, 8))
    async with running(harness):
        await until(lambda: harness.ended("gpu-1", "Recovered"))
    told = [entry["message"] for entry in harness.cases("gpu-1")[0]["status"]["timeline"]]
    wanted = "rung 1, attempt 2: reboot, since the node has fewer devices than before: nvidia.com/gpu 7 of 8"
    assert wanted in told


async def test_a_device_plugin_that_comes_back_late_is_waited_for(harness):
    await begin(harness, reboots_into(0), timeout="30s")
    async with running(harness):
        await until(lambda: harness.phase("gpu-1") == "Verifying")
        await harness.quiet()
        assert harness.phase("gpu-1") == "Verifying"
        await gpus(harness, 8)
        await until(lambda: harness.ended("gpu-1", "Recovered"))
    assert harness.ran.count("reboot gpu-1") == 1


async def test_where_the_policy_says_ignore_nobody_counts(harness):
    await begin(harness, reboots_into(7), inventory="Ignore")
    async with running(harness):
        await until(lambda: harness.ended("gpu-1", "Recovered"))
