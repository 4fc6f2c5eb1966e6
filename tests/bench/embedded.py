"""A cluster too large for the real control plane on one machine: the embedded API server in this process, over HTTPS.

What stands there is what `measured.fleet` has: everything in deploy/, what the benchmark adds and leaves out, nodes of
the same size, and their heartbeats.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import yaml

from remediator.kube import api
from remediator.kube.wire.client import Client
from remediator_sim import manifests
from remediator_sim.apiserver import EmbeddedServer
from tests.bench import cluster, features, measured
from tests.bench.numbers import stamp
from tests.cluster.nodes import gpu_node
from tests.harness.kinds import Object

CREATED = "2026-11-01T00:00:00Z"


class Plane(NamedTuple):
    """Where the server is reached: everybody is an administrator there."""

    kubeconfig: Path

    def kubeconfig_for(self, user: str, groups: Sequence[str] = ()) -> Path:
        """The one kubeconfig that there is."""
        return self.kubeconfig


@asynccontextmanager
async def fleet(nodes: int) -> AsyncIterator[tuple[Plane, Client, list[str]]]:
    """A server with that many nodes, a client of it, their names, and heartbeats."""
    server = EmbeddedServer()
    client = Client(server.transport())
    await manifests.deploy(client, lambda document: document)
    for template in cluster.LEFT_OUT:
        await client.delete(api.TEMPLATE, template)
    for policy in cluster.WITHOUT_IT:
        await client.delete(api.POLICY, policy)
    added = yaml.safe_load_all(cluster.MANIFESTS.read_text())
    ours = [body for body in added if body["apiVersion"] == api.POLICY.api_version]
    await manifests.create(client, *ours, *features.policies())
    names = [_put(server, gpu_node(index)) for index in range(nodes)]
    async with server.serve() as endpoint, measured.heartbeats(client, names):
        yield Plane(endpoint.kubeconfig), client, names


def _put(server: EmbeddedServer, node: Object) -> str:
    name: str = node["metadata"]["name"]
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "", "lastTransitionTime": CREATED}
    node["metadata"] |= {"uid": f"uid-{name}", "creationTimestamp": CREATED}
    node["spec"] = {}
    node["status"] |= {"conditions": [ready | {"lastHeartbeatTime": stamp()}], "nodeInfo": {"bootID": f"boot-{name}"}}
    server.cluster.put("nodes", node)
    return name
