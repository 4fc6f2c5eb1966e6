"""The net is proven: each of these broken products turns a seed red."""

import multiprocessing

import pytest

from remediator_sim.simulation import cluster
from remediator_sim.simulation.seed import verdict_of
from tests.simulation.mutations import MUTATIONS, PROVEN

SEEDS = 200


def first_broken(name: str) -> str:
    """What the first seed says that finds the mutation, "" where none does. For a process of its own."""
    for patch in MUTATIONS[name]():
        patch.apply()
    for seed in range(1, SEEDS + 1):
        for sentence in verdict_of(seed).broken:
            return sentence
    return ""


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", PROVEN)
def test_a_broken_product_turns_a_seed_red(name):
    cluster.shipped_server()
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply(first_broken, (name,))
