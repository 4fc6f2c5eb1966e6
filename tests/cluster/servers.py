"""The servers that tests speak to, by name: memory and http are the embedded one, real is a control plane."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from remediator.core import names
from remediator.kube.wire.client import Client
from remediator.kube.wire.http import HttpTransport
from remediator.kube.wire.transport import Transport
from remediator_sim.accounts import token
from remediator_sim.apiserver import EmbeddedServer
from remediator_sim.kubeconfig import write_kubeconfig


@dataclass(frozen=True)
class Server:
    """An API server as a test sees it. `url`, `ca_file` and `kubeconfig` are there where it is reached by HTTP."""

    name: str
    transport: Transport
    forget: Callable[[], None]
    url: str = ""
    ca_file: Path | None = None
    kubeconfig: Path | None = None

    @property
    def client(self) -> Client:
        return Client(self.transport)

    @asynccontextmanager
    async def controller(self) -> AsyncIterator[Client]:
        """A client with a token of the controller's account, which alone may write what it decides on."""
        if self.ca_file is None:
            yield self.client
            return
        async with controller_of(self.client, self.url, self.ca_file) as client:
            yield client


@asynccontextmanager
async def controller_of(admin: Client, url: str, ca_file: Path) -> AsyncIterator[Client]:
    """Speaks as the account of the controller: nobody else may write what it decides on."""
    ours = await token(admin, "remediator", names.SYSTEM_NAMESPACE)
    with TemporaryDirectory() as folder:
        kubeconfig = write_kubeconfig(Path(folder), "controller", url, ours, ca_file)
        transport = await HttpTransport.from_kubeconfig(kubeconfig)
        try:
            yield Client(transport)
        finally:
            await transport.close()


@asynccontextmanager
async def serving(name: str, request: pytest.FixtureRequest) -> AsyncIterator[Server]:
    """The server of that name: an embedded one is new each time, the real one is shared by the session."""
    if name == "real":
        plane = request.getfixturevalue("control_plane")
        async with _connected(name, plane, plane.compact) as server:
            yield server
        return
    embedded = EmbeddedServer()
    if name == "memory":
        yield Server(name, embedded.transport(), embedded.faults.drop_history)
        return
    async with (
        embedded.serve() as endpoint,
        _connected(name, endpoint, embedded.faults.drop_history) as server,
    ):
        yield server


@asynccontextmanager
async def _connected(name, endpoint, forget) -> AsyncIterator[Server]:
    transport = await HttpTransport.from_kubeconfig(endpoint.kubeconfig)
    try:
        yield Server(name, transport, forget, endpoint.url, endpoint.ca_file, endpoint.kubeconfig)
    finally:
        await transport.close()
