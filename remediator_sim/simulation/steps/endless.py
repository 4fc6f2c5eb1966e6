"""Pods that do not end: a process of theirs cannot be killed, or the runtime hangs."""

from collections.abc import Sequence
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING

from remediator.kube.wire import errors
from remediator_sim.plain import PODS, of_node
from remediator_sim.simulation.clock import now, until
from remediator_sim.simulation.plan import Step
from remediator_sim.simulation.steps.kind import Drawn, Fleet, StepKind, drawn

if TYPE_CHECKING:
    from remediator_sim.simulation.world import World

SECONDS = (900, 2700, 5400)


def _draw(chance: Random, fleet: Fleet) -> Drawn:
    return drawn(chance.choice(fleet.sick or fleet.nodes), seconds=chance.choice(SECONDS))


async def _endless(world: "World", step: Step) -> None:
    """A user deletes what trains on a node, and its kubelet ends no Pod of users for a while, or until it boots."""
    node = world.nodes[step.target]
    boot, end = node.boot_id, now() + step["seconds"]
    world.pods.endless.add(step.target)
    pods = [entry.obj for entry in world.server.cluster.store.collection("pods").entries.values()]
    for meta in [pod["metadata"] for pod in of_node(pods, step.target)]:
        if meta["name"].startswith("train-"):
            with suppress(errors.ApiError):
                await world.client.delete(PODS, meta["name"], namespace=meta["namespace"])
    await until(lambda: now() >= end or node.boot_id != boot, 5.0)
    world.pods.endless.discard(step.target)


def steps(chance: Random, fleet: Fleet, faults: Sequence[Step]) -> list[Step]:
    """On one node that falls ill, from then on."""
    fault = chance.choice(faults)
    return [Step(fault.at, "endless-pods", fault.target, _draw(chance, fleet).words)]


KINDS = (StepKind("endless-pods", 0, _draw, _endless, each="1 in one of 17 seeds"),)
