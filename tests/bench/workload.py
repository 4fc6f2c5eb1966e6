"""Nodes full of Pods that KWOK plays, cases that hold the nodes, and what the API server has counted of evictions."""

import asyncio
import json
import re
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from remediator.kube.wire.client import Client, check
from remediator.kube.wire.http import HttpTransport
from remediator_sim.accounts import token
from tests.bench import cluster
from tests.bench.drains import ACCOUNT, CASE_UID, NAMESPACE, Access
from tests.cluster.control_plane import ControlPlane
from tests.harness.kinds import ACCOUNTS, NAMESPACES, NODES, OPERATIONS, PODS
from tests.harness.waiting import until

SPACE = "bench"
DRAIN_POD = "drain"  # which all drains speak as
LEASE_SECONDS = 200  # of the nodes
AT_ONCE = 20
WAIT_SECONDS = 300.0


class Workload(NamedTuple):
    """What is up: clients of an administrator and of the controller, how drains reach the server, nodes and Pods."""

    client: Client
    controller: Client
    access: Access
    nodes: list[str]
    per_node: int

    async def fill(self, kind: str) -> None:
        """Make the Pods, and wait until all of them run.

        `kind` is part of their names: KWOK, which is late under load, ends a Pod by name, also a later one.
        """
        bodies = [_pod(node, f"{node}-{kind}-{index}") for node in self.nodes for index in range(self.per_node)]
        for at in range(0, len(bodies), AT_ONCE):
            made = bodies[at : at + AT_ONCE]
            await asyncio.gather(*(self.client.create(PODS, body, namespace=SPACE) for body in made))
        await until(lambda: self.none("status.phase!=Running"), WAIT_SECONDS)

    async def empty(self) -> None:
        """Wait until no Pod is left."""
        await until(self.none, WAIT_SECONDS)

    async def none(self, fields: str = "") -> bool:
        """Whether no Pod matches."""
        asked = [("limit", "1"), ("fieldSelector", fields)]
        reply = check(await self.client.transport.request("GET", PODS.path("", SPACE), query=asked))
        return not json.loads(reply.body)["items"]

    async def uids(self) -> dict[str, str]:
        """The uid of each Pod by its name."""
        pods = await self.client.list_all(PODS, namespace=SPACE)
        return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in pods}

    async def claims(self) -> dict[str, dict[str, Any]]:
        """Let a case hold every node; the NodeOperation of each, by node."""
        return {node: await self._claim(node) for node in self.nodes}

    async def _claim(self, node: str) -> dict[str, Any]:
        taint = {"key": "remediator.dev/case", "value": CASE_UID, "effect": "NoSchedule"}
        uid = (await self.client.patch(NODES, node, {"spec": {"unschedulable": True, "taints": [taint]}}))["metadata"][
            "uid"
        ]
        spec = {"nodeName": node, "nodeUID": uid, "caseUID": CASE_UID, "attempt": 1, "templateName": "bench"}
        body = {"apiVersion": OPERATIONS.api_version, "kind": OPERATIONS.name, "metadata": {"name": node}}
        made = await self.controller.create(OPERATIONS, {**body, "spec": spec})
        await self.controller.patch(OPERATIONS, node, {"status": {"drainPod": DRAIN_POD}}, subresource="status")
        return made

    async def calls(self) -> dict[str, int]:
        """Evictions that the API server has been asked for since its start, by the code of its answer."""
        reply = check(await self.client.transport.request("GET", "/metrics", timeout=60))
        return calls_of(reply.body.decode())


@asynccontextmanager
async def running(nodes: int, per_node: int) -> AsyncIterator[Workload]:
    """A control plane with everything in deploy/ and that many nodes; no Pod yet."""
    with (
        ControlPlane(controllers=False, scheduler=False, lease_seconds=LEASE_SECONDS) as plane,
        tempfile.TemporaryDirectory(prefix="drain-") as folder,
    ):
        cluster.apply(plane)
        transport = await HttpTransport.from_kubeconfig(plane.kubeconfig)
        client = Client(transport)
        try:
            names = await cluster.populate(client, nodes)
            await client.create(NAMESPACES, {"metadata": {"name": SPACE}})
            await client.create(ACCOUNTS, {"metadata": {"name": "default"}}, namespace=SPACE)
            access = Access.lay_out(plane.url, Path(folder), await _token(client, plane), plane.ca_file)
            async with cluster.as_controller(plane) as controller:
                yield Workload(client, controller, access, names, per_node)
        finally:
            await transport.close()


def calls_of(metrics: str) -> dict[str, int]:
    """Evictions by the code of the answer, from what the API server says at /metrics."""
    counted = [line for line in metrics.splitlines() if line.startswith(_COUNTED) and 'subresource="eviction"' in line]
    codes = [re.findall(r'code="(\d+)"', line)[0] for line in counted]
    return {
        code: sum(int(float(line.split()[-1])) for line, said in zip(counted, codes, strict=True) if said == code)
        for code in sorted(set(codes))
    }


_COUNTED = "apiserver_request_total{"


def _pod(node: str, name: str) -> dict[str, Any]:
    spec = {"nodeName": node, "automountServiceAccountToken": False, "containers": [{"name": "main", "image": "none"}]}
    meta = {"name": name, "annotations": {"remediator.dev/evict": "true"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


async def _token(client: Client, plane: ControlPlane) -> str:
    """A token of the drains' account that is bound to a Pod, as a kubelet asks for one."""
    made = _pod("", DRAIN_POD)
    made["spec"] = {"serviceAccountName": ACCOUNT, "containers": made["spec"]["containers"]}
    transport = await HttpTransport.from_kubeconfig(plane.kubeconfig_for(cluster.CONTROLLER, cluster.ACCOUNTS))
    try:
        pod = await Client(transport).create(PODS, made, namespace=NAMESPACE)
    finally:
        await transport.close()
    bound = {"apiVersion": "v1", "kind": "Pod", "name": DRAIN_POD, "uid": pod["metadata"]["uid"]}
    return await token(client, ACCOUNT, NAMESPACE, bound, 7200)
