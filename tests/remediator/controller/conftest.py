"""A laboratory for each test."""

from collections.abc import AsyncIterator

import pytest

from tests.harness.controller import ControllerHarness, controller_harness


@pytest.fixture
async def harness() -> AsyncIterator[ControllerHarness]:
    async with controller_harness() as found:
        yield found
