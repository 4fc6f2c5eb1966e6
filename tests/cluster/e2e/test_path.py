"""One case from the lost GPU to the node's release, everything real but the GPU and the machine under it."""

import json
from datetime import datetime

import pytest

from remediator.core import names
from tests.cluster.e2e.machine import LOST, POINTED
from tests.cluster.e2e.stage import RESERVED, SYSTEM, TEAM, Stage
from tests.cluster.rights.granted import LATER, unused
from tests.harness.kinds import BUDGETS, EVENTS
from tests.harness.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180)]
NODE = "gpu-17"
NODES = [NODE]
DETECTORS = tuple(POINTED)


async def test_a_lost_gpu_is_found_and_its_node_drained_rebooted_and_given_back(
    stage: Stage, request: pytest.FixtureRequest
) -> None:
    machine, workload = stage.machines[NODE], stage.workloads[NODE]
    before, boot = await workload.pods(), machine.boot_id
    daemons = {name: uid for name, uid in before.items() if name not in workload.apps}
    machine.services.clear()
    await workload.allow(0)
    await stage.start_controller()
    assert "healthy" in await stage.explain(NODE)

    machine.lose_gpu()
    lost = await until(lambda: stage.condition(NODE, "GpuLost", "True"), 30)
    assert "GPU is lost (code 15)" in lost["message"]

    blocked = await until(lambda: drain_blocked(stage), 30)
    assert {one["pod"] for one in blocked} == {f"{workload.space}/{name}" for name in workload.apps}
    assert all("training" in one["pdb"] for one in blocked)
    await claimed_in_order(stage)
    await looked_first(stage, boot)
    assert (await stage.case(NODE, "Draining"))["status"]["attempts"][0]["template"] == "reboot"
    assert "Draining" in await stage.explain(NODE)
    assert await workload.pods() == before
    assert machine.reboots() == []
    await shown(stage)

    await workload.allow(len(workload.apps))
    await until(lambda: stage.case(NODE, "Verifying"), 60)
    assert machine.boot_id != boot
    assert (await stage.node(NODE))["status"]["nodeInfo"]["bootID"] == machine.boot_id
    assert await workload.pods() == daemons
    stale = await stage.condition(NODE, "GpuLost", "True")
    assert stale, "no detector has run since: nothing proves that the GPU is back"

    machine.services.set()
    case = await until(lambda: stage.over(NODE), 60)
    await proven_afresh(stage, case, stale)
    await given_back(stage, case)
    assert [one["bootID"] for one in machine.reboots()] == [boot]
    assert made_pods(stage) == ["collect-diagnostics", "drain", "reboot"]
    assert await workload.pods() == daemons
    await shown(stage)
    assert "healthy" in await stage.explain(NODE)
    if stage.server.name == "real":
        events = request.getfixturevalue("control_plane").audited()
        for account, later in LATER.items():
            assert set(unused(account, events)) <= set(later), "some of those come to be used, as it happens"


async def drain_blocked(stage: Stage) -> list[dict] | None:
    """What the only operation's drain says is in the way, once it names both Pods."""
    shown = json.loads(await stage.kubectl("get", "nop", "-o", "json"))["items"]
    found = [one for item in shown for one in item.get("status", {}).get("drain", {}).get("blocked", [])]
    return found if len(found) == 2 else None


async def claimed_in_order(stage: Stage) -> None:
    """The case, its entry in the ledger, the taint: whoever crashes in between is found by the next."""
    uid = (await stage.case(NODE, "Draining"))["metadata"]["uid"]
    (case,) = stage.tape.find("POST", "noderemediations")
    entry = stage.tape.find("PATCH", "nodedisruptionbudgets", lambda body: uid in json.dumps(body))[0]
    taint = stage.tape.find("PATCH", NODE, lambda body: uid in json.dumps(body))[0]
    assert case.number < entry.number < taint.number
    ledger = await stage.client.get(BUDGETS, names.DEFAULT_BUDGET)
    assert [(one["node"], one["case"]) for one in ledger["status"]["claims"]] == [(NODE, uid)]
    taints = (await stage.node(NODE))["spec"]["taints"]
    assert [one["value"] for one in taints if one["key"] == names.CASE_TAINT] == [uid]


async def looked_first(stage: Stage, boot: str) -> None:
    """What the detector and the kernel knew of the GPU is kept before anything is disturbed."""
    evidence = (await stage.case(NODE, "Draining"))["status"]["evidence"]
    assert evidence["bootID"] == boot
    (found,) = [one for one in evidence["detectors"] if one["detector"] == "gpu_lost"]
    assert [one["serial"] for one in found["lost"]] == [f"15635210204{LOST:02}"]
    assert "Xid" in evidence["kernelLines"][0]


async def proven_afresh(stage: Stage, case: dict, stale: dict) -> None:
    """The Condition was cleared by a detector that ran after the reboot, and only then was the case over."""
    clear = await stage.condition(NODE, "GpuLost", "False")
    assert clear
    base = case["status"]["attempts"][0]["nodeHeartbeats"]["GpuLost"]
    since, ended = moment(clear["lastTransitionTime"]), moment(case["status"]["endedAt"])
    assert moment(stale["lastTransitionTime"]) < moment(base) <= since < ended
    assert [one["reason"] for one in case["status"]["timeline"]][-1] == "Verified"
    assert case["status"]["phase"] == "Recovered"


async def given_back(stage: Stage, case: dict) -> None:
    """Nothing of ours is left on the node but the name of its last case; what others set is as it was."""
    node = await stage.node(NODE)
    assert node["spec"]["taints"] == [RESERVED]
    assert not node["spec"].get("unschedulable")
    assert TEAM.items() <= node["metadata"]["labels"].items()
    notes = {name: value for name, value in node["metadata"]["annotations"].items() if "node.alpha" not in name}
    assert notes == {"example.com/note": "rack 7", names.HANDLED: case["metadata"]["name"]}
    assert (await stage.client.get(BUDGETS, names.DEFAULT_BUDGET))["status"].get("claims", []) == []
    told = {one["reason"] for one in await stage.client.list_all(EVENTS) if one["involvedObject"]["name"] == NODE}
    assert {"Claimed", "Diagnosed", "OperationStarted", "Operating", "OperationSucceeded", "Verified"} <= told


async def shown(stage: Stage) -> None:
    """The story in a line each, for whoever reads along (pytest -s)."""
    for kind in ("nr", "nop", "ndb"):
        said = await stage.kubectl("get", kind, "-o", "wide")
        assert NODE in said or kind == "ndb"
        print(f"\n{said}", end="")
    assert SYSTEM in await stage.kubectl("get", "nodes")


def made_pods(stage: Stage) -> list[str]:
    """The operations whose Pods were made, in the order of their names."""
    made = stage.tape.find("POST", "pods")
    return sorted(one.body["metadata"]["labels"][names.OPERATION_LABEL] for one in made)


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)
