"""What users do about cases that a person must approve."""

import asyncio
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING

from remediator.kube import api
from remediator.kube.wire import errors
from remediator_sim.invariants.contract import CASES
from remediator_sim.plain import plain
from remediator_sim.simulation.clock import until
from remediator_sim.simulation.plan import Step
from remediator_sim.simulation.steps.kind import Drawn, Fleet, StepKind, drawn

if TYPE_CHECKING:
    from remediator_sim.simulation.world import World

CASE_KIND = plain(api.CASE)


def _draw(chance: Random, fleet: Fleet) -> Drawn:
    return drawn(
        after=chance.choice((5, 300, 1500)), back=chance.choice((0, 0, 20, 300)), away=chance.choice((60, 900))
    )


async def _approve(world: "World", step: Step) -> None:
    """Approve the case of a node some time after it was opened; sometimes take that back, and approve it again."""
    await until(lambda: world.ended or bool(_cases(world, step)), 10.0)
    await asyncio.sleep(step["after"])
    await _say(world, step, approved=True)
    if step["back"]:
        await asyncio.sleep(step["back"])
        await _say(world, step, approved=False)
        await asyncio.sleep(step["away"])
        await _say(world, step, approved=True)


def _cases(world: "World", step: Step) -> list[str]:
    named = world.open_cases(step.target)
    return [name for name in named if world.look(CASES, name)["spec"].get("policyName") == step["policy"]]


async def _say(world: "World", step: Step, *, approved: bool) -> None:
    for name in _cases(world, step):
        with suppress(errors.ApiError):
            await world.client.patch(CASE_KIND, name, {"spec": {"approved": approved}})


EACH = "in seeds with a policy that needs approvals, for four of five of its faults"
KINDS = (StepKind("approve", 0, _draw, _approve, each=EACH),)
