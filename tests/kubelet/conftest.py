"""The real nodes of the session, and clients with the rights of an administrator and of the controller."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from remediator.core import names
from remediator.kube.wire.client import Client
from remediator.kube.wire.http import HttpTransport
from remediator_sim.accounts import token
from remediator_sim.kubeconfig import write_kubeconfig
from tests.kubelet import programs
from tests.kubelet.cluster import Cluster


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two real nodes; skips, with the reason, where this machine cannot carry them."""
    try:
        path = programs.path()
    except programs.Missing as missing:
        pytest.skip(str(missing))
    with Cluster(tmp_path_factory.mktemp("nodes"), path) as cluster:
        yield cluster


@asynccontextmanager
async def connected(kubeconfig: Path) -> AsyncIterator[Client]:
    transport = await HttpTransport.from_kubeconfig(kubeconfig)
    try:
        yield Client(transport)
    finally:
        await transport.close()


@pytest.fixture
async def admin(cluster: Cluster) -> AsyncIterator[Client]:
    """With all rights."""
    async with connected(cluster.kubeconfig) as client:
        yield client


@pytest.fixture
async def controller(cluster: Cluster, admin: Client, tmp_path: Path) -> AsyncIterator[Client]:
    """With the rights of the controller, and no others."""
    url, ca_file = cluster.server
    granted = await token(admin, "remediator", names.SYSTEM_NAMESPACE)
    async with connected(write_kubeconfig(tmp_path, "controller", url, granted, ca_file)) as client:
        yield client
