"""The intervals of the lease: as shipped around each step, longer in the quiet between."""

import asyncio
import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from remediator_sim.simulation.clock import now
from remediator_sim.simulation.plan import Step
from remediator_sim.simulation.replica import QUIET, SHIPPED

if TYPE_CHECKING:
    from remediator_sim.simulation.world import World

BEFORE, AFTER = 12.0, 30.0  # seconds around a step in which all intervals are the shipped ones
SLOWDOWN = 8.0  # seconds to the next such time for each time that intervals are longer: a lease survives the change
LOOK = 5.0


async def set_intervals(world: "World") -> None:
    """Keep the intervals of all replicas, until cancelled."""
    while True:
        factor = SHIPPED if world.armed_crashes else stretch(world.plan.steps, now())
        for model in world.replicas.values():
            model.stretch(factor)
        await asyncio.sleep(LOOK)


def stretch(steps: Iterable[Step], at: float) -> float:
    """By how much intervals are longer at this time: the less, the nearer the next step is."""
    quiet = min((step.at - at for step in steps if step.at + AFTER >= at), default=math.inf) - BEFORE
    return min(max(SHIPPED, quiet / SLOWDOWN), QUIET)
