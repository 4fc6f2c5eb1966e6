"""UnkillableProcess under the real node-problem-detector: it asks the real API server as the kubelet of its node."""

import asyncio
import uuid

import pytest

from remediator_sim.plain import PODS
from tests.detectors.kernel.needs import needs
from tests.detectors.kernel.npd import monitor, played
from tests.detectors.kernel.stuck import COMM, Victim, hierarchies, pod_cgroups
from tests.detectors.node import DETECTORS

pytestmark = [*needs("disk"), pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(240)]


async def run_pod(server, node):
    """Create a Pod on the node, and return its name and uid."""
    spec = {
        "nodeName": node,
        "automountServiceAccountToken": False,
        "containers": [{"name": "trainer", "image": "registry.local/trainer:1"}],
    }
    name = f"trainer-{uuid.uuid4().hex[:8]}"
    one = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
    made = await server.client.create(PODS, one, namespace="default")
    return name, made["metadata"]["uid"]


async def force_delete(server, name):
    """Do what `kubectl delete pod --grace-period=0 --force` does: the Pod goes, its processes are not waited for."""
    await server.client.send("DELETE", PODS.path(name, "default"), dict, {"gracePeriodSeconds": 0})


@pytest.mark.parametrize("kind", ["leader", "thread"])
async def test_a_pod_that_is_force_deleted_while_its_process_cannot_be_killed_turns_the_condition_true(
    server, control_plane, disk, tmp_path, kind
):
    async with played(server, tmp_path / "node") as play:
        kubeconfig = control_plane.kubeconfig_for(f"system:node:{play.node}", ["system:nodes"])
        pods = [await run_pod(server, play.node) for _ in range(2)]
        gone = pods[0][1]
        state = tmp_path / "state"
        options = [f"--state={state}", "--apart=1", "--node-root=/", f"--kubelet-kubeconfig={kubeconfig}"]
        command = [DETECTORS / "unkillable_process.py", *options]
        file = monitor(play.directory, "unkillable-process", command)
        version = next(iter(hierarchies()))
        victims = []
        with pod_cgroups(version, "systemd", *(uid for _, uid in pods)) as folders:
            disk.freeze()
            try:
                for folder in folders:
                    victims.append(Victim(disk.folder / "file", folder, kind))
                for victim in victims:
                    await asyncio.to_thread(victim.kill)
                await play.start(file, env={"NODE_NAME": play.node})
                await play.shows("False", "UnkillableProcess", reason="ProcessesEnd")
                await force_delete(server, pods[0][0])
                seen = await play.shows("True", "UnkillableProcess", reason="UnkillableProcess")
                words = f"pod {gone} is gone but a process of it cannot be killed: {COMM} waits in "
                assert seen.message.startswith(words)
                assert pods[1][1] not in seen.message
            finally:
                disk.thaw()
                for victim in victims:
                    await asyncio.to_thread(victim.end)
        seen = await play.shows("False", "UnkillableProcess")
        assert seen.reason == "ProcessesEnd"
        await force_delete(server, pods[1][0])
