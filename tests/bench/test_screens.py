"""The benchmark of the screens, small: the commands answer."""

import pytest

from tests.bench.screens import Run, measure


@pytest.mark.sampled("benches", rare=True)
async def test_status_and_explain_of_20_nodes_end_well_and_their_times_are_told() -> None:
    figures = await measure(20, runs=1)
    assert figures.keys() == {"status", "explain", "explain, nobody leads"}
    assert all(set(medians) == set(Run._fields) and medians["seconds"] > 0 for medians in figures.values())
