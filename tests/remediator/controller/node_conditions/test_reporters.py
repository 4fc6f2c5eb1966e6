"""ReportedBy/PODS: a Condition that is written only on change is believed while a Pod of its writers is Ready."""

import pytest

from tests.harness.controller import controller_harness, running, until
from tests.harness.kinds import PODS, POLICIES

FOREIGN, SIGN = "AcceleratedHardwareReady", "ReportedBy/kube-system/app=agent"
BY = {"namespace": "kube-system", "matchLabels": {"app": "agent"}}
ASKS = {"when": [{"condition": FOREIGN, "status": "False", "for": "0s", "staleAfter": "0s", "reportedBy": BY}]}

AWAY = "no Pod of kube-system/app=agent is Ready that speaks for this node"
NOBODY = "no Pod of kube-system/app=agent exists: see whether the namespace and the labels are right"


@pytest.fixture
async def harness():
    async with controller_harness() as harness:
        yield harness


async def agent(harness, node, owner="DaemonSet", ready="True"):
    """A Pod of the agent."""
    owners = [{"apiVersion": "apps/v1", "kind": owner, "name": "agent", "uid": "u", "controller": True}]
    meta = {"name": f"agent-{node}", "labels": BY["matchLabels"], "ownerReferences": owners}
    spec = {"nodeName": node, "containers": [{"name": "agent", "image": "x"}]}
    await harness.client.create(PODS, {"metadata": meta, "spec": spec}, namespace=BY["namespace"])
    await is_ready(harness, node, ready)


async def is_ready(harness, node, ready):
    body = {"status": {"conditions": [{"type": "Ready", "status": ready}]}}
    await harness.client.patch(PODS, f"agent-{node}", body, namespace=BY["namespace"], subresource="status")


def says(harness, node):
    """The status and the message of our Condition; None where nothing is said."""
    conditions = harness.look(node)["status"]["conditions"]
    return next(((one["status"], one["message"]) for one in conditions if one["type"] == SIGN), None)


async def test_a_fault_of_a_foreign_detector_opens_a_case_once_its_pod_on_the_node_is_ready(harness):
    await harness.policy("eks", mode="DryRun", **ASKS)
    for node in ("gpu-1", "gpu-2"):
        await harness.node(node)
        await harness.condition(node, "False", FOREIGN)
    await agent(harness, "gpu-1", ready="False")
    await agent(harness, "gpu-2")
    async with running(harness):
        await until(lambda: harness.cases("gpu-2"))
        await until(lambda: says(harness, "gpu-1"))
        assert says(harness, "gpu-2") == ("True", "a Pod of kube-system/app=agent on this node is Ready")
        assert says(harness, "gpu-1")[0] == "False"
        assert harness.cases("gpu-1") == []
        await is_ready(harness, "gpu-1", "True")
        await until(lambda: harness.cases("gpu-1"))


async def test_a_pod_of_a_deployment_speaks_for_every_node_until_it_goes(harness):
    await harness.policy("eks", mode="DryRun", **ASKS)
    await harness.node("gpu-1")
    await agent(harness, "gpu-9", owner="ReplicaSet")
    async with running(harness):
        await until(lambda: says(harness, "gpu-1") == ("True", "a Pod of kube-system/app=agent is Ready"))
        await harness.client.delete(PODS, "agent-gpu-9", namespace=BY["namespace"])
        await until(lambda: says(harness, "gpu-1")[0] == "False")


async def test_a_copy_with_the_labels_of_a_daemon_set_speaks_for_no_node(harness):
    """As `kubectl debug --copy-to --keep-labels` makes one, or a Deployment of the same chart."""
    await harness.policy("eks", mode="DryRun", **ASKS)
    await harness.node("gpu-1")
    await agent(harness, "gpu-1", ready="False")
    await agent(harness, "gpu-9", owner="ReplicaSet")
    async with running(harness):
        await until(lambda: says(harness, "gpu-1"))
        assert says(harness, "gpu-1") == ("False", AWAY)


@pytest.mark.parametrize("entry", [ASKS["when"][0], {"noReadyPod": BY, "for": "0s"}], ids=["reportedBy", "noReadyPod"])
async def test_pods_that_nobody_has_are_no_fault_of_a_node_and_the_policy_that_names_them_says_so(
    harness, monkeypatch, entry
):
    monkeypatch.setattr("remediator.controller.reconcile.policy.LOOK_AGAIN", 0.1)
    await harness.policy("eks", mode="DryRun", when=[entry])
    for node in ("gpu-1", "gpu-2"):
        await harness.node(node)
        await harness.condition(node, "False", FOREIGN)
    async with running(harness):
        ready = await until(lambda: of_policy(harness, "NoReporterPod"))
        assert ready["message"] == NOBODY
        await until(lambda: says(harness, "gpu-1") == says(harness, "gpu-2") == ("Unknown", NOBODY))
        assert harness.cases("gpu-1") == harness.cases("gpu-2") == []
        await agent(harness, "gpu-1")
        await until(lambda: of_policy(harness, "Ready"))


async def of_policy(harness, reason):
    """The Ready condition of the policy once it has this reason."""
    conditions = (await harness.client.get(POLICIES, "eks")).get("status", {}).get("conditions", [])
    return next((condition for condition in conditions if condition["reason"] == reason), None)


async def test_nobody_is_watched_until_a_policy_names_them_and_no_longer(harness):
    await harness.policy("gpu-lost", mode="DryRun")
    await harness.node("gpu-1")
    await agent(harness, "gpu-1")
    async with running(harness):
        await harness.quiet()
        assert says(harness, "gpu-1") is None
        await harness.change(POLICIES, "gpu-lost", spec=ASKS)
        await until(lambda: says(harness, "gpu-1"))
        await harness.change(POLICIES, "gpu-lost", spec={"when": [{"condition": "GpuLost", "reportedBy": None}]})
        before = says(harness, "gpu-1")
        await is_ready(harness, "gpu-1", "False")
        await harness.quiet()
        assert says(harness, "gpu-1") == before == ("True", "a Pod of kube-system/app=agent on this node is Ready")
