"""A gang on two nodes: the case of one of them shows all of it, waits above its policy's limit, and is approved."""

import json
from typing import Any

import pytest

from tests.cluster.e2e.stage import SYSTEM, Stage
from tests.harness.kinds import PODS
from tests.harness.objects import DECLARED
from tests.harness.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180)]
NODE = "gpu-17"
NODES = [NODE]
GANG = {"jobset.sigs.k8s.io/jobset-name": "train"}


async def test_a_case_that_would_end_a_gang_of_6_gpus_waits_for_an_approval(stage: Stage) -> None:
    machine, workload = stage.machines[NODE], stage.workloads[NODE]
    for name, node, gpus in (("train-0", NODE, 2), ("train-1", SYSTEM, 4)):
        await stage.client.create(PODS, member(name, node, gpus), namespace=workload.space)
    await until(lambda: started(stage, workload.space, "train-0"), 30)
    limit = {"spec": {"maxBlastRadius": {"jobs": 0, "gpuHours": 500}}}
    await stage.kubectl("patch", "rp", "gpu-lost", "--type", "merge", "-p", json.dumps(limit))
    await stage.start_controller()
    machine.lose_gpu()

    case = await until(lambda: held(stage), 30)
    job = f"JobSet {workload.space}/train: 2 of its 6 GPUs here, since "
    (block,) = case["status"]["blockedBy"]
    assert block["message"].startswith(f"1 job on 6 GPUs, 1 GPU-hour ({job}")
    radius = case["status"]["blastRadius"]
    assert [radius[key] for key in ("pods", "gpusOnNode", "jobs", "gpus", "gpuHours")] == [1, 2, 1, 6, 1]
    assert not (await stage.node(NODE))["spec"].get("unschedulable")
    assert f"its start would end: 1 job on 6 GPUs, 1 GPU-hour ({job}" in " ".join((await stage.explain(NODE)).split())
    assert machine.reboots() == []

    approval = json.dumps({"spec": {"approved": True, "approvedBy": "kubernetes-admin"}})
    await stage.kubectl("patch", "nr", case["metadata"]["name"], "--type", "merge", "-p", approval)
    case = await until(lambda: stage.over(NODE), 90)
    assert case["status"]["phase"] == "Recovered"
    assert case["status"]["blastRadius"]["gpus"] == 6, "what has gone is still to be read"
    assert len(machine.reboots()) == 1


def member(name: str, node: str, gpus: int) -> dict[str, Any]:
    """One Pod of the gang."""
    resources = {"limits": {"nvidia.com/gpu": str(gpus)}}
    container = {"name": "main", "image": "team/app:1", "command": ["sleep", "infinity"], "resources": resources}
    spec = {"nodeName": node, "serviceAccountName": "app", "terminationGracePeriodSeconds": 1}
    meta = {"name": name, "labels": GANG, "annotations": DECLARED}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec | {"containers": [container]}}


async def started(stage: Stage, namespace: str, name: str) -> bool:
    return bool((await stage.client.get(PODS, name, namespace=namespace)).get("status", {}).get("startTime"))


async def held(stage: Stage) -> dict[str, Any] | None:
    """The node's case, once it waits for nothing but an approval of what it would end."""
    case = await stage.case(NODE, "Held")
    reasons = [block["reason"] for block in (case or {}).get("status", {}).get("blockedBy", ())]
    return case if reasons == ["BlastRadius"] else None
