"""The API servers that tests are given."""

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.cluster.control_plane import ControlPlane
from tests.cluster.servers import REAL, Server, serving


@pytest.fixture(scope="session")
def control_plane() -> Iterator[ControlPlane]:
    """A real control plane, shared by the session: tests take names and namespaces of their own."""
    with ControlPlane() as plane:
        yield plane


@pytest.fixture(params=["http", REAL])
async def server(request) -> AsyncIterator[Server]:
    """A server that is reached by HTTPS."""
    async with serving(request.param, request) as server:
        yield server
