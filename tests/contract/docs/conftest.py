"""A simulated node whose faults the pages show, and a control plane that nobody else writes to."""

from collections.abc import Iterator

import pytest

from tests.cluster.control_plane import ControlPlane
from tests.contract.docs.terminal import sick_node


@pytest.fixture
async def machine(tmp_path):
    async with sick_node(tmp_path) as machine:
        yield machine


@pytest.fixture(scope="module")
def control_plane() -> Iterator[ControlPlane]:
    """Without controllers: what is laid out stays as it is."""
    with ControlPlane(controllers=False, scheduler=False, kwok=False) as plane:
        yield plane
