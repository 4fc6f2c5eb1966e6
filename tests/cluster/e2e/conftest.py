"""A control plane of the end-to-end tests' own, and the scripted NVML."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.cluster import REAL
from tests.cluster.control_plane import ControlPlane
from tests.cluster.e2e.stage import Stage
from tests.cluster.servers import serving
from tests.native import build_stub

# Where samples are taken, the real one carries every story, and this one some: another part of them at each commit.
EMBEDDED = pytest.param("http", marks=pytest.mark.sampled("embedded stages", on_server=True))


@pytest.fixture(scope="session")
def control_plane() -> Iterator[ControlPlane]:
    """Ours alone: every node of it belongs to the stage that plays on it."""
    with ControlPlane(kwok=False, audit=True) as plane:
        yield plane


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scripted libnvidia-ml.so.1."""
    return build_stub(tmp_path_factory.mktemp("nvml"))


@pytest.fixture(params=[EMBEDDED, REAL], ids=["embedded", "real"])
async def stage(request: pytest.FixtureRequest, tmp_path: Path, library: Path) -> AsyncIterator[Stage]:
    """A stage with the nodes that the test's module names, and the detectors that it wants."""
    module = request.module
    async with (
        serving(request.param, request) as server,
        Stage(server, tmp_path, library, module.NODES, detectors=getattr(module, "DETECTORS", ("gpu_lost",))) as stage,
    ):
        yield stage
