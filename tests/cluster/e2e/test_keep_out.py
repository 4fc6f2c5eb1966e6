"""A user takes a node out of service and puts it back: emptied, counted, kept while the controller is away, told."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.cluster.e2e.stage import Stage
from tests.harness.kinds import CASES, EVENTS, OPERATIONS
from tests.harness.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(240)]
NODE = "gpu-17"
NODES = [NODE]


def terms(length: timedelta) -> dict[str, str]:
    return {"until": (datetime.now(UTC) + length).strftime("%Y-%m-%dT%H:%M:%SZ"), "reason": "OPS-17"}


async def case_with(stage: Stage, reason: str) -> dict[str, Any] | None:
    """The case of the node, where it says this."""
    cases = [case for case in await stage.client.list_all(CASES) if case["spec"]["nodeName"] == NODE]
    return next((case for case in cases if case.get("status", {}).get("reason") == reason), None)


async def told_once(stage: Stage) -> bool:
    reasons = [event["reason"] for event in await stage.client.list_all(EVENTS)]
    return reasons.count("TakeOutOverdue") == 1


async def unschedulable(stage: Stage) -> bool:
    return bool((await stage.node(NODE))["spec"].get("unschedulable"))


async def test_a_node_that_a_user_takes_out_stays_out_until_it_is_put_back_and_is_told_when_overdue(
    stage: Stage,
) -> None:
    await stage.start_controller()
    uid = (await stage.node(NODE))["metadata"]["uid"]
    spec = {"nodeName": NODE, "nodeUID": uid, "templateName": "drain", "keepOut": terms(timedelta(days=1))}
    asked = {"apiVersion": OPERATIONS.api_version, "kind": OPERATIONS.name, "metadata": {"name": "take-out-1"}}
    await stage.client.create(OPERATIONS, asked | {"spec": spec})
    case = await until(lambda: case_with(stage, "TakenOut"), 90)
    assert await unschedulable(stage)
    assert case["status"]["phase"] == "Escalated"
    assert "OPS-17; give it back with: remediator put-back gpu-17" in case["status"]["message"]

    name = case["metadata"]["name"]
    await stage.client.patch(CASES, name, {"spec": {"keepOut": terms(timedelta(seconds=2))}})
    await until(lambda: case_with(stage, "TakeOutOverdue"), 60)
    assert await unschedulable(stage)
    await until(lambda: told_once(stage), 30)
    assert "overdue by" in await stage.explain(NODE)

    await stage.client.patch(CASES, name, {"spec": {"release": True}})
    await until(lambda: case_with(stage, "ReleasedByUser"), 60)

    async def works() -> bool:
        return not await unschedulable(stage)

    await until(works, 60)
    assert not stage.machines[NODE].reboots()
