"""One seed from its plan to its outcome."""

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from remediator_sim.simulation import cluster, logs, loop
from remediator_sim.simulation.plan import Plan
from remediator_sim.simulation.schedule import plan_of
from remediator_sim.simulation.world import SeedOutcome, World


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a seed came to: what is broken, how often each promise was put to the test, and the core-seconds it took."""

    seed: int
    broken: tuple[str, ...]
    checks: tuple[tuple[str, int], ...]
    seconds: float


def play(plan: Plan) -> SeedOutcome:
    """Run a plan to its end."""
    cluster.shipped_server()

    async def whole() -> SeedOutcome:
        world = World(plan)
        logs.listen(world.logged)
        try:
            return await world.run()
        finally:
            world.server.cluster.store.clear()

    with _seldom_collected(), logs.kept_settings():
        return loop.run(whole())


@contextmanager
def _seldom_collected() -> Iterator[None]:
    """What a process holds already is not walked again and again; what a seed makes, seldom, and when it is over.

    Left for later it would be frozen by the next seed, and stay for ever.
    """
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(500_000, 20, 100)
    try:
        yield
    finally:
        gc.collect()
        gc.set_threshold(*before)
        gc.unfreeze()


def verdict_of(seed: int) -> Verdict:
    """Run the plan of a seed."""
    begun = os.times()
    outcome = play(plan_of(seed))
    checks = tuple(outcome.checks.items())
    return Verdict(seed, outcome.broken, checks, _core_seconds(begun, os.times()))


def _core_seconds(begun: os.times_result, ended: os.times_result) -> float:
    return ended.user + ended.system - begun.user - begun.system
