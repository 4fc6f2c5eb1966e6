"""What a person or another system does to a node in the middle of its case, and how each of it ends."""

from datetime import UTC, datetime
from typing import Any

import pytest

from remediator.core import names
from remediator.kube.wire import errors
from remediator.kube.wire.transport import STRATEGIC_PATCH
from tests.cluster import REAL
from tests.cluster.e2e.stage import Stage, registered
from tests.harness.kinds import CASES, POLICIES, TEMPLATES
from tests.harness.kinds import NODES as NODE_KIND
from tests.harness.waiting import until

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.timeout(240),
    pytest.mark.parametrize("stage", [REAL], ids=["real"], indirect=True),
]
NODE = "gpu-17"
NODES = [NODE]
GATE = "remediator.dev/unproven"
Object = dict[str, Any]


async def test_a_case_whose_drain_waits_ends_as_the_person_decides_who_steps_in(stage: Stage) -> None:
    await stage.workloads[NODE].allow(0)  # so each case stays in its drain
    await stage.start_controller()
    await case_deleted(stage)
    await healed(stage)
    await taint_removed(stage)
    await healed(stage)
    await uncordoned(stage)
    await healed(stage)
    await node_deleted(stage)
    assert stage.machines[NODE].reboots() == []


async def test_a_node_that_another_system_drains_is_rebooted_once_that_system_says_so(stage: Stage) -> None:
    before = await stage.workloads[NODE].pods()
    drain = {"strategy": "External", "condition": "SlurmDrained", "timeout": "10m", "skipWaitForDelete": None}
    await stage.client.patch(TEMPLATES, "reboot", {"spec": {"drain": drain}})
    await says(stage, "SlurmDrained")  # before the request: no answer
    await stage.start_controller()
    stage.machines[NODE].lose_gpu()

    async def requested() -> str:
        return (await stage.node(NODE))["metadata"]["annotations"].get(names.DRAIN_REQUESTED, "")

    asked = await until(requested, 60)
    assert await stage.case(NODE, "Draining")
    assert stage.machines[NODE].reboots() == []
    assert await stage.workloads[NODE].pods() == before, "the Pods are left to the other system"
    await until(lambda: moment_after(asked), 10)
    await says(stage, "SlurmDrained")
    case = await until(lambda: stage.over(NODE), 90)
    assert case["status"]["phase"] == "Recovered"
    assert len(stage.machines[NODE].reboots()) == 1
    assert not await requested()
    assert [pod.body["metadata"]["labels"][names.OPERATION_LABEL] for pod in stage.tape.find("POST", "pods")].count(
        "drain"
    ) == 0


async def case_deleted(stage: Stage) -> None:
    """It goes, and none is opened again while the same fault stands."""
    case = await draining(stage)
    await stage.kubectl("delete", "nr", case["metadata"]["name"], "--wait=false")
    await until(lambda: none_left(stage, case), 60)
    await until(lambda: given_back(stage), 30)
    assert (await stage.condition(NODE, "GpuLost", "True")) is not None
    assert [each for each in await stage.of_node(CASES, NODE) if not each["status"].get("endedAt")] == []


async def taint_removed(stage: Stage) -> None:
    case = await draining(stage)
    await stage.kubectl("taint", "node", NODE, f"{names.CASE_TAINT}-")
    status = await until(lambda: ended(stage, case), 60)
    assert (status["phase"], status["reason"]) == ("Cancelled", "TaintRemovedByUser")
    await until(lambda: given_back(stage), 30)


async def uncordoned(stage: Stage) -> None:
    """The drain ends and the case waits for a person, who deletes it."""
    case = await draining(stage)
    await stage.kubectl("uncordon", NODE)

    async def held() -> bool:
        status = (await stage.client.get(CASES, case["metadata"]["name"]))["status"]
        return "UncordonedByUser" in [block["reason"] for block in status.get("blockedBy", ())]

    await until(held, 60)
    await until(lambda: no_operation_pod(stage), 60)
    assert not (await stage.node(NODE))["spec"].get("unschedulable")
    await stage.kubectl("delete", "nr", case["metadata"]["name"], "--wait=false")
    await until(lambda: none_left(stage, case), 60)
    await until(lambda: given_back(stage), 30)


async def node_deleted(stage: Stage) -> None:
    case = await draining(stage)
    await stage.kubectl("delete", "node", NODE, "--wait=false")
    status = await until(lambda: ended(stage, case), 90)
    assert (status["phase"], status["reason"]) == ("Cancelled", "NodeGone")


async def test_a_machine_that_joins_behind_the_gate_of_a_policy_is_probed_before_it_works(stage: Stage) -> None:
    await stage.start_controller()
    admit = {"probe": names.DIAGNOSTICS_TEMPLATE, "taint": GATE}  # the one that only looks, on any machine
    await stage.client.patch(POLICIES, "gpu-lost", {"spec": {"admit": admit}})
    info = (await stage.node(NODE))["status"]["nodeInfo"]
    await stage.kubectl("delete", "node", NODE)
    body = registered(NODE)
    body["spec"]["taints"].append({"key": GATE, "effect": "NoSchedule"})
    body["status"] = {"nodeInfo": info}  # a kubelet says which machine it is when it registers
    await stage.client.create(NODE_KIND, body)

    async def proven() -> Object | None:
        cases = [each for each in await stage.of_node(CASES, NODE) if each["spec"].get("newNode")]
        return next((each for each in cases if each.get("status", {}).get("endedAt")), None)

    case = await until(proven, 90)
    assert case["status"]["phase"] == "Recovered", case["status"]
    assert [(each["template"], each["outcome"]) for each in case["status"]["attempts"]] == [
        (names.DIAGNOSTICS_TEMPLATE, "Succeeded")
    ]
    await until(lambda: given_back(stage), 30)
    node = await stage.node(NODE)
    assert GATE not in [taint["key"] for taint in node["spec"]["taints"]]
    assert node["metadata"]["annotations"][names.ADMITTED].startswith(f"{GATE}=")


async def draining(stage: Stage) -> Object:
    """A GPU is lost, and the drain of its case waits for Pods that no budget lets go."""
    stage.machines[NODE].lose_gpu()

    async def waits() -> Object | None:
        cases = [each for each in await stage.of_node(CASES, NODE) if each.get("status", {}).get("phase") == "Draining"]
        return cases[0] if cases and await stage.operation_pods() else None

    return await until(waits, 60)


async def healed(stage: Stage) -> None:
    stage.machines[NODE].node.orders()
    await until(lambda: stage.condition(NODE, "GpuLost", "False"), 30)


async def ended(stage: Stage, case: Object) -> Object | None:
    """Its status, once it has ended and let go of what it held."""
    live = await stage.client.get(CASES, case["metadata"]["name"])
    return live["status"] if live["status"].get("endedAt") and not live["metadata"].get("finalizers") else None


async def none_left(stage: Stage, case: Object) -> bool:
    try:
        await stage.client.get(CASES, case["metadata"]["name"])
    except errors.NotFound:
        return True
    return False


async def given_back(stage: Stage) -> bool:
    """Whether nothing of ours keeps the node, and none of our Pods is left."""
    spec = (await stage.node(NODE))["spec"]
    kept = spec.get("unschedulable") or names.CASE_TAINT in [taint["key"] for taint in spec.get("taints") or ()]
    return not kept and await no_operation_pod(stage)


async def no_operation_pod(stage: Stage) -> bool:
    return not await stage.operation_pods()


async def says(stage: Stage, kind: str) -> None:
    """Another system says by a Condition of the Node that it is so, now."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    shown = {
        "type": kind,
        "status": "True",
        "reason": "Drained",
        "message": "",
        "lastHeartbeatTime": now,
        "lastTransitionTime": now,
    }
    await stage.client.patch(
        NODE_KIND, NODE, {"status": {"conditions": [shown]}}, subresource="status", content_type=STRATEGIC_PATCH
    )


def moment_after(text: str) -> bool:
    """Whether a time that is written in whole seconds now is not older than this one."""
    return datetime.now(UTC).replace(microsecond=0) >= datetime.fromisoformat(text)
