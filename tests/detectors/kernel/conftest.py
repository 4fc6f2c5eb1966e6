"""File systems that tests stop, given free at the end whatever happened."""

import pytest
import pytest_asyncio

from tests.cluster.servers import serving
from tests.detectors.kernel.held import FrozenDisk, FuseMount


@pytest.fixture
def disk(tmp_path):
    """An ext4 that can be frozen."""
    disk = FrozenDisk(tmp_path / "frozen")
    yield disk
    disk.end()


@pytest.fixture
def fuse(tmp_path):
    """A FUSE mount that can hang."""
    mount = FuseMount(tmp_path / "hanging")
    yield mount
    mount.end()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(request):
    """A real API server."""
    async with serving("real", request) as one:
        yield one
