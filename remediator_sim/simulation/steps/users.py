"""What people do meanwhile: cordon, exclude, hold, pause, and change their minds."""

import asyncio
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING

from remediator.core import names
from remediator.kube import api
from remediator.kube.wire import errors
from remediator_sim.manifests import create
from remediator_sim.plain import NODES, PDBS, PODS, SPACES, plain
from remediator_sim.simulation.clock import until
from remediator_sim.simulation.plan import Step
from remediator_sim.simulation.steps.kind import Drawn, Fleet, StepKind, drawn

if TYPE_CHECKING:
    from remediator_sim.simulation.world import World

CASE_KIND, OPERATION_KIND = plain(api.CASE), plain(api.OPERATION)


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
        meta = {"name": name, "labels": app, "annotations": {"remediator.dev/evict": "true"}}
        await world.client.create(PODS, {"metadata": meta, "spec": spec}, namespace="default")
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


ASKED = ("reboot", "reset-gpu", "restart-service", "cordon", "drain", "gpu-check")


def _draw_ask(chance: Random, fleet: Fleet) -> Drawn:
    target = chance.choice((*fleet.nodes, *fleet.sick))
    return drawn(target, template=chance.choice(ASKED), deleted=chance.choice((0, 0, 0, 5, 120, 900)))


async def _ask(world: "World", step: Step) -> None:
    """A user asks for an operation on a node, and may take that back later."""
    uid = world.look("nodes", step.target)["metadata"].get("uid", "unknown")
    name = f"asked-{step.target}-{round(step.at)}"
    spec = {"nodeName": step.target, "nodeUID": uid, "templateName": step["template"], "requestedBy": "olga"}
    head = {"apiVersion": "remediator.dev/v1alpha1", "kind": "NodeOperation"}
    with suppress(errors.ApiError):
        await create(world.client, head | {"metadata": {"name": name}, "spec": spec})
        if step["deleted"]:
            await asyncio.sleep(step["deleted"])
            await world.client.delete(OPERATION_KIND, name)


def _draw_mend(chance: Random, fleet: Fleet) -> Drawn:
    return drawn(seconds=chance.choice((5, 600)))


async def _mend(world: "World", step: Step) -> None:
    """A person repairs the first unhealthy machine whose case has escalated, and does not release the case."""
    await until(lambda: world.ended or bool(_handed_over(world)), 15.0)
    await asyncio.sleep(step["seconds"])
    for name in _handed_over(world)[:1]:
        for condition in list(world.nodes[name].faults):
            world.nodes[name].recover(condition)


def _handed_over(world: "World") -> list[str]:
    """Nodes that wait for a person and still show a fault."""
    waiting = sorted({name for name, phase in world.case_phases() if phase == "Escalated"} & set(world.plan.nodes))
    return [name for name in waiting if world.nodes[name].faults]


KINDS = (
    StepKind("ask", 0, _draw_ask, _ask, each="2 in a sixth of the seeds"),
    StepKind("mend", 0, _draw_mend, _mend, each="2 in a sixth of the seeds"),
    StepKind("cordon", 2, _draw_node, _cordon),
    StepKind("uncordon", 1, _draw_node, _uncordon),
    StepKind("exclude", 2, _draw_node, _exclude),
    StepKind("guard", 1, _draw_node, _guard),
    StepKind("hold", 2, _draw_node, _hold),
    StepKind("pause", 1, _draw_seconds, _pause),
)
