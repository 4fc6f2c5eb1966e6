"""The API servers that tests are given; what they are made of is imported by the tests that want one."""

import os
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests.cluster import REAL
from tests.harness.examples import examples

if TYPE_CHECKING:
    from tests.cluster.control_plane import ControlPlane
    from tests.cluster.servers import Server

PLUGINS = (
    "changed_fakes durations forked_workers garbage interrupts logs no_browser one_worker sample scratch virtual_time"
)
pytest_plugins = [f"tests.plugins.{name}" for name in PLUGINS.split()]

# No deadline: a busy machine is not a bug. In CI the same examples every time; elsewhere fewer, and new ones.
settings.register_profile(
    "remediator", deadline=None, derandomize=bool(os.environ.get("CI")), max_examples=examples(100)
)
settings.load_profile("remediator")


@pytest.fixture(scope="session")
def control_plane() -> Iterator["ControlPlane"]:
    """A real control plane, shared by the session: tests take names and namespaces of their own."""
    from tests.cluster.control_plane import ControlPlane

    with ControlPlane(audit=True) as plane:
        yield plane


@pytest.fixture(params=["http", REAL])
async def server(request) -> AsyncIterator["Server"]:
    """A server that is reached by HTTPS."""
    from tests.cluster.servers import serving

    async with serving(request.param, request) as server:
        yield server
