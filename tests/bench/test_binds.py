"""The benchmark of binds still measures; how fast anything was is for its report, never for a test."""

import pytest

from tests.bench import binds
from tests.harness.benches import report

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]


@pytest.mark.sampled("benches on a server", on_server=True)
def test_four_pods_are_bound_at_once_in_two_rounds_and_their_times_told_beside_the_floor() -> None:
    told = report("binds", "--binds", "4", "--rounds", "2", "--nodes", "2")
    assert (told["binds"], told["rounds"], told["nodes"]) == (4, 2, 2)
    for sort in binds.MEMORY:
        assert told[sort]["ms"]["max"] >= told[sort]["ms"]["p50"] > 0
        assert len(told[sort]["slowest_ms"]) == 2
