"""A running extender for each test."""

from collections.abc import AsyncIterator

import pytest

from tests.remediator.scheduler.stand import Stand, standing


@pytest.fixture
async def stand() -> AsyncIterator[Stand]:
    async with standing() as found:
        yield found
