"""An API server in memory with our kinds, for tests of what runs in the controller's process."""

from collections.abc import Coroutine
from functools import cache
from typing import Any, TypeVar

import msgspec

from remediator.kube import api
from remediator.kube.manifests import crd
from remediator.kube.wire.client import Client, Kind
from remediator.kube.wire.transport import MERGE_PATCH
from remediator_sim.apiserver import EmbeddedServer
from tests.harness.kinds import CRDS

T = TypeVar("T")


def at_once(work: Coroutine[Any, Any, T]) -> T:
    """Do what waits for nobody but a server in memory, which answers at once: inside a loop, or without one."""
    try:
        while True:
            work.send(None)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


@cache
def with_kinds() -> EmbeddedServer:
    """A server that knows our kinds; made once in a process, for others to be like it."""
    server = EmbeddedServer()
    client = Client(server.transport())
    for kind in api.KINDS:
        at_once(client.create(CRDS, crd.crd(kind)))
    return server


class MemoryCluster:
    """The server, one that knows our kinds, and a client of an administrator."""

    def __init__(self, server: EmbeddedServer | None = None) -> None:
        self.server = server or EmbeddedServer(like=with_kinds())
        self.client = Client(self.server.transport())

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
