"""What people change of what a policy makes its cases wait for, also in the middle of cases."""

import asyncio
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING

from remediator.kube import api
from remediator.kube.wire import errors
from remediator_sim.plain import plain
from remediator_sim.simulation import gates
from remediator_sim.simulation.plan import Step
from remediator_sim.simulation.steps.kind import Drawn, Fleet, StepKind, drawn

if TYPE_CHECKING:
    from remediator_sim.simulation.world import World

POLICY_KIND = plain(api.POLICY)


def _draw(chance: Random, fleet: Fleet) -> Drawn:
    part, value = gates.drawn(chance)
    return drawn(chance.choice(fleet.policies), part=part, value=value, seconds=chance.choice((60, 600, 1500)))


async def _edit(world: "World", step: Step) -> None:
    """Let a policy wait for something for a while, and then for what it waited for before."""
    before = world.policy(step.target)["spec"].get(step["part"])
    with suppress(errors.ApiError):
        await world.client.patch(POLICY_KIND, step.target, {"spec": {step["part"]: step["value"]}})
        await asyncio.sleep(step["seconds"])
        await world.client.patch(POLICY_KIND, step.target, {"spec": {step["part"]: None}})
        if before is not None:
            await world.client.patch(POLICY_KIND, step.target, {"spec": {step["part"]: before}})


KINDS = (StepKind("edit-gates", 0, _draw, _edit, each="2 of policies that act, in a sixth of the seeds"),)
