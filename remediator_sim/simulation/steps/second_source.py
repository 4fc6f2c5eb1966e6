"""What goes wrong at the second source of policies."""

import asyncio
from random import Random
from typing import TYPE_CHECKING

from remediator_sim.simulation.plan import Step
from remediator_sim.simulation.second_source import MODES
from remediator_sim.simulation.steps.kind import Drawn, Fleet, StepKind, drawn

if TYPE_CHECKING:
    from remediator_sim.simulation.world import World


def _draw(chance: Random, fleet: Fleet) -> Drawn:
    return drawn(mode=chance.choice(MODES), seconds=chance.choice((30, 300, 900)))


async def _go_wrong(world: "World", step: Step) -> None:
    """Prometheus is away, late, lies with a warning, or says no; the newest of several such steps counts."""
    world.second_source.mode = step["mode"]
    await asyncio.sleep(step["seconds"])
    world.second_source.mode = ""


KINDS = (StepKind("second-source", 0, _draw, _go_wrong, each="2, where policies have `confirm`"),)
