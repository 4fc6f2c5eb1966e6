"""Every promise holds in every seed, whatever happens: crashes, storms, half-open watches, users."""

import pytest

from remediator_sim.simulation.__main__ import COMMAND
from remediator_sim.simulation.seed import verdict_of

SHARE = 10


@pytest.mark.parametrize("first", range(1, 41, SHARE))
def test_nothing_that_is_promised_is_broken_in_ten_seeds(first):
    broken = {}
    for seed in range(first, first + SHARE):
        if sentences := verdict_of(seed).broken:
            broken[f"{COMMAND} --first {seed} --minimise"] = sentences[:3]
    assert not broken
