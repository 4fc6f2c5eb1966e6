"""An API server in memory with our kinds, for tests of what runs in the controller's process."""

from typing import Any

import msgspec

from remediator.kube import api
from remediator.kube.manifests import crd
from remediator.kube.wire.client import Client, Kind
from remediator.kube.wire.transport import MERGE_PATCH
from remediator_sim.apiserver import EmbeddedServer
from tests.harness.kinds import CRDS


class MemoryCluster:
    """The server and a client of an administrator; `prepare` makes the kinds."""

    def __init__(self, server: EmbeddedServer | None = None) -> None:
        self.server = server or EmbeddedServer()
        self.client = Client(self.server.transport())

    async def prepare(self) -> None:
        """Let the server know our kinds."""
        for kind in api.KINDS:
            await self.client.create(CRDS, crd.crd(kind))

    async def newer(self, kind: Kind[Any], name: str, subresource: str = "", **body: Any) -> None:
        """Write what a version of ours that is newer may write: no schema of this one holds it back."""
        path = CRDS.path(f"{kind.plural}.{kind.group}")
        definition = msgspec.json.decode((await self.client.transport.request("GET", path)).body)
        for version in definition["spec"]["versions"]:
            version["schema"] = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
        await self.client.send("PUT", path, dict, definition)
        body = msgspec.json.encode(body)
        path = kind.path(name, "", subresource)
        await self.client.transport.request("PATCH", path, body=body, content_type=MERGE_PATCH)

    async def make(self, kind: Kind[Any], name: str, **spec: Any) -> None:
        """Create one of our objects."""
        body = {"apiVersion": kind.api_version, "kind": kind.name, "metadata": {"name": name}, "spec": spec}
        await self.client.create(kind, body)
