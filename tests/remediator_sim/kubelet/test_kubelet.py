"""Simulated kubelets and the binder on an embedded API server in memory."""

import asyncio
import contextlib
from pathlib import Path

import pytest

from remediator.kube.wire import errors
from remediator.kube.wire.client import Client
from remediator.kube.wire.transport import STRATEGIC_PATCH
from remediator_sim.apiserver import EmbeddedServer
from remediator_sim.kubelet.binder import Binder
from remediator_sim.kubelet.host import SimulatedHost
from remediator_sim.kubelet.kubelet import SimulatedKubelet
from remediator_sim.kubelet.kubelets import NodeChoice, node_choice, parse
from remediator_sim.kubelet.worker import ApiAddress
from remediator_sim.plain import ACCOUNTS, NODES, PODS, condition, condition_status
from tests.harness.waiting import until

ENDPOINT = ApiAddress("https://127.0.0.1:1", Path("/dev/null"))
PAUSE = ["/pause"]
PROGRAM = ["python3", "/opt/remediator/operations/program.py"]


@pytest.fixture
def client():
    return Client(EmbeddedServer().transport())


@pytest.fixture
async def play(client, tmp_path):
    """Starts a kubelet for a node; gives its host."""
    tasks = []
    (tmp_path / "operations").mkdir()
    (tmp_path / "operations/program.py").write_text("")

    def start(name, **options):
        host = SimulatedHost(tmp_path / name, name, down_time=0)
        kubelet = SimulatedKubelet(
            client, name, host=host, programs=tmp_path, endpoint=ENDPOINT, heartbeat=0.1, **options
        )
        tasks.append(asyncio.create_task(kubelet.run()))
        return host

    yield start
    for task in tasks:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


@pytest.fixture
async def binder(client):
    task = asyncio.create_task(Binder(client).run())
    yield
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def make(client, name, command, **spec):
    container = {"name": "main", "image": "x:1", "command": command}
    meta = {"name": name, "namespace": "default"}
    body = {"metadata": meta, "spec": {"restartPolicy": "Never", "containers": [container], **spec}}
    return await client.create(PODS, {"apiVersion": "v1", "kind": "Pod", **body}, namespace="default")


async def phase(client, name):
    return (await client.get(PODS, name, namespace="default"))["status"]["phase"]


async def is_ready(client, name):
    with contextlib.suppress(errors.NotFound):
        return condition_status(await client.get(NODES, name), "Ready") == "True"
    return False


async def unscheduled_because(client, name):
    return (condition(await client.get(PODS, name, namespace="default"), "PodScheduled") or {}).get("message")


async def test_a_node_is_registered_with_its_labels_and_gpus(client, play):
    host = play("gpu-1", labels={"pool": "a100"}, gpus=4)
    await until(lambda: is_ready(client, "gpu-1"))
    node = await client.get(NODES, "gpu-1")
    wanted = {"pool": "a100", "kubernetes.io/hostname": "gpu-1", "nvidia.com/gpu.present": "true"}
    assert wanted.items() <= node["metadata"]["labels"].items()
    assert node["status"]["allocatable"]["nvidia.com/gpu"] == "4"
    assert node["status"]["nodeInfo"]["bootID"] == host.boot_id


async def test_a_node_that_is_there_keeps_what_it_has(client, play):
    there = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "gpu-1", "labels": {"mine": "yes"}}}
    await client.create(NODES, there)
    play("gpu-1")
    await until(lambda: is_ready(client, "gpu-1"))
    assert (await client.get(NODES, "gpu-1"))["metadata"]["labels"] == {"mine": "yes"}


async def test_a_node_that_was_taken_away_does_not_come_back_by_itself(client, play):
    host = play("gpu-1")
    await until(lambda: is_ready(client, "gpu-1"))
    await client.delete(NODES, "gpu-1")
    await make(client, "p", PAUSE, nodeName="gpu-1")
    await until(lambda: _is(client, "p", "Running"))
    with pytest.raises(errors.NotFound):
        await client.get(NODES, "gpu-1")
    host.press_reset()
    await until(lambda: is_ready(client, "gpu-1"))


async def _is(client, name, wanted):
    return await phase(client, name) == wanted


async def without_its_account(client, name):
    """Create a Pod of our program, whose service account is then taken away; gives the account."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "late"}}
    account["automountServiceAccountToken"] = False
    await client.create(ACCOUNTS, account, namespace="default")
    await make(client, name, PROGRAM, nodeName="gpu-1", serviceAccountName="late")
    await client.delete(ACCOUNTS, "late", namespace="default")
    return account


async def test_a_program_waits_for_its_service_account(client, play):
    account = await without_its_account(client, "p")
    play("gpu-1")
    await until(lambda: _started(client, "p"))
    assert await phase(client, "p") == "Pending"
    await client.create(ACCOUNTS, account, namespace="default")
    await until(lambda: _is(client, "p", "Succeeded"))


async def test_a_program_that_waits_for_its_service_account_can_be_deleted(client, play):
    await without_its_account(client, "p")
    host = play("gpu-1")
    await until(lambda: _started(client, "p"))
    await client.delete(PODS, "p", namespace="default")
    await until(lambda: _gone(client, "p"))
    await until(lambda: not any(host.pods.iterdir()))


async def _started(client, name):
    return "startTime" in (await client.get(PODS, name, namespace="default"))["status"]


async def _gone(client, name):
    return not [pod for pod in await client.list_all(PODS) if pod["metadata"]["name"] == name]


async def test_a_pod_that_was_deleted_before_its_kubelet_saw_it_never_starts(client, play, tmp_path):
    (tmp_path / "operations/program.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    await make(client, "p", PROGRAM, nodeName="gpu-1", automountServiceAccountToken=False)
    await client.delete(PODS, "p", namespace="default")
    play("gpu-1")
    await until(lambda: _gone(client, "p"))
    assert not (tmp_path / "ran").exists()


async def test_many_nodes_fit_into_one_loop(client, play):
    names = [f"gpu-{number}" for number in range(50)]
    for name in names:
        play(name)

    async def all_ready():
        return all([await is_ready(client, name) for name in names])

    await until(all_ready)


async def test_the_binder_spreads_pods_over_ready_nodes(client, play, binder):
    for name in ("a", "b", "c"):
        play(name)
        await until(lambda name=name: is_ready(client, name))
    await client.patch(NODES, "b", {"spec": {"unschedulable": True}})
    for name in ("p", "q"):
        await make(client, name, PAUSE)
    await until(lambda: _all_run(client))
    assert {pod["spec"]["nodeName"] for pod in await client.list_all(PODS)} == {"a", "c"}


async def _all_run(client):
    return all(pod["status"]["phase"] == "Running" for pod in await client.list_all(PODS))


async def test_the_binder_says_why_it_cannot_and_binds_once_it_can(client, play, binder):
    await make(client, "p", PAUSE)
    assert await until(lambda: unscheduled_because(client, "p")) == "0/0 nodes are available: there are none."
    play("a")
    await until(lambda: _is(client, "p", "Running"))
    scheduled = (await client.get(PODS, "p", namespace="default"))["status"]["conditions"]
    assert [one["status"] for one in scheduled if one["type"] == "PodScheduled"] == ["True"]


async def test_the_binder_leaves_the_pods_of_other_schedulers(client, play, binder):
    await make(client, "theirs", PAUSE, schedulerName="other")
    await make(client, "gated", PAUSE, schedulingGates=[{"name": "wait"}])
    play("a")
    await make(client, "ours", PAUSE)
    await until(lambda: _is(client, "ours", "Running"))
    for name in ("theirs", "gated"):
        assert "nodeName" not in (await client.get(PODS, name, namespace="default"))["spec"]


async def test_a_heartbeat_leaves_the_conditions_of_detectors_alone(client, play):
    play("gpu-1")
    await until(lambda: is_ready(client, "gpu-1"))
    lost = {"type": "GpuLost", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:00Z"}
    body = {"status": {"conditions": [lost]}}
    await client.patch(NODES, "gpu-1", body, subresource="status", content_type=STRATEGIC_PATCH)
    seen = await _conditions(client)
    await until(lambda: _beaten(client, seen["Ready"]["lastHeartbeatTime"]))
    assert (await _conditions(client))["GpuLost"] == seen["GpuLost"]


async def _conditions(client):
    return {one["type"]: one for one in (await client.get(NODES, "gpu-1"))["status"]["conditions"]}


async def _beaten(client, before):
    return (await _conditions(client))["Ready"]["lastHeartbeatTime"] > before


@pytest.mark.parametrize(("text", "choice"), [("gpu-17", NodeChoice("gpu-17", 8)), ("cpu=0", NodeChoice("cpu", 0))])
def test_a_node_is_named_with_or_without_its_gpus(text, choice):
    assert node_choice(text) == choice


def test_a_node_with_gpus_that_are_no_number_is_refused(capsys):
    with pytest.raises(SystemExit):
        parse(["--kubeconfig", "k", "--state", "s", "--node", "gpu-17=many"])
    assert "gpu-17=many" in capsys.readouterr().err
