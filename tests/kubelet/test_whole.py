"""Everything that is shipped, on real nodes: the controllers of the Deployment heal one of them."""

import asyncio
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest

from remediator.core import names
from remediator.kube import api
from remediator.kube.api.builtin import LEASE
from remediator.kube.wire.client import Client
from remediator.kube.wire.times import stamp
from remediator.kube.wire.transport import STRATEGIC_PATCH
from remediator_sim.plain import NODES, PODS, plain
from tests.harness.waiting import gone, until
from tests.kubelet.cluster import NAMES, OTHER, TARGET, Cluster
from tests.kubelet.pods import sleeper

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(540)]
CASES, OPERATIONS = plain(api.CASE), plain(api.OPERATION)


def policy(fault: str, operation: str, **parameters: str) -> dict[str, Any]:
    """One operation against a fault of the target, once."""
    rung = {"operation": operation, "attempts": 1, "parameters": parameters}
    return {
        "apiVersion": api.API_VERSION,
        "kind": "RemediationPolicy",
        "metadata": {"name": fault.lower()},
        "spec": {
            "mode": "Enforce",
            "nodeSelector": {"matchLabels": {"kubernetes.io/hostname": TARGET}},
            "when": [{"condition": fault, "for": "0s"}],
            "severity": "Critical",
            "ladder": [rung],
            "verify": {"settle": "1s", "fresh": "1s", "timeout": "180s"},
            "cooldown": "0s",
            "ticket": {"when": "Never"},
        },
    }


@pytest.fixture(scope="module")
def deployed(cluster: Cluster) -> Cluster:
    """All of deploy/ applied, both controllers ready, and the detectors of both nodes believed."""
    cluster.give("controller")
    cluster.apply(cluster.shipped())
    rollout = ("rollout", "status", "deployment/remediator", "--namespace", names.SYSTEM_NAMESPACE)
    cluster.kubectl(*rollout, "--timeout=120s")
    # Until then no fault that a detector shows starts anything.
    cluster.kubectl("wait", "node", *NAMES, "--for=condition=DetectorStale=False", "--timeout=240s")
    return cluster


async def controllers(client: Client) -> dict[str, str]:
    """The nodes of the controllers' Pods, by the names of the Pods."""
    found = await client.list_all(PODS, namespace=names.SYSTEM_NAMESPACE, labels=names.CONTROLLER_LABELS)
    return {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in found}


async def leader(client: Client) -> str:
    found = await client.list_all(LEASE, namespace=names.SYSTEM_NAMESPACE)
    holder = next((one.spec.holder_identity for one in found if one.metadata["name"] == "remediator"), "")
    return holder.rpartition("-")[0]


class Fault:
    """What a detector of the fault says of the target, once a second while entered."""

    def __init__(self, client: Client, kind: str) -> None:
        self._client, self.kind = client, kind

    async def __aenter__(self) -> "Fault":
        self.turn("True")
        self._task = asyncio.create_task(self._speak())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    def turn(self, status: str) -> None:
        """From now on it says this."""
        told = {"type": self.kind, "status": status, "reason": "Tested", "message": "a test says so"}
        self._condition = {**told, "lastTransitionTime": stamp(datetime.now(UTC))}

    async def _speak(self) -> None:
        while True:
            condition = {**self._condition, "lastHeartbeatTime": stamp(datetime.now(UTC))}
            body = {"status": {"conditions": [condition]}}
            await self._client.patch(NODES, TARGET, body, subresource="status", content_type=STRATEGIC_PATCH)
            await asyncio.sleep(1)


async def test_the_controllers_are_ready_each_on_a_node_of_its_own_and_one_of_them_leads(
    deployed: Cluster, admin: Client
) -> None:
    found = await controllers(admin)
    assert sorted(found.values()) == sorted(NAMES)
    assert await until(lambda: leader(admin), 60) in found


async def test_a_case_runs_from_diagnosis_to_recovery_with_every_pod_on_a_real_kubelet(
    deployed: Cluster, admin: Client
) -> None:
    await admin.create(PODS, sleeper("in-the-way", TARGET), namespace="default")
    deployed.apply([policy("FaultOfMounts", "remount-nfs")])
    async with Fault(admin, "FaultOfMounts") as fault:
        done = await until(lambda: case(admin, fault, "Verifying", "Escalated"), 120)
        (attempt,) = done["status"]["attempts"]
        assert attempt["outcome"] == "Succeeded", attempt
        assert attempt["message"].startswith("nothing to remount: 0 NFS mounts")
        node = await admin.get(NODES, TARGET)
        assert done["status"]["evidence"]["bootID"] == node["status"]["nodeInfo"]["bootID"]
        assert names.CASE_TAINT in {taint["key"] for taint in node["spec"]["taints"]}
        assert await admin.list_all(PODS, namespace="default") == [], "drained"
        assert set((await controllers(admin)).values()) == {OTHER}, "drained"
        await recovered(admin, fault)


async def test_a_rung_passes_its_parameters_to_the_program(deployed: Cluster, admin: Client) -> None:
    deployed.apply([policy("FaultOfClocks", "restart-service", service="chronyd", settleSeconds="1")])
    before = len(deployed.nodes[TARGET].asked())
    async with Fault(admin, "FaultOfClocks") as fault:
        done = await until(lambda: case(admin, fault, "Verifying", "Escalated"), 120)
        (attempt,) = done["status"]["attempts"]
        assert (attempt["outcome"], attempt["message"]) == (
            "Succeeded",
            "restarted chronyd, which was active; it is active",
        )
        restarts = [words for words in deployed.nodes[TARGET].asked()[before:] if words.startswith("restart")]
        assert restarts == ["restart chronyd.service"]
        await recovered(admin, fault)


async def test_what_is_only_told_ends_no_pod_of_its_node(deployed: Cluster, admin: Client) -> None:
    told = policy("FaultOfOthers", "reboot")
    told["spec"] |= {"urgency": {"mode": "Never"}}
    for word in ("ladder", "verify", "cooldown"):
        del told["spec"][word]
    await admin.create(PODS, sleeper("computes", TARGET), namespace="default")
    begun = await until(lambda: started(admin, "computes"), 60)
    earlier = len(deployed.nodes[TARGET].asked())
    deployed.apply([told])
    async with Fault(admin, "FaultOfOthers") as fault:
        held = await until(lambda: case(admin, fault, "Held"), 60)
        assert held["status"]["reason"] == "TicketOnly"
        fault.turn("False")
        await until(lambda: case(admin, fault, "Recovered", "Cancelled"), 150)
    assert await started(admin, "computes") == begun
    assert not (await admin.get(NODES, TARGET))["spec"].get("unschedulable")
    assert "reboot" not in deployed.nodes[TARGET].asked()[earlier:]
    await admin.delete(PODS, "computes", namespace="default")


@pytest.mark.long  # its node is given back minutes later
async def test_a_case_that_waits_for_an_idle_node_lets_a_pod_run_to_its_end(deployed: Cluster, admin: Client) -> None:
    patient = policy("FaultOfRows", "remount-nfs")
    patient["spec"] |= {"urgency": {"mode": "WhenIdle", "deadline": "24h"}}
    computes = sleeper("ends-by-itself", TARGET)
    computes["spec"]["activeDeadlineSeconds"] = 45
    await admin.create(PODS, computes, namespace="default")
    await until(lambda: started(admin, "ends-by-itself"), 60)
    deployed.apply([patient])
    async with Fault(admin, "FaultOfRows") as fault:
        await until(lambda: case(admin, fault, "Draining"), 60)
        assert (await admin.get(NODES, TARGET))["spec"]["unschedulable"], "no new Pod comes"
        for name, node in (await controllers(admin)).items():
            if node == TARGET:  # it works there, too
                await admin.delete(PODS, name, namespace=names.SYSTEM_NAMESPACE)
        done = await until(lambda: case(admin, fault, "Verifying", "Escalated"), 240)
        (attempt,) = done["status"]["attempts"]
        pod = await admin.get(PODS, "ends-by-itself", namespace="default")
        assert (pod["status"]["phase"], pod["status"]["reason"]) == ("Failed", "DeadlineExceeded"), "nobody evicted it"
        assert attempt["outcome"] == "Succeeded", attempt
        await recovered(admin, fault)
    await admin.delete(PODS, "ends-by-itself", namespace="default")


async def test_a_node_reboots_once_and_is_released_in_its_next_boot(deployed: Cluster, admin: Client) -> None:
    target, other = (deployed.nodes[name] for name in (TARGET, OTHER))
    before, first = (await admin.get(NODES, TARGET))["status"]["nodeInfo"]["bootID"], target.pid
    earlier, untouched = len(target.asked()), other.pid  # other tests have this node, too
    deployed.apply([policy("FaultOfKernels", "reboot")])
    async with Fault(admin, "FaultOfKernels") as fault:
        await until(lambda: "reboot" in target.asked()[earlier:], 120)
        marks = target.run("ls", "/run/remediator")
        boot = target.reboot()  # right here: the kernel ends children of a thread with the thread
        done = await until(lambda: case(admin, fault, "Verifying", "Escalated"), 120)
        (attempt,) = done["status"]["attempts"]
        assert (attempt["outcome"], attempt["intent"]["bootID"]) == ("Succeeded", before), attempt
        assert boot in attempt["message"]
        node = await admin.get(NODES, TARGET)
        assert node["status"]["nodeInfo"]["bootID"] == boot != before
        assert done["status"]["evidence"]["bootID"] == before
        assert attempt["operation"] in marks
        assert attempt["operation"] not in target.run("sh", "-c", "ls /run/remediator || true"), "it went with its boot"
        await recovered(admin, fault)
    assert target.asked()[earlier:].count("reboot") == 1
    assert gone(first)
    assert not gone(untouched)


async def recovered(client: Client, fault: Fault) -> None:
    """The fault is over, and with it the case; nothing of it is left."""
    fault.turn("False")
    ended = await until(lambda: case(client, fault, "Recovered", "Escalated"), 150)
    assert ended["status"]["phase"] == "Recovered", ended["status"]
    await until(lambda: nothing_left(client), 60)


async def case(client: Client, fault: Fault, *phases: str) -> dict[str, Any] | None:
    """The case of this fault, once it is in one of these phases."""
    found = [one for one in await client.list_all(CASES) if one["spec"]["policyName"] == fault.kind.lower()]
    return found[0] if found and found[0].get("status", {}).get("phase") in phases else None


async def started(client: Client, name: str) -> str:
    """The id of the container of a Pod that runs, which another start would change; "" while there is none."""
    pod = await client.get(PODS, name, namespace="default")
    statuses = pod["status"].get("containerStatuses") or [{}]
    return statuses[0].get("containerID", "") if "running" in statuses[0].get("state", {}) else ""


async def nothing_left(client: Client) -> bool:
    """Whether no taint of ours and no operation Pod is there."""
    taints = (await client.get(NODES, TARGET))["spec"].get("taints", [])
    pods = await client.list_all(PODS, namespace=names.OPERATIONS_NAMESPACE)
    return not pods and names.CASE_TAINT not in {taint["key"] for taint in taints}
