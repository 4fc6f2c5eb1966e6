"""Which seed finds a mutation: each is tried in a process of its own, which it breaks."""

import multiprocessing
import os
from collections.abc import Iterable
from multiprocessing.connection import Connection
from typing import NoReturn

from remediator_sim.simulation import cluster
from remediator_sim.simulation.plan import Plan
from remediator_sim.simulation.schedule import plan_of
from remediator_sim.simulation.seed import play
from remediator_sim.simulation.world import World
from tests.simulation.mutations.patch import Patches

SEEDS = 200


def hunt(patches: Patches, seeds: Iterable[int]) -> int | None:
    """The first of these seeds in which a promise is broken, None where none is. RuntimeError where it fails."""
    return first_broken(patches, (plan_of(seed) for seed in dict.fromkeys(seeds)))


def first_broken(patches: Patches, plans: Iterable[Plan]) -> int | None:
    """The seed of the first of these plans in which a promise is broken."""
    cluster.shipped_server()
    forked = multiprocessing.get_context("fork")
    answer, finder = forked.Pipe(duplex=False)
    process = forked.Process(target=_play, args=(patches, plans, finder))
    process.start()
    process.join()
    if process.exitcode or not answer.poll():
        raise RuntimeError(f"the process ended with {process.exitcode}")
    seed: int | None = answer.recv()
    return seed


def _play(patches: Patches, plans: Iterable[Plan], finder: Connection) -> NoReturn:
    def end(seed: int | None) -> NoReturn:
        finder.send(seed)
        os._exit(0)

    World._report = lambda world, sentence: end(world.plan.seed)  # type: ignore[method-assign]
    for patch in patches():
        patch.apply()
    for plan in plans:
        play(plan)
    end(None)
