"""What a claim does to a node that the real controllers of Kubernetes look after."""

import uuid

import pytest

from remediator.controller import marks
from remediator.core.node import Taint
from remediator.kube.api import decode, encode
from remediator.kube.api.builtin import NODE
from remediator.kube.wire.client import Client
from remediator.kube.wire.http import HttpTransport
from tests.builders import a_case
from tests.cluster.control_plane import ControlPlane
from tests.cluster.nodes import gpu_node
from tests.harness.kinds import ACCOUNTS, DAEMON_SETS, NAMESPACES, NODES, PODS
from tests.harness.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180)]
SECONDS = 60.0


class Daemon:
    """A DaemonSet that tolerates nothing by itself, on one node of its own."""

    def __init__(self, client: Client) -> None:
        self.client, self.name = client, f"claim-{uuid.uuid4().hex[:6]}"

    async def start(self) -> None:
        body = gpu_node(1)
        body["metadata"] |= {"name": self.name, "labels": {"claim": self.name}}
        await self.client.create(NODES, body)
        await self.client.create(NAMESPACES, {"metadata": {"name": self.name}})
        await until(self._account, SECONDS)
        pod = {"nodeSelector": {"claim": self.name}, "containers": [{"name": "main", "image": "plugin:1"}]}
        spec = {
            "selector": {"matchLabels": {"app": "plugin"}},
            "template": {"metadata": {"labels": {"app": "plugin"}}, "spec": pod},
        }
        body = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "plugin"}, "spec": spec}
        await self.client.create(DAEMON_SETS, body, namespace=self.name)

    async def running(self, but: str = "") -> dict | None:
        """Its Pod that runs on the node, another one than `but`."""
        pods = await self.client.list_all(PODS, namespace=self.name)
        alive = [pod for pod in pods if pod["status"].get("phase") == "Running" and pod["metadata"]["name"] != but]
        return next((pod for pod in alive if pod["spec"].get("nodeName") == self.name), None)

    async def restart(self) -> dict:
        """Delete its Pod; the one that comes in its place."""
        old = (await until(self.running, SECONDS))["metadata"]["name"]
        await self.client.delete(PODS, old, namespace=self.name)
        return await until(lambda: self.running(old), SECONDS)

    async def remove(self) -> None:
        await self.client.delete(NAMESPACES, self.name)
        await self.client.delete(NODES, self.name)

    async def _account(self) -> bool:
        accounts = await self.client.list_all(ACCOUNTS, namespace=self.name)
        return any(account["metadata"]["name"] == "default" for account in accounts)


@pytest.fixture
async def daemon(control_plane: ControlPlane):
    transport = await HttpTransport.from_kubeconfig(control_plane.kubeconfig)
    daemon = Daemon(Client(transport))
    await daemon.start()
    try:
        yield daemon
    finally:
        await daemon.remove()
        await transport.close()


async def claim(daemon, change):
    """Write a change of the node as the controller does, again while the node moves under it."""
    live = decode.node(await daemon.client.get(NODE, daemon.name))
    case = a_case(node=daemon.name, node_uid=live.uid)
    await daemon.client.patch(NODE, daemon.name, change(case, live)(live))
    return case


async def test_the_pod_of_a_plain_daemon_set_comes_back_on_a_claimed_node(daemon):
    await until(daemon.running, SECONDS)
    case = await claim(daemon, marks.claim)
    node = decode.node(await daemon.client.get(NODE, daemon.name))
    assert (node.unschedulable, node.cordoned_by, node.case_uid) == (True, case.uid, case.uid)
    assert (await daemon.restart())["spec"]["nodeName"] == daemon.name
    await claim(daemon, lambda _, live: marks.release(case))
    node = decode.node(await daemon.client.get(NODE, daemon.name))
    assert (node.unschedulable, node.marks, node.scale_down_disabled) == (False, frozenset(), "")


async def test_a_taint_that_keeps_pods_off_would_keep_it_away(daemon):
    """Why the mark is no NoSchedule taint."""
    old = (await until(daemon.running, SECONDS))["metadata"]["name"]
    taint = Taint("remediator.dev/case", "uid", "NoSchedule")
    await claim(daemon, lambda case, live: lambda node: encode.node_marks(node, [*node.taints, taint]))
    await daemon.client.delete(PODS, old, namespace=daemon.name)

    async def wanted() -> bool:
        plugin = await daemon.client.get(DAEMON_SETS, "plugin", namespace=daemon.name)
        return plugin["status"]["desiredNumberScheduled"] == 0

    await until(wanted, SECONDS)
    assert await daemon.running(old) is None
