"""Remediator is taken away while one node waits for a person and another one is drained: both are given back first."""

import json
from typing import Any

import pytest

from remediator.core import names
from tests.cluster import REAL
from tests.cluster.e2e.case_run import settled
from tests.cluster.e2e.stage import RESERVED, TEAM, Stage
from tests.harness.kinds import BUDGETS, CASES, EVENTS, NAMESPACES, OPERATIONS, TEMPLATES
from tests.harness.waiting import until

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.timeout(240),
    pytest.mark.parametrize("stage", [REAL], ids=["real"], indirect=True),
]
BROKEN, DRAINED = NODES = ["gpu-17", "gpu-18"]
IN_VAIN = {"ladder": [{"operation": "run-command", "attempts": 1}], "verify": {"probe": None}, "relapse": None}
DONE = "no case is open, and no node is kept by a mark of ours: take Remediator away now (docs/uninstall.md)"


async def test_a_node_in_quarantine_and_one_that_is_drained_are_given_back_before_remediator_goes(
    stage: Stage,
) -> None:
    await prepare(stage)
    await stage.start_controller()
    for node in NODES:
        stage.machines[node].lose_gpu()
    broken = await until(lambda: stage.case(BROKEN, "Escalated"), 60)
    drained = await until(lambda: drain_waits(stage), 60)
    before = await stage.workloads[DRAINED].pods()
    try:
        said = await uninstalled(stage)
    finally:
        await stage.kubectl("annotate", "namespace", names.SYSTEM_NAMESPACE, f"{names.PAUSED}-")
        await stage.kubectl("delete", "ndb", "both")
    for node, case in ((BROKEN, broken), (DRAINED, drained)):
        assert f"cancelled case {case['metadata']['name']} on {node}" in said
        await given_back(stage, node, case)
    assert said[-1] == DONE
    assert await stage.workloads[DRAINED].pods() == before, "what was drained and not yet gone stays"
    assert await settled(stage)
    assert [machine.reboots() for machine in stage.machines.values()] == [[], []]


async def prepare(stage: Stage) -> None:
    """The one rung of the policy cures nothing; both nodes may be out at once, and Pods of one may not go."""
    await stage.kubectl("patch", "rp", "gpu-lost", "--type", "merge", "-p", json.dumps({"spec": IN_VAIN}))
    template = (await stage.client.get(TEMPLATES, "run-command"))["spec"]["podTemplate"]
    template["spec"]["containers"][0]["env"] = [{"name": "COMMAND", "value": '["/bin/false"]'}]
    await stage.client.patch(TEMPLATES, "run-command", {"spec": {"podTemplate": template}})
    head = {"apiVersion": BUDGETS.api_version, "kind": BUDGETS.name, "metadata": {"name": "both"}}
    await stage.client.create(BUDGETS, head | {"spec": {"selector": {"matchLabels": TEAM}, "maxUnavailable": 2}})
    await stage.workloads[DRAINED].allow(0)


async def drain_waits(stage: Stage) -> dict[str, Any] | None:
    """The case of the second node, once its drain has named both Pods that it waits for."""
    drains = [one.get("status", {}).get("drain", {}) for one in await stage.of_node(OPERATIONS, DRAINED)]
    waits = any(len(drain.get("blocked", ())) == 2 for drain in drains)
    return await stage.case(DRAINED, "Draining") if waits else None


async def uninstalled(stage: Stage) -> list[str]:
    """What the command says, line by line; everything new is paused then."""
    program = await stage.command("uninstall", "--yes", "--give-back-broken")
    assert await program.ended(120) == 0, program.written()
    namespace = await stage.client.get(NAMESPACES, names.SYSTEM_NAMESPACE)
    assert namespace["metadata"]["annotations"][names.PAUSED] == names.LEAVING
    return program.written().splitlines()


async def given_back(stage: Stage, node: str, case: dict[str, Any]) -> None:
    """The node carries what others have set, and of ours only what docs/uninstall.md says stays; the case is gone."""
    found = await stage.node(node)
    assert found["spec"]["taints"] == [RESERVED]
    assert not found["spec"].get("unschedulable")
    meta = found["metadata"]
    ours = {key: word for key, word in {**meta["labels"], **meta["annotations"]}.items() if names.GROUP in key}
    assert ours == {names.GPU_PRESENT: "true", names.HANDLED: case["metadata"]["name"]}
    assert not meta.get("finalizers")
    for kind in (CASES, OPERATIONS):
        assert await stage.of_node(kind, node) == []
    told = [event["reason"] for event in await stage.client.list_all(EVENTS) if event["involvedObject"]["name"] == node]
    assert "CaseDeleted" in told
