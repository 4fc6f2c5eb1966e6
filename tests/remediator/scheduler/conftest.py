"""A running extender for each test."""

from collections.abc import AsyncIterator

import pytest

from tests.harness.scheduler import SchedulerHarness, scheduler_harness


@pytest.fixture
async def harness() -> AsyncIterator[SchedulerHarness]:
    async with scheduler_harness() as found:
        yield found
