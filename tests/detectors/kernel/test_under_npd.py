"""Detectors under the real node-problem-detector while the kernel does its worst: what it tells, and what goes on."""

import asyncio
import json
import shutil
import sys
import time
import uuid
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
import yaml
from _probe import GRACE

from remediator.kube.client import Kind
from remediator.sim.accounts import token
from remediator.sim.plain import ACCOUNTS, PODS
from tests.cluster.servers import serving
from tests.contract.npd.playing import Play
from tests.detectors.kernel.needs import needs
from tests.detectors.kernel.nfs_node import NfsNode
from tests.detectors.kernel.stuck import Victim, children_of, hierarchies, is_unkillable, pod_cgroups
from tests.detectors.node import DETECTORS, Node
from tests.detectors.null_server import NullServer
from tests.remediator.sim.waiting import until

pytestmark = [*needs("disk", "fuse"), pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(240)]
ROOT = Path(__file__).resolve().parents[3]
SECONDS = 60.0
SECOND = timedelta(seconds=1)
DEADLINE = 1.0
SLACK = 12.0  # seconds for the interval, for publishing, and for a busy machine
OFTEN = {"invoke_interval": "1s", "timeout": "30s"}
ROLES = Kind("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", dict)
BINDINGS = Kind("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", dict)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(request):
    async with serving("real", request) as one:
        yield one


@asynccontextmanager
async def played(server, directory):
    """A node of a real API server, and node-problem-detector for it."""
    play = Play("real", server, {}, directory)
    await play.set_up()
    try:
        yield play
    finally:
        await play.tear_down()


def monitor(directory, name, command, env=None):
    """The shipped file of a detector, which runs often and runs this command."""
    script = directory / f"{name}.sh"
    words = [f"export {key}='{value}'" for key, value in (env or {}).items()]
    script.write_text("\n".join(["#!/bin/sh", *words, f"exec {' '.join(map(str, command))}", ""]))
    script.chmod(0o755)
    body = json.loads((ROOT / f"deploy/npd/{name}.json").read_text())
    body["pluginConfig"] |= OFTEN
    body["rules"][0] |= {"path": str(script), "args": [], "timeout": OFTEN["timeout"]}
    path = directory / f"{name}.json"
    path.write_text(json.dumps(body))
    return path


def finished(state, name):
    """When the last run of a detector ended, by the mark that it leaves; 0 before the first."""
    path = state / f"marks/{name}.json"
    return json.loads(path.read_text())["finished_at"] if path.exists() else 0.0


async def runs(state, name, count):
    """Wait until so many more runs of a detector have ended."""
    for _ in range(count):
        last = finished(state, name)
        await until(lambda last=last: finished(state, name) > last, SECONDS)


class Count:
    """The most processes with a word among their arguments that there were at any time while entered."""

    def __init__(self, word):
        self.word, self.most = str(word), 0

    async def __aenter__(self):
        self._task = asyncio.create_task(self._look())
        return self

    async def __aexit__(self, *_):
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _look(self):
        while True:
            self.most = max(self.most, len(children_of(self.word)))
            await asyncio.sleep(0.02)


# A process that cannot be killed.


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
        await server.client.create(BINDINGS, bound)
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
        for kind in (BINDINGS, ROLES):
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
                words = f"pod {gone} is gone but a process of it cannot be killed: python3 waits in "
                assert seen.message.startswith(words)
                assert pods[1][1] not in seen.message
            finally:
                disk.thaw()
                for victim in victims:
                    await asyncio.to_thread(victim.end)
        seen = await play.shows("False", "UnkillableProcess")
        assert seen.reason == "ProcessesEnd"
        await force_delete(server, pods[1][0])


# Something that hangs.


@pytest.fixture
def file_server():
    server = NullServer()
    yield server
    server.close()


async def test_a_hanging_mount_is_told_while_every_other_monitor_goes_on_and_only_one_child_asks_it(
    server, fuse, file_server, tmp_path
):
    node = NfsNode(tmp_path / "files", fuse, file_server.port)
    async with played(server, tmp_path / "node") as play, Count(f"{node.proc}/1/root{fuse.point}") as children:
        play.says(0)
        file = monitor(play.directory, "nfs-mount", node.command("nfs_mount", f"--deadline={DEADLINE}"))
        await play.start(play.file(), file)
        await play.shows("False", "NfsStale", reason="NfsMountsAnswer")
        fuse.tell("hang")
        await until(lambda: node.record().get("pid") and not node.record().get("hung"), SECONDS)
        await play.runs(3)
        assert not node.record().get("hung"), "three runs of the other monitor, and the first child is still waited for"
        seen = await play.shows("True", "NfsStale")
        assert seen.said == ("True", "NfsMountStuck", f"{node.name} hangs though its server answers")
        [child] = node.children()
        assert is_unkillable(child)
        asked = fuse.asked
        await runs(node.state, "nfs_mount", 5)
        await play.runs(3)
        assert (node.children(), children.most, fuse.asked) == ([child], 1, asked)
        fuse.tell("abort")
        seen = await play.shows("Unknown", "NfsStale")
        assert seen.message.startswith(f"{node.name} fails (ENOTCONN): look at its server 127.0.0.1")


# What every detector that must ask something writes, and what it must not write.
SAFE = """
import sys
sys.path.insert(0, {detectors!r})
from pathlib import Path
from _probe import ask
child = "import sys; open(sys.argv[1], 'w').close(); open(sys.argv[2], 'w').write('{{\\"done\\": true}}')"
answer = ask([sys.executable, "-I", "-S", "-c", child, {target!r}], Path({state!r}), "disk", {deadline})
print("it hangs" if answer.hung else "it answers")
sys.exit(1 if answer.hung else 0)
"""
NAIVE = """
import subprocess, sys
try:
    subprocess.run([sys.executable, "-c", "import sys; open(sys.argv[1], 'w')", {target!r}], timeout=1)
except subprocess.TimeoutExpired:
    sys.exit(1)
"""


async def test_a_child_on_a_frozen_disk_is_left_behind_in_time_where_a_plain_one_holds_up_its_monitor(
    server, disk, tmp_path
):
    words = {"target": f"{disk.folder}/file", "state": str(tmp_path / "state"), "detectors": str(DETECTORS)}
    async with played(server, tmp_path / "node") as play, Count(words["target"]) as children:
        safe = {"path": str(play.program(SAFE.format(**words, deadline=DEADLINE), "safe")), "condition": "Safe"}
        other = {**words, "target": f"{disk.folder}/other"}
        naive = {"path": str(play.program(NAIVE.format(**other), "naive")), "condition": "Naive", "timeout": "3s"}
        play.says(0)
        files = [play.file()]
        for rule in (safe, naive):
            conditions = [{"type": rule["condition"], "reason": "Well", "message": "it answers"}]
            name = f"{rule['condition']}.json"
            files.append(play.file(rule, name=name, conditions=conditions, skip_initial_status=True))
        disk.freeze()
        try:
            begun = time.monotonic()
            await play.start(*files)
            assert (await play.shows("True", "Safe")).message == "it hangs"
            assert time.monotonic() - begun < DEADLINE + GRACE + SLACK
            [child] = children_of(words["target"])
            assert is_unkillable(child)
            await play.runs(5, "safe")
            await play.runs(5)
            assert (children_of(words["target"]), children.most) == ([child], 1)
            assert play.begun("naive") == 1
            assert await play.condition("Naive") is None, "its monitor should have been held up: nothing is proven else"
        finally:
            disk.thaw()
        await play.shows("False", "Safe")
        await play.shows("False", "Naive")


# An NVML that hangs.

GPU_FILES = (("gpu-lost", "GpuLost"), ("gpu-ecc", "GpuEccFault"))


@pytest.fixture
def gpus(tmp_path, nvml_library):
    folder = tmp_path / "gpus"
    folder.mkdir()
    return Node(folder, nvml_library, gpus=2)


def gpu_monitors(play, gpus):
    files = []
    for name, _ in GPU_FILES:
        gpus.detector = name.replace("-", "_")
        settings = gpus.nvml.environment(gpus.library)
        command = gpus.command("--fresh=0.5", f"--deadline={DEADLINE}")
        files.append(monitor(play.directory, name, [sys.executable, *command[1:]], settings))
    return files


async def healthy(play):
    for _, condition in GPU_FILES:
        await play.shows("False", condition)


async def test_an_nvml_that_hangs_is_told_in_time_and_asked_by_one_child_at_a_time(server, gpus, tmp_path):
    async with played(server, tmp_path / "node") as play, Count(gpus.state / "nvml.answer.json") as children:
        play.says(0)
        await play.start(play.file(), *gpu_monitors(play, gpus))
        await healthy(play)
        gpus.orders("hang init", gpus=2)
        begun = time.monotonic()
        seen = await play.shows("True", "GpuLost")
        assert time.monotonic() - begun < DEADLINE + GRACE + SLACK
        assert seen.reason == "GpuLost"
        assert seen.message.startswith("NvmlHung: no answer since ")
        assert seen.message.endswith("Z at init")
        await play.shows("Unknown", "GpuEccFault")
        await runs(gpus.state, "gpu_lost", 3)
        await play.runs(3)
        assert children.most == 1
        gpus.orders(gpus=2)
        await healthy(play)


async def test_an_nvml_whose_caller_cannot_be_killed_keeps_one_child_until_the_driver_lets_it_go(
    server, gpus, disk, tmp_path
):
    """The library's log lies on the frozen disk, so that its calls wait in the kernel as those into a wedged driver."""

    def orders():
        gpus.nvml.write("count 2", f"log {disk.folder}/calls")

    async with played(server, tmp_path / "node") as play, Count(gpus.state / "nvml.answer.json") as children:
        orders()
        play.says(0)
        await play.start(play.file(), *gpu_monitors(play, gpus))
        await healthy(play)
        disk.freeze()
        try:
            begun = time.monotonic()
            seen = await play.shows("True", "GpuLost")
            assert time.monotonic() - begun < DEADLINE + GRACE + SLACK
            assert seen.message.startswith("NvmlHung: no answer since ")
            await play.shows("Unknown", "GpuEccFault")
            [child] = children_of(str(gpus.state / "nvml.answer.json"))
            assert is_unkillable(child), "else this proves nothing"
            await runs(gpus.state, "gpu_lost", 5)
            await runs(gpus.state, "gpu_ecc", 5)
            await play.runs(3)
            assert children_of(str(gpus.state / "nvml.answer.json")) == [child]
            assert children.most == 1
        finally:
            disk.thaw()
        await healthy(play)
