"""A policy that asks for spare GPUs: a node is taken only where what it runs on GPUs would fit elsewhere."""

from remediator_sim.plain import PODS
from tests.harness.controller import RUNS, running, until
from tests.harness.kinds import NODES

REASON = "NotEnoughSpareGpus"


async def gpus(harness, node: str, used: int, gpu: str = "False") -> None:
    """A node with 8 GPUs, of which one Pod holds so many."""
    await harness.node(node, gpu)
    await harness.client.patch(NODES, node, {"status": {"allocatable": {"nvidia.com/gpu": "8"}}}, subresource="status")
    if used:
        resources = {"limits": {"nvidia.com/gpu": str(used)}}
        spec = {"nodeName": node, "containers": [{"name": "main", "image": "train", "resources": resources}]}
        await harness.client.create(PODS, {"metadata": {"name": f"train-{node}"}, "spec": spec}, namespace="default")


async def test_a_node_whose_pods_fit_nowhere_waits_until_gpus_are_free(harness) -> None:
    await gpus(harness, "gpu-1", 8, "True")
    await gpus(harness, "gpu-2", 1)
    await harness.policy(requireSpareGPUs=True)
    async with running(harness):
        await until(lambda: harness.reasons("gpu-1") == [REASON])
        (block,) = harness.cases("gpu-1")[0]["status"]["blockedBy"]
        assert block["message"].startswith("0 of the 1 Pods with GPUs on gpu-1 fit elsewhere; no other node that would")
        assert (harness.taints("gpu-1"), harness.ran) == ([], [])
        ended = {"status": {"phase": "Succeeded"}}
        await harness.client.patch(PODS, "train-gpu-2", ended, namespace="default", subresource="status")
        await harness.quiet()
        await harness.change(NODES, "gpu-1", metadata={"labels": {"looked": "at"}})
        await until(lambda: harness.taints("gpu-1") == ["remediator.dev/case"])


async def test_a_policy_that_does_not_ask_takes_the_node_at_once(harness) -> None:
    await gpus(harness, "gpu-1", 8, "True")
    await harness.policy()
    async with running(harness):
        await until(lambda: harness.taints("gpu-1") == ["remediator.dev/case"])


async def test_free_gpus_are_promised_to_one_node_until_its_pods_are_gone(harness) -> None:
    """Two full nodes fall sick one after the other; the third has room for the Pods of one. The drain of the first
    goes on.
    """
    await gpus(harness, "gpu-1", 8, "True")
    await gpus(harness, "gpu-2", 8)
    await gpus(harness, "gpu-3", 0)
    await harness.budget("all", 100)
    await harness.policy(requireSpareGPUs=True)
    harness.answer("drain", RUNS)
    async with running(harness):
        await until(lambda: harness.phase("gpu-1") == "Draining")
        await harness.condition("gpu-2", "True")
        await until(lambda: harness.reasons("gpu-2") == [REASON])
        assert "remediator.dev/case" not in harness.taints("gpu-2")
        ended = {"status": {"phase": "Succeeded"}}
        await harness.client.patch(PODS, "train-gpu-1", ended, namespace="default", subresource="status")
        await harness.quiet()
        await harness.change(NODES, "gpu-2", metadata={"labels": {"looked": "at"}})
        await until(lambda: "remediator.dev/case" in harness.taints("gpu-2"))
