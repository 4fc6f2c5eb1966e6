"""The benchmark of the whole system still measures; how fast anything was is for its report, never for a test."""

import pytest

from tests.bench.extender import CALLS
from tests.harness.benches import report


@pytest.mark.sampled("benches", rare=True)
def test_a_small_run_states_every_number_while_nodes_change_and_while_they_do_not() -> None:
    stated = report("whole", "--nodes", "50", "--requests", "5", "--rate", "100", "--calm", "0.5", seconds=110)
    for part in ("quiet", "events"):
        for call in CALLS:
            found = stated[part][call]
            assert sorted(found) == ["http_cpu_ms", "http_first_ms", "http_seen_ms"]
            assert all(found[times]["max"] >= found[times]["p50"] > 0 for times in ("http_first_ms", "http_seen_ms"))
    assert stated["events_seen"] > 0
