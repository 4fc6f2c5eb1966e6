"""A kubelet may make mirror Pods in any namespace, with names and labels as it likes: none of them is ever ours."""

from datetime import timedelta

import pytest

from remediator.controller import pods
from remediator.core import names
from tests.harness.controller import DONE, OPERATIONS, REBOOTED, RUNS, SYSTEM, ControllerHarness, running, until
from tests.harness.kinds import BUDGETS, PODS, TEMPLATES
from tests.harness.kinds import OPERATIONS as NODE_OPERATIONS

pytestmark = pytest.mark.sampled("mirror pods")


async def _mirror_pod(harness: ControllerHarness, name: str, namespace: str = OPERATIONS, **labels: str) -> None:
    """What the kubelet of the node evil shows of a file there; it runs as the harness answers for `forged`."""
    metadata = {
        "name": name,
        "labels": {names.OPERATION_LABEL: "forged", **labels},
        "annotations": {"kubernetes.io/config.mirror": "0123456789abcdef"},
    }
    env = [{"name": "NODE_NAME", "value": "evil"}]
    spec = {"nodeName": "evil", "containers": [{"name": "main", "image": "x", "env": env}]}
    await harness.client.create(PODS, {"metadata": metadata, "spec": spec}, namespace=namespace)


async def test_a_mirror_pod_with_the_label_of_a_case_holds_neither_its_node_nor_the_budget(harness):
    harness.answer("forged", RUNS)
    harness.answer("reboot", RUNS)
    await harness.policy()
    await harness.budget("all", 1)
    for node, gpu in (("gpu-1", "True"), ("gpu-2", "False"), ("evil", "False")):
        await harness.node(node, gpu)
    async with running(harness):
        await until(lambda: "reboot gpu-1" in harness.ran)
        await _mirror_pod(harness, "forged", **{names.CASE_UID_LABEL: harness.cases("gpu-1")[0]["metadata"]["uid"]})
        await until(lambda: "forged evil" in harness.ran)
        harness.answer("reboot", REBOOTED)
        await harness.finish("reboot", REBOOTED)
        await until(lambda: harness.phase("gpu-1") == "Recovered" and not harness.taints("gpu-1"))
        await harness.condition("gpu-2", "True")
        await until(lambda: harness.phase("gpu-2") == "Recovered" and not harness.claims())
        left = [pod["metadata"] for pod in harness.pods()]
        assert [(meta["name"], meta.get("deletionTimestamp")) for meta in left] == [("forged", None)]


async def test_a_mirror_pod_under_the_name_of_an_operations_pod_is_no_result_and_the_operation_times_out(harness):
    harness.answer("forged", DONE)
    harness.answer(names.DRAIN_TEMPLATE, RUNS)
    await harness.template("mend", drain={"strategy": "Evict", "timeout": "30s"}, timeout="2s")
    await harness.policy(ladder=[{"operation": "mend", "attempts": 1}])
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: f"{names.DRAIN_TEMPLATE} gpu-1" in harness.ran)
        meta = harness.all(NODE_OPERATIONS)[0]["metadata"]
        labels = {names.CASE_UID_LABEL: harness.cases("gpu-1")[0]["metadata"]["uid"]}
        name = names.name("gpu-1", "mend", meta["uid"])
        await _mirror_pod(harness, name, **labels, **{names.OPERATION_UID_LABEL: meta["uid"]})
        await until(lambda: "forged evil" in harness.ran)
        await harness.finish(names.DRAIN_TEMPLATE)
        await until(lambda: harness.phase("gpu-1") == "Escalated")
    status = harness.all(NODE_OPERATIONS)[0]["status"]
    assert (status.get("pod"), status["phase"], status["reason"]) == (None, "Failed", "TimedOut")
    assert [ran for ran in harness.ran if ran.startswith("mend")] == []


async def test_a_mirror_pod_under_the_name_of_the_pod_that_collects_evidence_is_no_evidence(harness, monkeypatch):
    monkeypatch.setattr(pods, "START_GRACE", timedelta(0))
    await harness.change(TEMPLATES, names.DIAGNOSTICS_TEMPLATE, spec={"timeout": "1s"})
    await harness.policy()
    await harness.budget("all", 0)
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: harness.reasons("gpu-1"))
        uid = harness.cases("gpu-1")[0]["metadata"]["uid"]
        name = names.name("gpu-1", names.DIAGNOSTICS_TEMPLATE, uid)
        labels = {names.CASE_UID_LABEL: uid, names.OPERATION_LABEL: names.DIAGNOSTICS_TEMPLATE}
        await _mirror_pod(harness, name, **labels)
        await until(lambda: f"{names.DIAGNOSTICS_TEMPLATE} evil" in harness.ran)
        await harness.change(BUDGETS, "all", spec={"maxUnavailable": 1})
        await until(lambda: harness.phase("gpu-1") == "Recovered")
    assert "DiagnosisFailed" in harness.story("gpu-1")
    assert "evidence" not in harness.cases("gpu-1")[0]["status"]


async def test_a_mirror_pod_that_looks_like_a_ready_replica_of_ours_leaves_the_last_one_the_last(harness):
    labels = dict(label.split("=") for label in names.CONTROLLER_LABELS.split(","))
    await _mirror_pod(harness, "forged", SYSTEM, **labels)
    spec = {"nodeName": "gpu-1", "containers": [{"name": "controller", "image": "controller"}]}
    metadata = {"name": "replica", "labels": labels}
    await harness.client.create(PODS, {"metadata": metadata, "spec": spec}, namespace=SYSTEM)
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    for name in ("forged", "replica"):
        await harness.client.patch(PODS, name, {"status": ready}, namespace=SYSTEM, subresource="status")
    await harness.policy()
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: harness.reasons("gpu-1") == ["HostsController"])
