"""GPUs that are gone after a boot, whatever the boot has cured."""

import asyncio
from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING

from remediator_sim.simulation.clock import until
from remediator_sim.simulation.plan import Step
from remediator_sim.simulation.steps.kind import Drawn, Fleet, StepKind, drawn

if TYPE_CHECKING:
    from remediator_sim.simulation.world import World

MOST = 2  # nodes of such a plan


def _draw(chance: Random, fleet: Fleet) -> Drawn:
    return drawn(
        chance.choice(fleet.sick or fleet.nodes), count=chance.choice((1, 2)), seconds=chance.choice((900, 7200))
    )


async def _lose(world: "World", step: Step) -> None:
    """A machine comes up from its next boot without some of its GPUs; later it has them again.

    `of`: what its detectors count is lost instead, for good.
    """
    node, of = world.nodes[step.target], dict(step.words).get("of")
    if of is not None:
        node.lost_of_counts[of] += step["count"]
        return
    node.lost_at_boot += step["count"]
    await until(lambda: world.ended or not node.lost_at_boot, 15.0)
    await asyncio.sleep(step["seconds"])
    node.devices += step["count"]
    node.speak()


def steps(chance: Random, fleet: Fleet, faults: Sequence[Step]) -> list[Step]:
    """On nodes that fall ill with what a reboot may cure."""
    booted = sorted({fault.target for fault in faults if "reboot" in fault["cures"]})
    if not booted:
        return []
    (kind,) = KINDS
    named = chance.sample(booted, min(len(booted), chance.randint(1, MOST)))
    begun = {fault.target: fault.at for fault in reversed(faults)}
    return [Step(begun[name], kind.name, name, kind.draw(chance, fleet).words) for name in named]


KINDS = (StepKind("lose-gpus", 0, _draw, _lose, each="up to 2 in one of 17 seeds"),)
