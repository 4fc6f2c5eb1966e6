"""What somebody does to what is ours: Pods are deleted or find no node, and a status is emptied."""

import asyncio
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING

from remediator.kube import api
from remediator.kube.wire import errors
from remediator_sim.plain import plain
from remediator_sim.simulation.clock import now, until
from remediator_sim.simulation.moments import moment
from remediator_sim.simulation.plan import Step
from remediator_sim.simulation.steps.kind import Drawn, Fleet, StepKind, drawn

if TYPE_CHECKING:
    from remediator_sim.simulation.world import World

PATIENCE, LOOK = 1800.0, 0.5  # seconds for which a Pod or a moment is waited for, and between two looks
TEMPLATES = ("", "collect-diagnostics", "drain", "reboot", "reset-gpu")  # "": of whatever operation
STATUSES = {"case": plain(api.CASE), "operation": plain(api.OPERATION), "budget": plain(api.BUDGET)}
EACH = "1 in one of 17 seeds"


def _draw_delete(chance: Random, fleet: Fleet) -> Drawn:
    words = {"template": chance.choice(TEMPLATES), "after": chance.choice((0, 3, 20))}
    return drawn(chance.choice(fleet.sick or fleet.nodes), **words)


async def _delete_pod(world: "World", step: Step) -> None:
    """Somebody deletes the next Pod of ours that works on a node, some seconds after it has started."""
    patience = now() + PATIENCE
    await until(lambda: world.ended or now() > patience or bool(_running(world, step)), LOOK)
    await asyncio.sleep(step["after"])
    for name in _running(world, step)[:1]:
        world.note("plan", f"somebody deletes Pod {name}")
        await world.delete_pod(name)


def _running(world: "World", step: Step) -> list[str]:
    """The names of our Pods that run for a node."""
    on_node = ((of, name) for node, of, name in world.running_pods() if node == step.target)
    return [name for of, name in on_node if step["template"] in ("", of)]


def _draw_unplaced(chance: Random, fleet: Fleet) -> Drawn:
    return drawn(chance.choice(fleet.sick or fleet.nodes), seconds=chance.choice((600, 2400, 5400)))


async def _unplaced(world: "World", step: Step) -> None:
    """The scheduler finds no node for Pods that work on a node, for a while."""
    world.pods.unplaced.add(step.target)
    await asyncio.sleep(step["seconds"])
    world.pods.unplaced.discard(step.target)


def _draw_empty(chance: Random, fleet: Fleet) -> Drawn:
    words = {"of": chance.choice(sorted(STATUSES)), "moment": chance.choice(("claim", "drain", "drained", "intent"))}
    return drawn(chance.choice(fleet.sick or fleet.nodes), **words, after=chance.choice((0, 5, 40)))


async def _empty(world: "World", step: Step) -> None:
    """Whoever restores objects without their status, or may write it, empties that of what works on a node."""
    if not await moment(world, step.target, step["moment"], PATIENCE):
        return
    await asyncio.sleep(step["after"])
    named = {
        "case": world.open_cases(step.target),
        "operation": world.open_operations(step.target),
        "budget": [name for name, _ in world.plan.budgets],
    }
    for name in named[step["of"]]:
        world.note("plan", f"the status of {step['of']} {name} is emptied")
        with suppress(errors.ApiError):
            await world.client.patch(STATUSES[step["of"]], name, {"status": None}, subresource="status")


DELETE, UNPLACED = (
    StepKind("delete-pod", 0, _draw_delete, _delete_pod, EACH),
    StepKind("unplaced", 0, _draw_unplaced, _unplaced, EACH),
)
EMPTY = StepKind("empty-status", 0, _draw_empty, _empty, EACH)
KINDS = (DELETE, UNPLACED, EMPTY)
