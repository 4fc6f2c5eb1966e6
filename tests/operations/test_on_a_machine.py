"""The templates' own Pods on a simulated kubelet, whose machine breaks and takes the repair."""

import asyncio
import contextlib
import json
from pathlib import Path

import pytest
import yaml

from remediator.kube.wire.client import Client
from remediator_sim.apiserver import EmbeddedServer
from remediator_sim.kubelet.host import SimulatedHost
from remediator_sim.kubelet.kubelet import SimulatedKubelet
from remediator_sim.kubelet.worker import ApiAddress
from remediator_sim.machine import FaultKind, Machine, MachineFault, NfsServer
from remediator_sim.plain import ACCOUNTS, PODS
from tests.harness.waiting import until
from tests.operations.conftest import OPERATIONS

pytestmark = pytest.mark.sampled("on a machine")

SPACE = "default"
UID = "8f3c2a10-1111-2222-3333-444455556666"
VOLUME = f"/var/lib/kubelet/pods/{UID}/volumes/kubernetes.io~nfs/data"


class RepairedNode:
    """One node with eight GPUs and three mounts, two of them of one server."""

    def __init__(self, client, machine):
        self.client, self.machine = client, machine

    async def run(self, template, **parameters):
        """Run the Pod of a template here; exit code and termination message."""
        spec = yaml.safe_load((OPERATIONS / template).read_text())["spec"]["podTemplate"]["spec"]
        env = {
            "NODE_NAME": "gpu-17",
            "ATTEMPT_ID": f"attempt-{len(self.machine.host.commands_run())}",
            "EXPECTED_BOOT_ID": self.machine.host.boot_id,
            "PARAMETERS": json.dumps({"probeSeconds": 3, **parameters}),
        }
        spec["containers"][0]["env"] = [{"name": name, "value": value} for name, value in env.items()]
        meta = {"name": env["ATTEMPT_ID"], "namespace": SPACE}
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {**spec, "nodeName": "gpu-17"}}
        await self.client.create(PODS, body, namespace=SPACE)

        async def end():
            status = (await self.client.get(PODS, meta["name"], namespace=SPACE)).get("status", {})
            return status.get("phase") in ("Succeeded", "Failed") and status["containerStatuses"][0]["state"]

        told = (await until(end, 60))["terminated"]
        return told["exitCode"], told["message"]

    def ran(self, word):
        """The commands so far whose program is `word`, as text."""
        return [" ".join(one["command"]) for one in self.machine.host.commands_run() if one["command"][0] == word]


@pytest.fixture
async def servers():
    async with NfsServer() as first, NfsServer() as second:
        yield first, second


@pytest.fixture
async def node(tmp_path, servers):
    client = Client(EmbeddedServer().transport())
    host = SimulatedHost(tmp_path / "gpu-17", "gpu-17", down_time=0)
    machine = Machine(host, mounts={"/mnt/data": servers[0], "/mnt/home": servers[1], VOLUME: servers[0]})
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "remediator-host"}}
    await client.create(ACCOUNTS, {**account, "automountServiceAccountToken": False}, namespace=SPACE)
    endpoint = ApiAddress("https://127.0.0.1:1", Path("/dev/null"))
    kubelet = SimulatedKubelet(client, "gpu-17", host=host, programs=OPERATIONS.parent, endpoint=endpoint)
    task = asyncio.create_task(kubelet.run())
    yield RepairedNode(client, machine)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def test_a_reset_mends_the_gpu_with_memory_errors_and_its_linked_peers_go_with_it(node):
    node.machine.break_(MachineFault(FaultKind.GPU_ECC, 3))
    code, message = await node.run("reset_gpu.yaml")
    assert code == 0, message
    assert "2 uncorrected memory errors" in message
    assert node.machine.faults == ()
    [reset] = [line for line in node.ran("nvidia-smi") if "--gpu-reset" in line]
    assert reset.count("00000000:") == 8
    assert (await node.run("reset_gpu.yaml"))[1] == "nothing to reset: none of the 8 GPUs of gpu-17 needs it"


async def test_a_reset_that_does_not_last_and_a_lost_gpu_are_told_apart(node):
    lemon = MachineFault(FaultKind.GPU_ECC, 3, returns=True)
    node.machine.break_(lemon)
    code, message = await node.run("reset_gpu.yaml")
    assert (code, message.partition(":")[0]) == (1, "failed")
    node.machine.mend(lemon)
    node.machine.break_(MachineFault(FaultKind.GPU_LOST, 3))
    code, message = await node.run("reset_gpu.yaml")
    assert code == 2
    assert "reboot the node" in message


async def test_a_stuck_mount_is_remounted_and_the_others_are_left_alone(node):
    before = (node.machine.host.root / "proc/1/mountinfo").read_text()
    node.machine.break_(MachineFault(FaultKind.MOUNT_STUCK, "/mnt/home"))
    assert await node.run("remount_nfs.yaml") == (0, "remounted /mnt/home")
    assert node.machine.faults == ()
    assert node.ran("umount") == ["umount -f -l /mnt/home"]
    assert (node.machine.host.root / "proc/1/mountinfo").read_text() == before
    assert (await node.run("remount_nfs.yaml"))[1] == "nothing to remount: 3 NFS mounts of gpu-17 answer"


async def test_a_stuck_volume_waits_for_its_pod_and_is_then_only_taken_down(node):
    node.machine.break_(MachineFault(FaultKind.MOUNT_STUCK, VOLUME))
    node.machine.start_pod(UID, mounts=[VOLUME])
    code, message = await node.run("remount_nfs.yaml")
    assert (code, node.ran("umount")) == (2, [])
    assert f"owns {VOLUME}" in message
    node.machine.end_pod(UID)
    assert await node.run("remount_nfs.yaml") == (0, f"took down {VOLUME}")
    assert node.ran("mount") == []


async def test_with_its_server_down_a_mount_is_refused_and_stays(node, servers):
    await servers[1].stop()
    code, message = await node.run("remount_nfs.yaml")
    assert (code, node.ran("umount")) == (2, [])
    assert "Connection refused" in message
