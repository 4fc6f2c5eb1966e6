"""A node whose kubelet does not report: what is done to it, and what holds it."""

import asyncio
import contextlib
from itertools import count

import pytest

from remediator.controller import kubelet_leases, waits
from remediator.core import names
from remediator.kube.wire.client import Client
from tests.harness.controller import RUNS, Answer, now, running, until
from tests.harness.kinds import NODES, OPERATIONS, POLICIES

pytestmark = pytest.mark.sampled("dead nodes")

ZONE = "topology.kubernetes.io/zone"
UNREACHABLE = {
    "when": [{"condition": "Ready", "status": "Unknown", "for": "0s"}],
    "ladder": [{"operation": "power-cycle", "attempts": 2}],
}
OUT = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}
VERSIONS = count(1)


async def power(harness, node):
    """A new boot, and the kubelet reports again."""
    await harness.boot(node)
    await harness.condition(node, "True", "Ready")


CYCLED = Answer(message="power-cycled", does=power)


def lease(harness, node, seconds=1):
    """The kubelet renews its Lease."""
    meta = {"name": node, "namespace": "kube-node-lease"}
    spec = {"leaseDurationSeconds": seconds, "leaseTransitions": next(VERSIONS)}
    kind = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
    harness.server.cluster.put("leases.coordination.k8s.io", kind | {"metadata": meta, "spec": spec})


@pytest.fixture
async def fleet(harness, monkeypatch):
    """Leases are good for a second, and looked at every 0.2 s."""
    monkeypatch.setattr(waits, "LOOK_AGAIN", 0.2)
    monkeypatch.setattr(kubelet_leases, "FRESH", 0.1)
    success = {"bootIDChanged": True, "nodeReady": True}
    await harness.template("power-cycle", runOn="Elsewhere", timeout="20s", success=success)
    harness.answer("power-cycle", CYCLED)
    return harness


async def dead(harness, *nodes, **labels):
    for node in nodes:
        await harness.node(node)
        await harness.change(NODES, node, metadata={"labels": labels})
        lease(harness, node)
        await harness.condition(node, "Unknown", "Ready", since=now())


async def test_a_dead_node_is_power_cycled_from_elsewhere_and_no_pod_is_made_on_it(fleet):
    await fleet.policy("node-unreachable", **UNREACHABLE)
    await dead(fleet, "gpu-1")
    async with running(fleet):
        await until(lambda: fleet.ended("gpu-1", "Recovered"))
    assert fleet.ran == ["power-cycle gpu-1"]
    assert fleet.story("gpu-1")[:3] == ["LeaseRenewed", "Claimed", "DiagnosisFailed"]
    status = fleet.cases("gpu-1")[0]["status"]
    assert [(one["outcome"], one["intent"]["bootID"]) for one in status["attempts"]] == [("Succeeded", "boot-1")]


async def test_a_user_asks_for_a_power_cycle_of_a_dead_node_and_no_pod_is_made_on_it(fleet):
    """A Pod there would be waited for at the end of the case: for ever, where its kubelet never comes back."""
    await dead(fleet, "gpu-1")
    uid = fleet.look("gpu-1")["metadata"]["uid"]
    wanted = {"nodeName": "gpu-1", "nodeUID": uid, "templateName": "power-cycle", "requestedBy": "alice"}
    async with running(fleet):
        await fleet.make(OPERATIONS, "by-hand", **wanted)
        await until(lambda: fleet.ended("gpu-1", "Recovered"))
    assert fleet.ran == ["power-cycle gpu-1"]
    assert fleet.story("gpu-1")[:2] == ["Claimed", "DiagnosisFailed"]


async def test_a_kubelet_that_renews_its_lease_holds_the_case_until_it_stops(fleet):
    await fleet.policy("node-unreachable", **UNREACHABLE)
    await dead(fleet, "gpu-1")

    async def renew():
        while True:
            lease(fleet, "gpu-1")
            await asyncio.sleep(0.3)

    async with running(fleet):
        renewing = asyncio.ensure_future(renew())
        await until(lambda: fleet.reasons("gpu-1") == ["LeaseRenewed"])
        await asyncio.sleep(2.5)
        assert (fleet.reasons("gpu-1"), fleet.taints("gpu-1"), fleet.ran) == (["LeaseRenewed"], [], [])
        renewing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await renewing
        await until(lambda: fleet.ended("gpu-1", "Recovered"))


async def test_a_lease_that_cannot_be_read_starts_nothing(fleet):
    await fleet.policy("node-unreachable", **UNREACHABLE)
    await dead(fleet, "gpu-1")
    fleet.server.faults.refuse(403, times=999, when=lambda asked: "/kube-node-lease/" in asked.path)
    async with running(fleet):
        await until(lambda: fleet.reasons("gpu-1") == ["LeaseRenewed"])
        await asyncio.sleep(1.5)
        assert fleet.ran == []
        assert "its Lease cannot be read" in fleet.cases("gpu-1")[0]["status"]["blockedBy"][0]["message"]


async def test_no_pod_is_made_for_a_node_whose_kubelet_comes_back_to_its_lease_after_the_intent(fleet):
    """Between intent and Pod the Lease is read again."""
    await fleet.policy("node-unreachable", **UNREACHABLE)
    await dead(fleet, "gpu-1")
    fleet.server.faults.refuse(
        500, times=3, when=lambda asked: asked.method == "POST" and asked.path.endswith("/pods") and revive()
    )

    def revive():
        lease(fleet, "gpu-1", 3600)
        return True

    async with running(fleet):
        await until(lambda: fleet.phase("gpu-1") == "Operating")
        await asyncio.sleep(3)
        assert fleet.ran == []


async def test_where_most_nodes_of_a_zone_do_not_report_none_of_them_is_touched(fleet):
    await fleet.policy("node-unreachable", **UNREACHABLE)
    await dead(fleet, "a-1", "a-2", "a-3", **{ZONE: "a"})
    await dead(fleet, "b-1", **{ZONE: "b"})
    for name in ("a-4", "a-5"):
        await fleet.node(name)
        await fleet.change(NODES, name, metadata={"labels": {ZONE: "a"}})
    async with running(fleet):
        await until(lambda: fleet.ended("b-1", "Recovered"))
        await until(lambda: all(fleet.reasons(f"a-{number}") == ["ZoneUnreachable"] for number in (1, 2, 3)))
        message = fleet.cases("a-1")[0]["status"]["blockedBy"][0]["message"]
        assert message.startswith("zone a: 3 of 5 nodes do not report; ")
        assert fleet.ran == ["power-cycle b-1"]
        await fleet.condition("a-3", "True", "Ready")
        await until(lambda: fleet.ended("a-1", "Recovered") and fleet.ended("a-2", "Recovered"))


async def test_a_rung_that_would_run_on_the_node_holds_the_case_and_the_policy_says_so(fleet):
    ladder = [{"operation": "power-cycle"}, {"operation": "reboot"}]
    await fleet.policy("node-unreachable", **UNREACHABLE | {"ladder": ladder})
    await dead(fleet, "gpu-1")
    async with running(fleet):
        await until(lambda: fleet.reasons("gpu-1") == ["NeedsKubelet"])
        ready = fleet.all(POLICIES)[0]["status"]["conditions"][0]
        assert (ready["status"], ready["reason"]) == ("False", "NeedsKubelet")
        assert ready["message"].startswith("reboot would run on a node whose kubelet does not report; in the ladder")
    assert fleet.ran == []


@pytest.mark.parametrize("boot", ["boot-0", "boot-1"])
async def test_a_node_that_we_declared_out_of_service_is_back_once_it_is_ready_in_another_boot(fleet, boot):
    await fleet.node("gpu-1")
    await fleet.node("users")
    marks = {"annotations": {names.OUT_OF_SERVICE_BOOT: boot}}
    await fleet.change(NODES, "gpu-1", metadata=marks, spec={"taints": [OUT]})
    await fleet.change(NODES, "users", spec={"taints": [OUT]})
    taints = lambda name: [taint["key"] for taint in fleet.look(name)["spec"].get("taints") or ()]  # noqa: E731
    async with running(fleet):
        if boot == "boot-1":
            await asyncio.sleep(0.5)
            assert OUT["key"] in taints("gpu-1"), "it is the boot whose power was cut"
            await fleet.boot("gpu-1")
        await until(lambda: OUT["key"] not in taints("gpu-1"))
        assert names.OUT_OF_SERVICE_BOOT not in fleet.look("gpu-1")["metadata"].get("annotations", {})
    assert OUT["key"] in taints("users")


def waiting(reason):
    """A Pod whose image or configuration is not there."""

    async def wait(harness, node):
        state = {"waiting": {"reason": reason, "message": "registry.example: no such host"}}
        for pod in harness.pods("reboot"):
            status = {"phase": "Pending", "containerStatuses": [{"name": "main", "state": state}]}
            await harness._pod_status(pod["metadata"]["name"], status)

    return Answer(exit=None, does=wait)


@pytest.mark.parametrize(
    ("word", "reason"),
    [("ErrImagePull", "ImageNotPulled"), ("CreateContainerConfigError", "ContainerNotCreated")],
)
async def test_a_pod_that_cannot_start_for_no_fault_of_the_node_is_no_attempt_and_holds_the_case(harness, word, reason):
    await harness.template("reboot-4s", timeout="4s")
    await harness.policy(ladder=[{"operation": "reboot-4s"}, {"operation": "reboot"}], attempts={"max": 1})
    harness.answer("reboot-4s", waiting(word))
    harness.pods = (lambda pods: lambda template="": pods("reboot-4s" if template == "reboot" else template))(
        harness.pods
    )
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: harness.reasons("gpu-1") == [reason])
        status = harness.cases("gpu-1")[0]["status"]
        assert [(one["outcome"], one["reason"]) for one in status["attempts"]] == [("Cancelled", reason)]
        assert "registry.example: no such host" in status["blockedBy"][0]["message"]
        assert status["blockedBy"][0]["until"]
    assert [ran for ran in harness.ran if "reboot gpu-1" in ran] == []


async def test_a_pod_that_nobody_evicts_and_somebody_deletes_is_told_so(harness):
    await harness.template("remount", timeout="20s")
    await harness.policy(ladder=[{"operation": "remount"}])
    harness.answer("remount", RUNS)
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: any(pod["status"].get("phase") == "Running" for pod in harness.pods("remount")))
        (pod,) = harness.pods("remount")
        client: Client = harness.client
        from tests.harness.kinds import PODS

        await client.delete(PODS, pod["metadata"]["name"], namespace=names.OPERATIONS_NAMESPACE)
        await until(lambda: harness.phase("gpu-1") == "Escalated")
    (attempt,) = harness.cases("gpu-1")[0]["status"]["attempts"]
    assert (attempt["outcome"], attempt["reason"]) == ("Failed", "PodDeleted")


@pytest.mark.parametrize("asked", [False, True], ids=["of a policy", "of a user"])
async def test_a_case_that_is_deleted_while_its_pod_hangs_on_a_dead_node_says_what_it_waits_for(harness, asked):
    """The marks stay: nobody can tell whether the Pod still runs."""
    await harness.template("brief", timeout="4s")
    harness.answer("brief", RUNS)
    await harness.node("gpu-1", "False" if asked else "True")
    uid = harness.look("gpu-1")["metadata"]["uid"]
    if asked:
        wanted = {"nodeName": "gpu-1", "nodeUID": uid, "templateName": "brief", "requestedBy": "alice"}
        await harness.make(OPERATIONS, "by-hand", **wanted)
    else:
        await harness.policy(ladder=[{"operation": "brief"}])
    async with running(harness):
        await until(lambda: harness.pods("brief", "Running"))
        (pod,) = harness.pods("brief")
        harness.dead.add("gpu-1")
        await harness.condition("gpu-1", "Unknown", "Ready")
        await harness.delete_case("gpu-1")
        await until(lambda: harness.cases("gpu-1")[0]["status"].get("endedAt"))
        name = pod["metadata"]["name"]
        told = (
            f"node gpu-1 is given back once Pod {name} is gone, and its kubelet does not report that: turn the "
            "power of gpu-1 off and on by hand, or delete the Node if the machine is gone"
        )
        assert harness.cases("gpu-1")[0]["status"]["message"] == told
        assert harness.taints("gpu-1") == [names.CASE_TAINT]
        if asked:
            shown = lambda: next(one["status"] for one in harness.all(OPERATIONS) if "by-hand" in str(one["metadata"]))  # noqa: E731
            await until(lambda: shown().get("finishedAt"))
            assert shown()["message"].endswith(told)
        harness.dead.clear()
        await harness.condition("gpu-1", "True", "Ready")
        await until(lambda: not harness.cases("gpu-1") and harness.clean("gpu-1"))
