"""What a driver of DRA taints on a real API server, with the rights that the controller's account has there."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from remediator import clock
from remediator.app import elector
from remediator.controller.run import Controller
from remediator.core import names
from remediator.core.devices import CONDITION
from remediator.kube.api import devices
from remediator.kube.informers import Informers
from remediator.kube.runtime.leader import Leader
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client
from remediator.kube.wire.http import HttpTransport
from remediator.kube.wire.transport import STRATEGIC_PATCH
from remediator.settings import Settings
from remediator_sim.accounts import token
from remediator_sim.kubeconfig import write_kubeconfig
from remediator_sim.manifests import create, deploy, documents
from tests.cluster.control_plane import ControlPlane
from tests.cluster.nodes import gpu_node
from tests.harness.kinds import CASES, NODES, plain
from tests.harness.replica import at_work
from tests.harness.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180)]
SLICES = plain(devices.RESOURCE_SLICE)
NODE, SECONDS = "gpu-1", 60.0
TAINT = {"key": "gpu.nvidia.com/xid", "value": "79", "effect": "NoSchedule"}


def tainted(*taints: dict[str, str], generation: int = 1) -> dict[str, Any]:
    """The spec of a slice with one GPU."""
    gpu = {"name": "gpu-0", "attributes": {"uuid": {"string": "GPU-9f3c01ab"}}, "taints": list(taints)}
    pool = {"name": NODE, "generation": generation, "resourceSliceCount": 1}
    return {"driver": "gpu.nvidia.com", "nodeName": NODE, "pool": pool, "devices": [gpu]}


def without_policies(document: dict[str, Any]) -> dict[str, Any] | None:
    return None if document["kind"] == "RemediationPolicy" else document


def asking() -> dict[str, Any]:
    """The policy of the examples, but without a tolerance."""
    (policy,) = documents(["deploy/examples/gpu-device-tainted.yaml"])
    policy["spec"]["when"][0]["for"] = "0s"
    return policy


@asynccontextmanager
async def connected(kubeconfig) -> AsyncIterator[Client]:
    transport = await HttpTransport.from_kubeconfig(kubeconfig)
    try:
        yield Client(transport)
    finally:
        await transport.close()


@pytest.fixture
async def admin_and_ours(tmp_path) -> AsyncIterator[tuple[Client, Client]]:
    """The administrator, and the controller's account with all that is shipped to hold it."""
    with ControlPlane(controllers=False, scheduler=False) as plane:
        async with connected(plane.kubeconfig) as admin:
            await deploy(admin, without_policies)
            await create(admin, asking())
            await admin.create(NODES, gpu_node(1))
            granted = await token(admin, "remediator", names.SYSTEM_NAMESPACE)
            ours = write_kubeconfig(tmp_path, "controller", plane.url, granted, plane.ca_file)
            async with connected(ours) as client:
                yield admin, client


@asynccontextmanager
async def controller(client: Client) -> AsyncIterator[None]:
    settings = Settings(device_taints=True)
    informers = Informers(client, clock.SYSTEM, settings.namespaces)
    leader = Leader(elector(client, settings, clock.SYSTEM), clock.SYSTEM)
    Controller(client, settings, informers, leader, clock.SYSTEM)
    async with at_work(informers.run(), leader.run()):
        yield


async def test_its_taint_becomes_a_condition_and_a_case_and_nothing_else_of_the_status_may_be_written(admin_and_ours):
    admin, ours = admin_and_ours

    async def condition() -> dict[str, str]:
        conditions = (await admin.get(NODES, NODE))["status"].get("conditions") or []
        return next((each for each in conditions if each["type"] == CONDITION), {"status": ""})

    async def says(status: str) -> bool:
        return (await condition())["status"] == status

    await until(lambda: _ready(admin), SECONDS)
    async with controller(ours):
        await admin.create(SLICES, {"metadata": {"name": "slice-1"}, "spec": tainted()})
        await until(lambda: says("False"), SECONDS)
        await admin.patch(SLICES, "slice-1", {"spec": tainted(TAINT, generation=2)})
        await until(lambda: says("True"), SECONDS)
        assert (await condition())["reason"] == "gpu.nvidia.com/xid"
        (case,) = await until(lambda: admin.list_all(CASES), SECONDS)
        assert case["spec"]["trigger"]["message"] == "gpu-0 (GPU-9f3c01ab) gpu.nvidia.com/xid=79:NoSchedule"
        await admin.delete(SLICES, "slice-1")
        await until(lambda: says("Unknown"), SECONDS)
    forged = {"status": {"conditions": [{"type": "GpuLost", "status": "True"}]}}
    with pytest.raises(errors.ApiError, match="nothing of a Node's status but its Conditions"):
        await ours.patch(NODES, NODE, forged, content_type=STRATEGIC_PATCH, subresource="status")


async def _ready(admin: Client) -> bool:
    conditions = (await admin.get(NODES, NODE))["status"].get("conditions") or []
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
