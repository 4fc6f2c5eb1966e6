"""Every promise holds in every seed, whatever happens: crashes, storms, half-open watches, users."""

import gc

import pytest

from remediator.clock import SYSTEM
from remediator_sim.apiserver.meta import new_uid
from remediator_sim.simulation import cluster
from remediator_sim.simulation.__main__ import COMMAND
from remediator_sim.simulation.seed import play, verdict_of
from remediator_sim.simulation.world import World
from tests.simulation.small import PLANS


@pytest.mark.sampled("seeds", rare=True)
@pytest.mark.timeout(300)  # on a slow or busy machine
@pytest.mark.parametrize("seed", range(1, 17))
def test_nothing_that_is_promised_is_broken_in_a_seed(seed):
    assert not verdict_of(seed).broken[:3], f"again: {COMMAND} --first {seed} --minimise"


@pytest.mark.slow
def test_a_seed_that_is_over_leaves_nothing_of_its_world_in_memory():
    play(PLANS["the leader is killed in mid-case"])
    assert [left for left in gc.get_objects() if isinstance(left, World)] == []


@pytest.mark.parametrize("seed", range(3))
def test_the_server_of_a_seed_gives_no_uid_that_an_object_has_that_was_there_before(seed):
    played = cluster.fresh(SYSTEM, seed).cluster
    shipped = {
        entry.obj["metadata"]["uid"]
        for collection in played.store.collections().values()
        for entry in collection.entries.values()
    }
    assert shipped
    assert shipped.isdisjoint([new_uid(played.chance) for _ in range(2 * len(shipped))])
