"""An office for each test."""

import pytest

from tests.harness.tickets import TicketHarness


@pytest.fixture
async def harness() -> TicketHarness:
    """Kinds and nodes are there; no ticket is."""
    made = TicketHarness()
    await made.prepare()
    return made
