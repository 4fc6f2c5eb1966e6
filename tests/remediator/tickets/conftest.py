"""An office for each test."""

import pytest

from tests.remediator.tickets.office import Office


@pytest.fixture
async def office() -> Office:
    """Kinds and nodes are there; no ticket is."""
    made = Office()
    await made.prepare()
    return made
