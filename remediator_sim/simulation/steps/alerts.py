"""Alerts that fire, and end or do not."""

import asyncio
from random import Random
from typing import TYPE_CHECKING

from remediator_sim.simulation.plan import Step
from remediator_sim.simulation.steps.kind import Drawn, Fleet, Kind, drawn

if TYPE_CHECKING:
    from remediator_sim.simulation.world import World

NAMES = ("NodeDown", "GpuHot")
FOR_EVER = 10**6


def _draw_alert(chance: Random, fleet: Fleet) -> Drawn:
    node = chance.choice((*(fleet.sick or fleet.nodes), ""))
    return drawn(node, name=chance.choice(NAMES), seconds=chance.choice((20, 300, 1500, FOR_EVER)))


async def _alert(world: "World", step: Step) -> None:
    """An alert about a node, or about none, which ends after so many seconds."""
    alert = world.alerts.fire(step["name"], step.target)
    await asyncio.sleep(step["seconds"])
    world.alerts.resolve(alert)


KINDS = (Kind("alert", 0, _draw_alert, _alert, each="1 to 3"),)
