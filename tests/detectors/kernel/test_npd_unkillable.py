"""UnkillableProcess under the real node-problem-detector, which asks the real API server with its shipped rights."""

import asyncio
import shutil
import uuid
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest
import yaml

from remediator_sim.accounts import token
from remediator_sim.plain import ACCOUNTS, PODS
from tests.detectors.kernel.needs import needs
from tests.detectors.kernel.npd import ROOT, monitor, played
from tests.detectors.kernel.stuck import COMM, Victim, hierarchies, pod_cgroups
from tests.detectors.node import DETECTORS
from tests.harness.kinds import ROLE_BINDINGS, ROLES

pytestmark = [*needs("disk"), pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(240)]


@asynccontextmanager
async def reader(server, directory):
    """The variables with which a detector asks the real API server, with the rights that node-problem-detector has."""
    name = f"npd-{uuid.uuid4().hex[:8]}"
    shipped = [one for one in yaml.safe_load_all((ROOT / "deploy/rbac.yaml").read_text()) if one]
    [role] = [
        one for one in shipped
        if one["kind"] == "ClusterRole" and one["metadata"]["name"] == "remediator-node-problem-detector"
    ]  # fmt: skip
    bound = {
        "apiVersion": role["apiVersion"],
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}],
    }
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}
    await server.client.create(ACCOUNTS, account, namespace="default")
    try:
        await server.client.create(ROLES, {**role, "metadata": {"name": name}})
        await server.client.create(ROLE_BINDINGS, bound)
        folder = directory / "token"
        folder.mkdir()
        (folder / "token").write_text(await token(server.client, name, "default"))
        shutil.copy(server.ca_file, folder / "ca.crt")
        where = urlsplit(server.url)
        yield (
            name,
            {
                "KUBERNETES_SERVICE_HOST": where.hostname,
                "KUBERNETES_SERVICE_PORT": str(where.port),
                "TOKEN_DIR": str(folder),
            },
        )
    finally:
        for kind in (ROLE_BINDINGS, ROLES):
            await server.client.delete(kind, name)
        await server.client.delete(ACCOUNTS, name, namespace="default")


async def run_pod(server, node, account):
    """Create a Pod on the node, and return its name and uid."""
    spec = {
        "nodeName": node,
        "serviceAccountName": account,
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
    server, disk, tmp_path, kind
):
    async with played(server, tmp_path / "node") as play, reader(server, tmp_path) as (account, env):
        pods = [await run_pod(server, play.node, account) for _ in range(2)]
        gone = pods[0][1]
        state = tmp_path / "state"
        command = [DETECTORS / "unkillable_process.py", f"--state={state}", "--apart=1"]
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
                await play.start(file, env={**env, "NODE_NAME": play.node})
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
