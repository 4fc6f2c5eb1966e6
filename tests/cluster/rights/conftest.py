"""One world for all tests of a worker."""

from collections.abc import Iterator

import pytest

from tests.cluster.rights.world import World


@pytest.fixture(scope="session")
def world() -> Iterator[World]:
    with World() as made:
        yield made
