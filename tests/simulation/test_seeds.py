"""Every promise holds in every seed, whatever happens: crashes, storms, half-open watches, users."""

import gc

import pytest

from remediator_sim.simulation.__main__ import COMMAND
from remediator_sim.simulation.seed import play, verdict_of
from remediator_sim.simulation.world import World
from tests.simulation.small import PLANS

SHARE = 10


@pytest.mark.parametrize("first", range(1, 41, SHARE))
def test_nothing_that_is_promised_is_broken_in_ten_seeds(first):
    broken = {}
    for seed in range(first, first + SHARE):
        if sentences := verdict_of(seed).broken:
            broken[f"{COMMAND} --first {seed} --minimise"] = sentences[:3]
    assert not broken


def test_a_seed_that_is_over_leaves_nothing_of_its_world_in_memory():
    play(PLANS["the leader is killed in mid-case"])
    assert [left for left in gc.get_objects() if isinstance(left, World)] == []
