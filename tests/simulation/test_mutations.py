"""The net is proven: each of these broken products turns a seed red."""

import multiprocessing
import os
from typing import NoReturn

import pytest

from remediator_sim.simulation import cluster
from remediator_sim.simulation.schedule import plan_of
from remediator_sim.simulation.seed import play
from remediator_sim.simulation.world import World
from tests.simulation.mutations import MUTATIONS, PROVEN

SEEDS, LEAST = 200, 40
FOUND, NOT_FOUND = 0, 3


def hunt(name: str) -> NoReturn:
    """Break this process, and end it as soon as a seed finds that: first the one that is known to."""

    def found(world: World, sentence: str) -> None:
        os._exit(FOUND)

    World._report = found
    for patch in MUTATIONS[name]():
        patch.apply()
    for seed in dict.fromkeys((PROVEN[name], *range(1, SEEDS + 1))):
        play(plan_of(seed))
    os._exit(NOT_FOUND)


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", PROVEN)
def test_a_broken_product_turns_a_seed_red(name):
    cluster.shipped_server()
    process = multiprocessing.get_context("fork").Process(target=hunt, args=(name,))
    process.start()
    process.join()
    assert process.exitcode == FOUND


def test_the_net_is_proven_by_many_mutations_that_are_there():
    assert len(PROVEN) >= LEAST
    assert [name for name, seed in PROVEN.items() if name not in MUTATIONS or not 1 <= seed <= SEEDS] == []
