"""One fork server for each test."""

import pytest

from remediator_sim.npd import ForkServer


@pytest.fixture
async def fork_server():
    async with ForkServer() as fork_server:
        yield fork_server
