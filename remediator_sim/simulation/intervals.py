"""The intervals of the lease: as shipped around each step, longer in the quiet between."""

import asyncio
import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from remediator_sim.simulation.clock import now
from remediator_sim.simulation.plan import Step
from remediator_sim.simulation.replica import QUIET, SHIPPED
from remediator_sim.simulation.steps import alerts, github, idle_tests

if TYPE_CHECKING:
    from remediator_sim.simulation.world import World

BEFORE, AFTER = 12.0, 30.0  # seconds around a step in which all intervals are the shipped ones
SLOWDOWN = 5.0  # seconds to the next such time for each time that intervals are longer: a lease survives the change
LOOK, FAR = 5.0, 60.0  # seconds; the second while no step is near
# For so many seconds a step of this kind waits for its moment: it may come at any of them.
WAITS = {idle_tests.IN_TEST.name: idle_tests.PATIENCE}
# What happens outside of the cluster alone: whoever leads need not be about to change then.
OUTSIDE = frozenset(kind.name for kind in (*github.KINDS, *alerts.KINDS)) - {github.CRASH}


async def set_intervals(world: "World") -> None:
    """Keep the intervals of all replicas, until cancelled."""
    while True:
        # A replica that is frozen cannot write that its Lease lasts longer now, so for it the shipped time holds.
        shipped = world.armed_crashes or any(model.frozen for model in world.replicas.values())
        factor = SHIPPED if shipped else stretch(world.plan.steps, now())
        settled = [model.stretch(factor) for model in world.replicas.values()]
        await asyncio.sleep(FAR if factor >= QUIET and all(settled) else LOOK)


def stretch(steps: Iterable[Step], at: float) -> float:
    """By how much intervals are longer at this time: the less, the nearer the next step is."""
    inside = (step.at - at for step in steps if _over(step) >= at and step.kind not in OUTSIDE)
    quiet = min(inside, default=math.inf) - BEFORE
    return min(max(SHIPPED, quiet / SLOWDOWN), QUIET)


def _over(step: Step) -> float:
    """Until when a step may still be felt."""
    return step.at + WAITS.get(step.kind, 0.0) + AFTER
