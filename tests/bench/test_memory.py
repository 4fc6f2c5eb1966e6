"""The benchmark of memory still measures; how much anything takes is for its report, never for a test."""

import pytest

from tests.harness.benches import report


@pytest.mark.sampled("benches", rare=True)
def test_a_small_run_states_what_the_process_takes_when_it_is_calm_and_after_a_storm() -> None:
    (stated,) = report("memory", "--nodes", "20", "--calm", "0.5", seconds=110)
    assert (stated["nodes"], stated["ended_cases"], stated["faults"]) == (20, 80, 4)
    assert 0 < stated["calm_mib"]["resident"] <= stated["storm_mib"]["peak"]
