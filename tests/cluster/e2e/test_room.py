"""Two nodes and two limits: a case waits for GPUs elsewhere, the other one for a place in quarantine."""

import json
from typing import Any

import pytest

from tests.cluster import REAL
from tests.cluster.e2e.stage import Stage
from tests.harness.kinds import BUDGETS, PODS, TEMPLATES
from tests.harness.objects import DECLARED
from tests.harness.waiting import until

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.timeout(240),
    pytest.mark.parametrize("stage", [REAL], ids=["real"], indirect=True),
]
FIRST, SECOND = NODES = ["gpu-17", "gpu-18"]
BUDGET = "one-in-quarantine"
IN_VAIN = [{"operation": "run-command", "attempts": 1}]


async def test_a_node_waits_for_spare_gpus_and_the_next_until_the_first_has_left_quarantine_by_itself(
    stage: Stage,
) -> None:
    await prepare(stage)
    await stage.start_controller()
    stage.machines[FIRST].lose_gpu()
    message = await until(lambda: held(stage, FIRST, "NotEnoughSpareGpus"), 60)
    assert message.startswith(f"0 of the 1 Pods with GPUs on {FIRST} fit elsewhere; no other node that would")
    assert not (await stage.node(FIRST))["spec"].get("unschedulable")

    await stage.client.delete(PODS, f"work-{SECOND}", namespace=stage.workloads[SECOND].space)
    case = await until(lambda: stage.case(FIRST, "Escalated"), 60)
    assert [attempt["outcome"] for attempt in case["status"]["attempts"]] == ["Failed"]
    assert f"work-{FIRST}" not in await stage.workloads[FIRST].pods()

    stage.machines[SECOND].lose_gpu()
    message = await until(lambda: held(stage, SECOND, "QuarantineFull"), 60)
    assert message.startswith(f"budget {BUDGET}: 1 of 1 quarantined ({FIRST}); repair the quarantined nodes")
    assert not (await stage.node(SECOND))["spec"].get("unschedulable")

    stage.machines[FIRST].node.orders()
    case = await until(lambda: stage.over(FIRST), 60)
    assert case["status"]["timeline"][-1]["reason"] == "ReleasedHealthy"
    assert not (await stage.node(FIRST))["spec"].get("unschedulable")
    await until(lambda: stage.case(SECOND, "Escalated"), 60)
    await until(lambda: quarantined(stage), 30)


async def prepare(stage: Stage) -> None:
    """Each node runs a Pod on its 8 GPUs, placed by the scheduler; the one rung of the policy cures nothing."""
    spec: dict[str, Any] = {"requireSpareGPUs": True, "escalation": {"release": "WhenHealthy"}, "ladder": IN_VAIN}
    spec |= {"verify": {"probe": None}, "relapse": None}
    await stage.kubectl("patch", "rp", "gpu-lost", "--type", "merge", "-p", json.dumps({"spec": spec}))
    template = (await stage.client.get(TEMPLATES, "run-command"))["spec"]["podTemplate"]
    template["spec"]["containers"][0]["env"] = [{"name": "COMMAND", "value": '["/bin/false"]'}]
    await stage.client.patch(TEMPLATES, "run-command", {"spec": {"podTemplate": template}})
    budget = {"selector": {"matchLabels": {"team": "blue"}}, "maxUnavailable": 2, "maxQuarantined": 1}
    head = {"apiVersion": f"{BUDGETS.group}/{BUDGETS.version}", "kind": BUDGETS.name, "metadata": {"name": BUDGET}}
    await stage.client.create(BUDGETS, head | {"spec": budget})
    for node, workload in stage.workloads.items():
        await stage.client.create(PODS, eight_gpus(node), namespace=workload.space)
    for node in NODES:
        await until(lambda node=node: runs(stage, node), 30)


def eight_gpus(node: str) -> dict[str, Any]:
    """All GPUs of the node."""
    container = {"name": "main", "image": "team/app:1", "resources": {"limits": {"nvidia.com/gpu": "8"}}}
    spec = {"nodeSelector": {"kubernetes.io/hostname": node}, "serviceAccountName": "app", "containers": [container]}
    meta = {"name": f"work-{node}", "annotations": DECLARED}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec | {"terminationGracePeriodSeconds": 1}}


async def runs(stage: Stage, node: str) -> bool:
    pod = await stage.client.get(PODS, f"work-{node}", namespace=stage.workloads[node].space)
    return bool(pod.get("status", {}).get("phase") == "Running")


async def held(stage: Stage, node: str, reason: str) -> str:
    """What is said of the only thing that holds the node's case, once it is this one."""
    case = await stage.case(node, "Held")
    blocks = (case or {}).get("status", {}).get("blockedBy", ())
    return str(blocks[0]["message"]) if [block["reason"] for block in blocks] == [reason] else ""


async def quarantined(stage: Stage) -> bool:
    """Whether the second node, and it alone, stands in the ledger, in quarantine."""
    claims = (await stage.client.get(BUDGETS, BUDGET))["status"]["claims"]
    return [(claim["node"], claim.get("quarantined")) for claim in claims] == [(SECOND, True)]
