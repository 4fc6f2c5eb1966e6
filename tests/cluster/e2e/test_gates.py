"""One case that waits for a window, then for an approval, then for the Pods on its node to end."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from remediator.core import names
from tests.cluster.e2e.stage import Stage
from tests.harness.kinds import BUDGETS, PODS
from tests.harness.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180)]
NODE = "gpu-17"
NODES = [NODE]


async def test_a_case_waits_for_its_window_an_approval_and_an_idle_node(stage: Stage) -> None:
    machine, workload = stage.machines[NODE], stage.workloads[NODE]
    opens = datetime.now(UTC) + timedelta(hours=2)
    closed = {"cron": f"{opens.minute} {opens.hour} * * *", "duration": "1h", "timeZone": "UTC"}
    await edit(stage, windows=[closed], approval="Required", urgency={"mode": "WhenIdle", "deadline": "1h"})
    await stage.start_controller()
    machine.lose_gpu()

    held = await until(lambda: waits_for(stage, "ApprovalNeeded", "OutsideWindow"), 30)
    assert held["OutsideWindow"]["until"][11:16] == f"{opens:%H:%M}"
    await edit(stage, windows=[closed, {"cron": "* * * * *", "duration": "2m", "timeZone": "Asia/Tokyo"}])
    await until(lambda: waits_for(stage, "ApprovalNeeded"), 30)
    assert not (await stage.node(NODE))["spec"].get("unschedulable")
    assert (await stage.client.get(BUDGETS, names.DEFAULT_BUDGET))["status"].get("claims", []) == []

    case = await stage.case(NODE, "Held")
    approval = json.dumps({"spec": {"approved": True, "approvedBy": "kubernetes-admin"}})
    await stage.kubectl("patch", "nr", case["metadata"]["name"], "--type", "merge", "-p", approval)
    held = await until(lambda: waits_for(stage, "WaitingForIdle"), 30)
    named = ", ".join(f"{workload.space}/{name}" for name in workload.apps)
    assert held["WaitingForIdle"]["message"].startswith(f"2 Pods work on {NODE} ({named}); ")
    assert (await stage.node(NODE))["spec"]["unschedulable"] is True, "no new Pod comes"
    explained = await stage.explain(NODE)
    assert f"held: WaitingForIdle: 2 Pods work on {NODE}" in " ".join(explained.split())
    assert machine.reboots() == []

    for name in workload.apps:
        await stage.client.delete(PODS, name, namespace=workload.space)
    case = await until(lambda: stage.over(NODE), 90)
    assert case["status"]["phase"] == "Recovered"
    steps = ("ApprovalNeeded", "Claimed", "WaitingForIdle", "OperationStarted")
    told = [entry["reason"] for entry in case["status"]["timeline"] if entry["reason"] in steps]
    assert tuple(dict.fromkeys(told)) == steps
    assert len(machine.reboots()) == 1


async def edit(stage: Stage, **spec: object) -> None:
    await stage.kubectl("patch", "rp", "gpu-lost", "--type", "merge", "-p", json.dumps({"spec": spec}))


async def waits_for(stage: Stage, *reasons: str) -> dict[str, dict] | None:
    """What holds the node's case, by reason, where it is these and no others."""
    case = await stage.case(NODE, "Held", "Draining")
    blocks = {one["reason"]: one for one in (case or {}).get("status", {}).get("blockedBy", ())}
    return blocks if set(blocks) == set(reasons) else None
