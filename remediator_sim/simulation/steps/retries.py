"""Users who let a case try again, which a person has or which is still at work."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING

from remediator.kube import api
from remediator.kube.wire import errors
from remediator_sim.invariants.contract import CASES, phase
from remediator_sim.plain import plain
from remediator_sim.simulation.clock import until
from remediator_sim.simulation.plan import Step
from remediator_sim.simulation.steps.kind import Drawn, Fleet, StepKind, drawn

if TYPE_CHECKING:
    from remediator_sim.simulation.world import World

CASE_KIND = plain(api.CASE)
MOST = 3  # steps of such a plan


def _draw(chance: Random, fleet: Fleet) -> Drawn:
    return drawn(
        chance.choice(fleet.sick or fleet.nodes),
        escalated=chance.random() < 0.7,
        seconds=chance.choice((5, 120, 900)),
        times=chance.choice((1, 1, 2)),
    )


async def _retry(world: "World", step: Step) -> None:
    """Raise spec.retry of the first case that has escalated, or of what is open of a node, whatever it does."""
    for _ in range(step["times"]):
        await until(lambda: world.ended or not step["escalated"] or bool(_escalated(world)), 10.0)
        await asyncio.sleep(step["seconds"])
        for name in _escalated(world)[:1] if step["escalated"] else world.open_cases(step.target):
            asked = world.look(CASES, name)["spec"].get("retry", 0)
            with suppress(errors.ApiError):
                await world.client.patch(CASE_KIND, name, {"spec": {"retry": asked + 1}})


def _escalated(world: "World") -> list[str]:
    """The names of the cases that wait for a person."""
    names = (name for node in world.plan.nodes for name in world.open_cases(node))
    return [name for name in names if phase(world.look(CASES, name)) == "Escalated"]


def steps(chance: Random, fleet: Fleet, faults: Sequence[Step]) -> list[Step]:
    """From when some nodes fall ill."""
    (kind,) = KINDS
    ill = chance.sample(faults, chance.randint(1, MOST))
    return [Step(fault.at, kind.name, fault.target, kind.draw(chance, fleet).words) for fault in ill]


KINDS = (StepKind("retry", 0, _draw, _retry, each="up to 3 in one of 17 seeds"),)
