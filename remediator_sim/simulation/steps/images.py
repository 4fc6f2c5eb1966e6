"""Images that cannot be pulled: the registry is away, or a tag is wrong."""

import asyncio
from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING

from remediator_sim.simulation.plan import Step
from remediator_sim.simulation.steps.kind import Drawn, Fleet, StepKind, drawn

if TYPE_CHECKING:
    from remediator_sim.simulation.world import World

SECONDS = (600, 2400, 5400)


def _draw(chance: Random, fleet: Fleet) -> Drawn:
    return drawn(chance.choice(fleet.sick or fleet.nodes), seconds=chance.choice(SECONDS))


async def _no_image(world: "World", step: Step) -> None:
    """The kubelet of a node pulls no image for a while."""
    world.pods.without_image.add(step.target)
    await asyncio.sleep(step["seconds"])
    world.pods.without_image.discard(step.target)


def steps(chance: Random, fleet: Fleet, faults: Sequence[Step]) -> list[Step]:
    """On one node that falls ill, from then on."""
    fault = chance.choice(faults)
    return [Step(fault.at, "no-image", fault.target, _draw(chance, fleet).words)]


KINDS = (StepKind("no-image", 0, _draw, _no_image, each="1 in one of 17 seeds"),)
