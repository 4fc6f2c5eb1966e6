"""A node whose Lease stops: Ready=Unknown by the real node lifecycle controller, and all that follows, but its BMC."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from remediator.core import names
from remediator.kube.wire.client import Kind
from remediator.kube.wire.transport import STRATEGIC_PATCH
from remediator_sim.plain import NODES, PODS, Object
from tests.cluster import REAL
from tests.cluster.control_plane import ControlPlane
from tests.cluster.e2e.stage import SYSTEM, Stage
from tests.cluster.nodes import gpu_node
from tests.cluster.servers import serving
from tests.harness.kinds import POLICIES, TEMPLATES
from tests.harness.objects import SYSTEM_UUID
from tests.harness.waiting import until
from tests.operations.fake_bmc import FakeBmc

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(240)]
NODE = "gpu-5"
OUT = "node.kubernetes.io/out-of-service"
ATTACHMENTS = Kind("storage.k8s.io", "v1", "volumeattachments", "VolumeAttachment", Object)


class Impatient(ControlPlane):
    """KWOK renews Leases that are good for 8 seconds, and a kubelet is silent after 10."""

    def __init__(self) -> None:
        super().__init__(lease_seconds=8, silent_seconds=10)

    def kubelets(self, number: signal.Signals) -> None:
        """Stop KWOK, which plays the only node, or let it go on."""
        (kwok,) = [running for running in self.running if running.name == "kwok"]
        os.kill(kwok.pid, number)


@pytest.fixture(scope="module")
def control_plane() -> Iterator[Impatient]:
    """One of these tests alone."""
    with Impatient() as plane:
        yield plane


@pytest.fixture(params=[REAL], ids=["real"])
async def stage(request: pytest.FixtureRequest, tmp_path: Path, library: Path) -> AsyncIterator[Stage]:
    """A stage without machines of its own: KWOK plays the nodes."""
    async with serving(request.param, request) as server, Stage(server, tmp_path, library, []) as stage:
        yield stage


@pytest.fixture
def bmc(tmp_path: Path) -> Iterator[FakeBmc]:
    """The BMC of gpu-5, by HTTPS."""
    server = FakeBmc(tmp_path / "bmc-state")
    server.slow_on = 5.0
    yield server
    server.close()


async def boots(stage: Stage, name: str, boot: str) -> None:
    """Its kubelet says in which boot it is, and of which machine."""
    body = {"status": {"nodeInfo": {"bootID": boot, "systemUUID": SYSTEM_UUID}}}
    await stage.client.patch(NODES, name, body, subresource="status", content_type=STRATEGIC_PATCH)


async def prepare(stage: Stage, bmc: FakeBmc, folder: Path) -> None:
    """The node, its BMC, a Pod and a volume on it; the shipped policy with short times."""
    await stage.client.create(NODES, gpu_node(5))
    await until(lambda: stage.condition(NODE, "Ready", "True"), 30)
    await boots(stage, NODE, "boot-1")
    template = await stage.client.get(TEMPLATES, "power-cycle")
    container = template["spec"]["podTemplate"]["spec"]["containers"][0]
    container["env"] = [{"name": "BMC_DIR", "value": str(bmc.mount(folder))}]
    await stage.client.patch(TEMPLATES, "power-cycle", {"spec": {"podTemplate": template["spec"]["podTemplate"]}})
    parameters = {"offSeconds": "1", "detachSeconds": "40"}
    ladder = [{"operation": "power-cycle", "attempts": 2, "parameters": parameters}]
    verify = {"settle": "2s", "fresh": "1s", "timeout": "3m"}
    await stage.client.patch(POLICIES, "node-unreachable", {"spec": {"ladder": ladder, "verify": verify}})
    pod = {"nodeName": NODE, "containers": [{"name": "main", "image": "train"}], "terminationGracePeriodSeconds": 30}
    await stage.client.create(PODS, {"metadata": {"name": "worker"}, "spec": pod}, namespace="default")
    volume = {"attacher": "csi.example", "nodeName": NODE, "source": {"persistentVolumeName": "data"}}
    await stage.client.create(ATTACHMENTS, {"metadata": {"name": "data"}, "spec": volume})


@asynccontextmanager
async def beating(stage: Stage, boot: str) -> AsyncIterator[None]:
    """Its kubelet says each second that it is Ready, and in which boot.

    KWOK says so every few minutes, and writes the boot that it knew before it was stopped.
    """

    async def beat() -> None:
        while True:
            await boots(stage, NODE, boot)
            ready = await stage.condition(NODE, "Ready", "True")
            now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            body = {"status": {"conditions": [(ready or {}) | {"type": "Ready", "lastHeartbeatTime": now}]}}
            if ready:
                await stage.client.patch(NODES, NODE, body, subresource="status", content_type=STRATEGIC_PATCH)
            await asyncio.sleep(1)

    task = asyncio.ensure_future(beat())
    try:
        yield
    finally:
        task.cancel()


async def back_in_service(stage: Stage) -> bool:
    """Whether the node is declared out of service no more."""
    return OUT not in await taints(stage, NODE)


async def taints(stage: Stage, name: str) -> dict[str, Any]:
    found = (await stage.node(name))["spec"].get("taints") or []
    return {taint["key"]: taint.get("value") for taint in found}


async def pods_of(stage: Stage) -> list[str]:
    return [pod["metadata"]["name"] for pod in await stage.client.list_all(PODS, namespace="default")]


async def test_a_node_whose_lease_stops_is_power_cycled_its_pods_go_elsewhere_and_it_comes_back(
    stage: Stage, bmc: FakeBmc, tmp_path: Path, control_plane: Impatient
) -> None:
    await prepare(stage, bmc, tmp_path / "bmc")
    await stage.start_controller()
    await asyncio.sleep(3)
    assert await stage.case(NODE, "", "Held", "Draining") is None

    control_plane.kubelets(signal.SIGSTOP)
    await until(lambda: stage.condition(NODE, "Ready", "Unknown"), 60)
    await until(lambda: bmc.resets, 90)
    assert bmc.resets == ["ForceOff"]

    async def declared() -> bool:
        return (await taints(stage, NODE)).get(OUT) == "nodeshutdown"

    await until(declared, 30)
    assert bmc.power() == "Off", "it is set while the power is proven to be off"
    notes = (await stage.node(NODE))["metadata"]["annotations"]
    assert notes[names.OUT_OF_SERVICE_BOOT] == "boot-1"

    async def gone() -> bool:
        return "worker" not in await pods_of(stage)

    await until(gone, 60)  # by force: nobody is there to end it
    await stage.client.delete(ATTACHMENTS, "data")
    await until(lambda: "On" in bmc.resets, 60)

    await boots(stage, NODE, "boot-2")
    control_plane.kubelets(signal.SIGCONT)
    async with beating(stage, "boot-2"):
        case = await until(lambda: stage.over(NODE), 90)
        await until(lambda: back_in_service(stage), 30)  # by a pass over the node, whatever the case does
    assert case["status"]["phase"] == "Recovered", json.dumps(case["status"])
    (attempt,) = case["status"]["attempts"]
    assert (attempt["template"], attempt["outcome"], attempt["intent"]["bootID"]) == (
        "power-cycle",
        "Succeeded",
        "boot-1",
    )
    assert bmc.resets == ["ForceOff", "On"]
    assert names.OUT_OF_SERVICE_BOOT not in (await stage.node(NODE))["metadata"]["annotations"]
    made = [pod.body for pod in stage.tape.find("POST", "pods")]
    assert [pod["metadata"]["labels"][names.OPERATION_LABEL] for pod in made] == ["power-cycle"]
    assert made[0]["spec"].get("nodeName") != NODE
    assert SYSTEM != NODE
