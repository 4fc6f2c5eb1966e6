"""What a real Kueue with topology-aware scheduling does with a job when a case takes one of its nodes."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from deploy.images.programs import NotBuilt, binary
from remediator import clock
from remediator.app import elector
from remediator.controller.run import Controller
from remediator.core import names
from remediator.kube.informers import Informers
from remediator.kube.runtime.leader import Leader
from remediator.kube.wire.client import Client, Kind
from remediator.kube.wire.http import HttpTransport
from remediator.kube.wire.transport import STRATEGIC_PATCH
from remediator.settings import Settings
from remediator_sim.accounts import token
from remediator_sim.kubeconfig import write_kubeconfig
from remediator_sim.kubelet.host import SimulatedHost
from remediator_sim.kubelet.kubelet import SimulatedKubelet
from remediator_sim.kubelet.worker import ApiAddress
from remediator_sim.manifests import create, deploy
from remediator_sim.plain import condition_status
from tests.cluster.control_plane import ControlPlane
from tests.cluster.e2e.stage import AT_ONCE, ROOT, SYSTEM, policy
from tests.cluster.kueue import kueue
from tests.cluster.nodes import gpu_node
from tests.harness.kinds import NAMESPACES, NODES, PODS, TEMPLATES, Object
from tests.harness.replica import at_work
from tests.harness.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.long, pytest.mark.timeout(600)]
WORKLOADS = Kind("kueue.x-k8s.io", "v1beta2", "workloads", "Workload", Object, namespaced=True)
TEAM, RACK, HOST, GPU = "team", "topology.kubernetes.io/rack", "kubernetes.io/hostname", "nvidia.com/gpu"
INDEX = "batch.kubernetes.io/job-completion-index"
WORKERS, SECONDS = 4, 60.0
LEFT_OUT = ("pod-complete.yaml", "pod-delete.yaml")  # of the stages
KUEUE = "kueue.x-k8s.io"
TAINT = {"key": GPU, "value": "present", "effect": "NoSchedule"}  # a drain runs elsewhere: KWOK runs no program


def of_kueue(kind: str, name: str, spec: Object, **meta: Any) -> Object:
    """One object of Kueue's."""
    return {"apiVersion": f"{KUEUE}/v1beta2", "kind": kind, "metadata": {"name": name, **meta}, "spec": spec}


QUOTA = {"name": GPU, "nominalQuota": 80}
GROUP = {"coveredResources": [GPU], "flavors": [{"name": "gpus", "resources": [QUOTA]}]}
QUEUES = [
    of_kueue("Topology", "racks", {"levels": [{"nodeLabel": RACK}, {"nodeLabel": HOST}]}),
    of_kueue("ResourceFlavor", "gpus", {"nodeLabels": {f"{GPU}.present": "true"}, "topologyName": "racks"}),
    of_kueue("ClusterQueue", "gpus", {"namespaceSelector": {}, "resourceGroups": [GROUP]}),
    of_kueue("LocalQueue", "gpus", {"clusterQueue": "gpus"}, namespace=TEAM),
]


def job() -> Object:
    """Four workers with eight GPUs each, which have to be in one rack."""
    room = {GPU: "8"}  # in `requests`, too: Kueue looks for the other node by these alone
    container = {"name": "main", "image": "train", "resources": {"limits": room, "requests": room}}
    template = {
        "metadata": {"annotations": {f"{KUEUE}/podset-required-topology": RACK}},
        "spec": {
            "restartPolicy": "Never",
            "tolerations": [{"key": GPU, "operator": "Exists"}],
            "containers": [container],
        },
    }
    ignored = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}
    spec = {
        "suspend": True,
        "completionMode": "Indexed",
        "completions": WORKERS,
        "parallelism": WORKERS,
        "podFailurePolicy": {"rules": [ignored]},
        "template": template,
    }
    labels = {f"{KUEUE}/queue-name": "gpus"}
    meta = {"name": "train", "namespace": TEAM, "labels": labels}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": spec}


def only_gpu_lost(document: Object) -> Object | None:
    """The shipped policy for lost GPUs, in Enforce and without waits; no other."""
    other = document["kind"] == "RemediationPolicy" and document["metadata"]["name"] != "gpu-lost"
    return None if other else policy(document, AT_ONCE)


@asynccontextmanager
async def connected(kubeconfig: Path) -> AsyncIterator[Client]:
    transport = await HttpTransport.from_kubeconfig(kubeconfig)
    try:
        yield Client(transport)
    finally:
        await transport.close()


@asynccontextmanager
async def controller(plane: ControlPlane, admin: Client, folder: Path) -> AsyncIterator[None]:
    """The controller with its own rights, and a worker on which the Pod of a drain really runs."""
    granted = await token(admin, "remediator", names.SYSTEM_NAMESPACE)
    ours = write_kubeconfig(folder, "controller", plane.url, granted, plane.ca_file)
    host, endpoint = SimulatedHost(folder / SYSTEM, SYSTEM), ApiAddress(plane.url, plane.ca_file)
    kubelet = SimulatedKubelet(admin, SYSTEM, host=host, programs=ROOT, endpoint=endpoint, gpus=0, heartbeat=2.0)
    async with connected(ours) as client:
        informers = Informers(client, clock.SYSTEM, Settings().namespaces)
        leader = Leader(elector(client, Settings(), clock.SYSTEM), clock.SYSTEM)
        Controller(client, Settings(), informers, leader, clock.SYSTEM)
        async with at_work(kubelet.run(), informers.run(), leader.run()):
            yield


def named(values: Object) -> list[str]:
    """The names of nodes that one slice of an assignment has."""
    if "universal" in values:
        return [values["universal"]]
    each = values["individual"]
    return [each.get("prefix", "") + root + each.get("suffix", "") for root in each["roots"]]


class World:
    """What an administrator sees."""

    def __init__(self, admin: Client) -> None:
        self.admin = admin

    async def workers(self) -> dict[str, Object]:
        """The Pods of the job that have not ended, by their index."""
        pods = await self.admin.list_all(PODS, namespace=TEAM)
        alive = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
        return {pod["metadata"]["labels"][INDEX]: pod for pod in alive}

    async def running(self) -> dict[str, str]:
        """The node of each worker, by index, once all of them run."""
        pods = await self.workers()
        nodes = {index: pod["spec"].get("nodeName", "") for index, pod in pods.items()}
        runs = all(pod["status"].get("phase") == "Running" for pod in pods.values())
        return nodes if runs and len(nodes) == WORKERS else {}

    async def set_condition(self, node: str, kind: str, status: str) -> None:
        """Write one Condition of a node."""
        said = {"type": kind, "status": status, "reason": kind, "message": "7 of 8"}
        body = {"status": {"conditions": [{**said, "lastHeartbeatTime": clock.SYSTEM.wall().isoformat()}]}}
        await self.admin.patch(NODES, node, body, subresource="status", content_type=STRATEGIC_PATCH)

    async def assigned(self) -> set[str]:
        """The nodes that Kueue has chosen for the job."""
        (workload,) = await self.admin.list_all(WORKLOADS, namespace=TEAM)
        (part,) = workload["status"]["admission"]["podSetAssignments"]
        parts = [values for each in part["topologyAssignment"]["slices"] for values in each["valuesPerLevel"]]
        return {name for values in parts for name in named(values)}

    async def operations(self, node: str) -> list[str]:
        """The operations whose Pods run on a node."""
        pods = await self.admin.list_all(PODS, namespace=names.OPERATIONS_NAMESPACE)
        return [pod["metadata"]["labels"][names.OPERATION_LABEL] for pod in pods if pod["spec"].get("nodeName") == node]

    async def rack(self, node: str) -> str:
        """The rack of a node."""
        label: str = (await self.admin.get(NODES, node))["metadata"]["labels"][RACK]
        return label


class Endless(ControlPlane):
    """The Pods of a Job run until somebody ends them, and then they have failed."""

    def _kwok_flags(self, port: int) -> list[str]:
        flags = [flag for flag in super()._kwok_flags(port) if not flag.endswith(LEFT_OUT)]
        return [*flags, f"--config={Path(__file__).with_name('jobs.yaml')}"]


@pytest.fixture
def plane() -> Iterator[Endless]:
    try:
        binary("kueue")
    except NotBuilt as why:
        pytest.skip(str(why))
    with Endless() as plane:
        yield plane


@pytest.fixture
async def world(plane: ControlPlane, tmp_path: Path) -> AsyncIterator[World]:
    """Two racks, of six nodes and of two, a queue of Kueue's over them, and the controller."""
    async with connected(plane.kubeconfig) as admin, kueue(plane, admin, tmp_path):
        await deploy(admin, only_gpu_lost)
        await admin.delete(TEMPLATES, names.DIAGNOSTICS_TEMPLATE)  # no program runs on these nodes
        for index in (0, 1, 2, 3, 4, 5, 8, 9):
            await admin.create(NODES, {**gpu_node(index), "spec": {"taints": [TAINT]}})
        await admin.create(NAMESPACES, {"metadata": {"name": TEAM}})
        await create(admin, *QUEUES)
        async with controller(plane, admin, tmp_path):
            yield World(admin)


async def test_kueue_replaces_the_node_that_a_case_drains_once_it_is_down(world: World) -> None:
    await create(world.admin, job())
    before = await until(world.running, SECONDS)
    assert set(before.values()) == await world.assigned(), "each worker has a node of its own"
    assert {await world.rack(node) for node in before.values()} == {"rack-0"}
    index, sick = next(iter(before.items()))
    await world.set_condition(sick, "GpuLost", "True")

    async def rebooting() -> bool:
        return await world.operations(sick) == ["reboot"]

    async def waiting() -> Object | None:
        pod = (await world.workers()).get(index)
        return pod if pod and not pod["spec"].get("schedulingGates") and not pod["spec"].get("nodeName") else None

    async def replaced() -> bool:
        if condition_status(await world.admin.get(NODES, sick), "Ready") == "True":  # KWOK was faster
            await world.set_condition(sick, "Ready", "Unknown")
        return sick not in await world.assigned()

    await until(rebooting, SECONDS)
    pod = await until(waiting, SECONDS)
    assert pod["spec"]["nodeSelector"][HOST] == sick, "while the node is up, its Pod is made again for it"
    await world.admin.patch(NODES, sick, {"metadata": {"annotations": {"kwok.x-k8s.io/node": None}}})
    await until(replaced, SECONDS)
    await world.admin.delete(PODS, pod["metadata"]["name"], namespace=TEAM)  # as the page says
    after = await until(world.running, SECONDS)
    assert set(after.values()) == await world.assigned()
    assert {await world.rack(node) for node in after.values()} == {"rack-0"}
    assert set(before.values()) - set(after.values()) == {sick}, "the others stay where they are"
