"""A laboratory for each test."""

from collections.abc import AsyncIterator

import pytest

from tests.remediator.controller.lab import Lab, laboratory


@pytest.fixture
async def lab() -> AsyncIterator[Lab]:
    async with laboratory() as found:
        yield found
