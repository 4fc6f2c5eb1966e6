"""What real DaemonSets tell of nodes: their controller makes and deletes the Pods, the scheduler places them."""

import uuid
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from remediator.core import names
from remediator.kube import api
from remediator.kube.wire.client import Client
from remediator.kube.wire.http import HttpTransport
from remediator.kube.wire.transport import STRATEGIC_PATCH
from remediator_sim.plain import condition
from tests.cluster.control_plane import ControlPlane
from tests.cluster.nodes import gpu_node
from tests.cluster.test_idle_tests import define, has_account, make
from tests.harness.controller import running
from tests.harness.kinds import CASES, DAEMON_SETS, NAMESPACES, NODES, POLICIES
from tests.harness.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]
SECONDS = 120.0
FOREIGN = "AcceleratedHardwareReady"


@pytest.fixture
async def stage(control_plane: ControlPlane) -> AsyncIterator[SimpleNamespace]:
    """Two nodes, of which the DaemonSet `agent` wants the first; both show a fault that is written on change only."""
    transport = await HttpTransport.from_kubeconfig(control_plane.kubeconfig)
    client, mark = Client(transport), f"d{uuid.uuid4().hex[:6]}"
    stage = SimpleNamespace(client=client, mark=mark, namespaces=names.Namespaces(f"{mark}-system", f"{mark}-work"))
    stage.nodes = [f"{mark}-1", f"{mark}-2"]
    await define(client)
    for space in (stage.namespaces.system, stage.namespaces.operations):
        await client.create(NAMESPACES, {"metadata": {"name": space}})
        await until(lambda space=space: has_account(client, space), SECONDS)
    for index, name in enumerate(stage.nodes):
        body = gpu_node(index)
        body["metadata"] |= {"name": name, "labels": {"fleet": mark} | ({"agent": mark} if index == 0 else {})}
        await client.create(NODES, body)
        await shows(stage, name)
    agents = {"namespace": stage.namespaces.system, "matchLabels": {"app": "agent"}}
    written = {"condition": FOREIGN, "status": "False", "for": "0s", "staleAfter": "0s", "reportedBy": agents}
    for policy, entry in (("foreign", written), ("agent", {"noReadyPod": agents, "for": "1s"})):
        spec = {"nodeSelector": {"matchLabels": {"fleet": mark}}, "when": [entry], "ladder": [{"operation": "reboot"}]}
        await make(client, api.POLICY, POLICIES, f"{mark}-{policy}", spec | {"mode": "DryRun"})
    try:
        yield stage
    finally:
        for policy in ("foreign", "agent"):
            await client.delete(POLICIES, f"{mark}-{policy}")
        for space in (stage.namespaces.system, stage.namespaces.operations):
            await client.delete(NAMESPACES, space)
        for name in stage.nodes:
            await client.delete(NODES, name)
        await transport.close()


async def shows(stage: SimpleNamespace, node: str) -> None:
    """Somebody else's detector says once that the node is sick, as it did long ago."""
    said = {"type": FOREIGN, "status": "False", "reason": "Xid", "message": "GPU 3"}
    times = dict.fromkeys(("lastTransitionTime", "lastHeartbeatTime"), "2026-01-01T00:00:00Z")
    body = {"status": {"conditions": [said | times]}}
    await stage.client.patch(NODES, node, body, subresource="status", content_type=STRATEGIC_PATCH)


async def agents_run(stage: SimpleNamespace) -> None:
    """The DaemonSet of the agent, on all nodes with its label."""
    pod = {"containers": [{"name": "agent", "image": "agent:1"}], "nodeSelector": {"agent": stage.mark}}
    labels = {"app": "agent"}
    template = {"metadata": {"labels": labels}, "spec": pod}
    body = {"metadata": {"name": "agent"}, "spec": {"selector": {"matchLabels": labels}, "template": template}}
    await stage.client.create(DAEMON_SETS, body, namespace=stage.namespaces.system)


async def alive(stage: SimpleNamespace, node: str) -> tuple[str, str] | None:
    """What is said on the node of its agent."""
    said = condition(await stage.client.get(NODES, node), f"ReportedBy/{stage.namespaces.system}/app=agent")
    return said and (said["status"], said["reason"])


async def opened(stage: SimpleNamespace) -> set[tuple[str, str]]:
    """Which cases are open: the last words of policy and node."""
    cases = [case for case in await stage.client.list_all(CASES) if case["spec"]["nodeName"] in stage.nodes]
    standing = [case["spec"] for case in cases if not case.get("status", {}).get("endedAt")]
    return {(spec["policyName"].split("-")[-1], spec["nodeName"][-1]) for spec in standing}


async def label(stage: SimpleNamespace, node: str, value: Any) -> None:
    await stage.client.patch(NODES, node, {"metadata": {"labels": {"agent": value}}})


async def test_a_fault_is_believed_where_the_daemon_set_of_its_writer_is_ready_and_a_node_without_its_pod_is_sick(
    stage: SimpleNamespace,
) -> None:
    first, second = stage.nodes

    async def said(one: tuple[str, str], other: tuple[str, str]) -> bool:
        return (await alive(stage, first), await alive(stage, second)) == (one, other)

    async def open_are(*wanted: tuple[str, str]) -> bool:
        return await opened(stage) == set(wanted)

    nobody, ready, away = ("Unknown", "NoSuchPod"), ("True", "PodReady"), ("False", "NoPodReady")
    async with running(stage):
        await until(lambda: said(nobody, nobody), SECONDS)
        assert await opened(stage) == set(), "that no Pod exists at all is no fault of a node"

        await agents_run(stage)
        await until(lambda: said(ready, away), SECONDS)
        await until(lambda: open_are(("foreign", "1"), ("agent", "2")), SECONDS)

        await label(stage, second, stage.mark)
        await until(lambda: said(ready, ready), SECONDS)
        await until(lambda: open_are(("foreign", "1"), ("foreign", "2")), SECONDS)

        await label(stage, first, None)
        await until(lambda: said(away, ready), SECONDS)
        await until(lambda: open_are(("foreign", "1"), ("agent", "1"), ("foreign", "2")), SECONDS)
