"""The label of nodes with GPUs, by which policies select nodes on a cluster without GPU feature discovery."""

from datetime import timedelta

import pytest

from remediator.core.gpu_label import DISCOVERED
from remediator.core.names import GPU_PRESENT
from tests.harness.controller import controller_harness, now, running, stamp, until
from tests.harness.kinds import INVENTORIES, NODES
from tests.remediator.controller.node_conditions.test_inventories import count, learnt

pytestmark = pytest.mark.sampled("gpu labels")


@pytest.fixture
async def harness():
    async with controller_harness() as harness:
        yield harness


def label(harness, node="gpu-1"):
    return harness.look(node)["metadata"].get("labels", {}).get(GPU_PRESENT)


async def relabel(harness, node, **labels):
    names = {"discovered": DISCOVERED, "ours": GPU_PRESENT}
    await harness.change(NODES, node, metadata={"labels": {names[key]: value for key, value in labels.items()}})


async def test_a_policy_on_gpus_selects_a_node_that_only_detectors_know_and_keeps_one_that_has_lost_all(harness):
    await harness.policy(nodeSelector={"matchLabels": {GPU_PRESENT: "true"}}, mode="DryRun")
    for node in ("gpu-1", "cpu-1"):
        await harness.node(node)
    await count(harness, "gpu-1", "gpus=8")
    await count(harness, "cpu-1", "gpus=0")
    async with running(harness):
        await until(lambda: label(harness) == "true")
        await count(harness, "gpu-1", "gpus=0")
        for node in ("gpu-1", "cpu-1"):
            await harness.condition(node, "True")
        await until(lambda: harness.cases("gpu-1"))
        await harness.quiet()
        assert (label(harness), label(harness, "cpu-1"), harness.cases("cpu-1")) == ("true", None, [])


async def test_nodes_of_gpu_feature_discovery_have_it_from_the_first_minute_and_keep_it(harness):
    await harness.node("gpu-1")
    await relabel(harness, "gpu-1", discovered="true")
    async with running(harness):
        await until(lambda: label(harness) == "true")
        await relabel(harness, "gpu-1", discovered="false")
        await harness.quiet()
        assert label(harness) == "true"
        await relabel(harness, "gpu-1", discovered="true", ours=None)
        await until(lambda: label(harness) == "true")
        await relabel(harness, "gpu-1", ours="false")
        await harness.quiet()
        assert label(harness) == "false", "a user has decided"


async def test_it_is_taken_back_once_a_user_says_that_the_gpus_are_gone_for_good(harness):
    for node in ("gpu-1", "gpu-2"):
        await harness.node(node)
        await count(harness, node, "gpus=8")
    async with running(harness):
        await until(lambda: label(harness) == label(harness, "gpu-2") == "true")
        await until(lambda: learnt(harness) == learnt(harness, "gpu-2") == {"gpus": 8})
        for node in ("gpu-1", "gpu-2"):
            await count(harness, node, "gpus=0")
        await harness.change(INVENTORIES, "gpu-1", spec={"nodeName": "gpu-1", "expected": {"gpus": 0}})
        soon = stamp(now() + timedelta(seconds=1))
        await harness.change(INVENTORIES, "gpu-2", spec={"nodeName": "gpu-2", "forgetBefore": soon})
        await until(lambda: label(harness) is None and label(harness, "gpu-2") is None)
        await count(harness, "gpu-2", "gpus=4")
        await until(lambda: label(harness, "gpu-2") == "true")
