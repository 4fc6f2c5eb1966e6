"""Every promise holds in every seed, whatever happens: crashes, storms, half-open watches, users."""

import pytest

from remediator_sim.simulation.seed import verdict_of

SHARE = 10
PROMISES = tuple(f"I{number}:" for number in range(1, 12))


@pytest.mark.parametrize("first", range(1, 41, SHARE))
def test_nothing_that_is_promised_is_broken_in_ten_seeds(first):
    broken = {}
    for seed in range(first, first + SHARE):
        found = [text for text in verdict_of(seed).broken if text.startswith(PROMISES)]
        if found:
            broken[f"python -m remediator_sim.simulation --first {seed} --minimise"] = found[:3]
    assert not broken
