"""Other detectors, as the Pods that policies name in `reportedBy`: one of a DaemonSet on each node, Ready or not."""

import asyncio
from contextlib import suppress
from typing import Any

from remediator.kube.wire import errors
from remediator.kube.wire.client import Client
from remediator.kube.wire.transport import STRATEGIC_PATCH
from remediator_sim.apiserver import EmbeddedServer
from remediator_sim.manifests import Document
from remediator_sim.plain import PODS, SPACES, Object, condition_status
from remediator_sim.simulation.node import NodeModel

SPACE, LABELS = "monitoring", {"app": "monitor"}
NAMED: Document = {"namespace": SPACE, "matchLabels": LABELS}  # as a policy names them
OWNER = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "monitor", "uid": "monitor", "controller": True}
EVERY = 20.0  # seconds between two looks at the Pods


def when(condition: str, stale_after: str) -> list[Document]:
    """What a policy says of a Condition that these Pods write."""
    return [{"condition": condition, "for": "1m", "staleAfter": stale_after, "reportedBy": NAMED}]


class Reporters:
    """They come back on every node that runs, and are not Ready on those that are `silent`."""

    def __init__(self, server: EmbeddedServer, client: Client, nodes: dict[str, NodeModel]) -> None:
        self.silent: set[str] = set()
        self._server, self._client, self._nodes = server, client, nodes

    async def run(self) -> None:
        """Keep them, until cancelled."""
        await self._client.create(SPACES, {"metadata": {"name": SPACE}})
        while True:
            for node in self._nodes:
                with suppress(errors.ApiError):
                    await self._keep(node)
            await asyncio.sleep(EVERY)

    async def _keep(self, node: str) -> None:
        """Make the Pod of a node, make it anew where it has ended, and let it say whether it is Ready."""
        name, model = f"monitor-{node}", self._nodes[node]
        entry = self._server.cluster.find("pods", SPACE, name)
        if entry is None:
            await self._make(name, node)
        elif entry.obj["status"].get("phase") in ("Failed", "Succeeded"):
            await self._client.transport.request("DELETE", PODS.path(name, SPACE), body=b'{"gracePeriodSeconds": 0}')
        elif entry.obj["status"].get("phase") == "Running":
            await self._say(entry.obj, "True" if model.alive and node not in self.silent else "False")

    async def _make(self, name: str, node: str) -> None:
        spec: dict[str, Any] = {"nodeName": node, "containers": [{"name": "main", "image": "monitor"}]}
        meta = {"name": name, "labels": LABELS, "ownerReferences": [OWNER]}
        if self._nodes[node].alive and self._server.cluster.find("nodes", "", node):
            await self._client.create(PODS, {"metadata": meta, "spec": spec}, namespace=SPACE)

    async def _say(self, pod: Object, status: str) -> None:
        if condition_status(pod, "Ready") == status:
            return
        body = {"status": {"conditions": [{"type": "Ready", "status": status}]}}
        name = pod["metadata"]["name"]
        how: dict[str, Any] = {"namespace": SPACE, "subresource": "status", "content_type": STRATEGIC_PATCH}
        await self._client.patch(PODS, name, body, **how)
