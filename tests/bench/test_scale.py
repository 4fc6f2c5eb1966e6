"""The benchmark at full size still measures; how fast anything was is for its report, never for a test."""

import pytest

from tests.harness.benches import report


@pytest.mark.sampled("benches", rare=True)
def test_the_benchmark_states_every_number_of_a_small_run() -> None:
    (stated,) = report("scale", "--nodes", "40", "--grouped", seconds=110)
    lines = stated["lines"]
    assert (stated["nodes"], len(lines)) == (40, 9)
    for name, line in lines.items():
        assert line["cpu_ms"] >= line["stall_ms"] > 0, name
        assert line["turns"] > 1, name
    assert {"a sweep", "an admission pass", "a policy edit", "a lease won"} < set(lines)
