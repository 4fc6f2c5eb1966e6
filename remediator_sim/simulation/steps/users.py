"""What people do meanwhile: cordon, exclude, hold, pause, and change their minds."""

import asyncio
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING

from remediator.core import names
from remediator.kube import api
from remediator.kube.wire import errors
from remediator_sim.plain import NODES, PDBS, PODS, SPACES, plain
from remediator_sim.simulation.clock import until
from remediator_sim.simulation.plan import Step
from remediator_sim.simulation.steps.kind import Drawn, Fleet, Kind, drawn

if TYPE_CHECKING:
    from remediator_sim.simulation.world import World

CASE_KIND = plain(api.CASE)


def _draw_node(chance: Random, fleet: Fleet) -> Drawn:
    return drawn(chance.choice(fleet.sick or fleet.nodes), seconds=chance.choice((60, 600, 2400)))


async def _cordon(world: "World", step: Step) -> None:
    """Cordon a node, and uncordon it later. A cordon while ours stands cannot be seen."""
    with suppress(errors.ApiError):
        if world.look("nodes", step.target)["spec"].get("unschedulable"):
            return
        await world.client.patch(NODES, step.target, {"spec": {"unschedulable": True}})
        world.judge.person(step.target, cordon=True)
        await asyncio.sleep(step["seconds"])
        world.judge.person(step.target, uncordon=True)
        await world.client.patch(NODES, step.target, {"spec": {"unschedulable": False}})


async def _uncordon(world: "World", step: Step) -> None:
    with suppress(errors.ApiError):
        await world.client.patch(NODES, step.target, {"spec": {"unschedulable": False}})


async def _exclude(world: "World", step: Step) -> None:
    with suppress(errors.ApiError):
        await world.client.patch(NODES, step.target, {"metadata": {"labels": {names.EXCLUDE: "true"}}})
        await asyncio.sleep(step["seconds"])
        await world.client.patch(NODES, step.target, {"metadata": {"labels": {names.EXCLUDE: None}}})


async def _hold(world: "World", step: Step) -> None:
    """Hold whatever case of the node is open, and let it go later."""
    for name in world.open_cases(step.target):
        with suppress(errors.ApiError):
            await world.client.patch(CASE_KIND, name, {"spec": {"hold": True}})
            await asyncio.sleep(step["seconds"])
            await world.client.patch(CASE_KIND, name, {"spec": {"hold": False}})


async def _guard(world: "World", step: Step) -> None:
    """A Pod of a user that a PodDisruptionBudget holds on the node, for so many seconds from the first refusal on."""
    name, app = f"guarded-{step.target}", {"app": f"guarded-{step.target}"}
    spec = {"nodeName": step.target, "containers": [{"name": "main", "image": "train"}]}
    held = {"minAvailable": 1, "selector": {"matchLabels": app}}
    with suppress(errors.ApiError):
        await world.client.create(PODS, {"metadata": {"name": name, "labels": app}, "spec": spec}, namespace="default")
        await world.client.create(PDBS, {"metadata": {"name": name}, "spec": held}, namespace="default")
        await until(lambda: world.ended or bool(world.blocked_drains()), 5.0)
        await asyncio.sleep(step["seconds"])
        await world.client.delete(PDBS, name, namespace="default")


def _draw_seconds(chance: Random, fleet: Fleet) -> Drawn:
    return drawn(seconds=chance.choice((60, 600, 2400)))


async def _pause(world: "World", step: Step) -> None:
    with suppress(errors.ApiError):
        mark = {"metadata": {"annotations": {names.PAUSED: "by the plan"}}}
        await world.client.patch(SPACES, names.SYSTEM_NAMESPACE, mark)
        await asyncio.sleep(step["seconds"])
        await world.client.patch(SPACES, names.SYSTEM_NAMESPACE, {"metadata": {"annotations": {names.PAUSED: None}}})


KINDS = (
    Kind("cordon", 2, _draw_node, _cordon),
    Kind("uncordon", 1, _draw_node, _uncordon),
    Kind("exclude", 2, _draw_node, _exclude),
    Kind("guard", 1, _draw_node, _guard),
    Kind("hold", 2, _draw_node, _hold),
    Kind("pause", 1, _draw_seconds, _pause),
)
