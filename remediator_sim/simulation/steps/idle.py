"""Work that ends by itself on a node that waits for it."""

import asyncio
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING

from remediator.kube.wire import errors
from remediator_sim.plain import PODS, of_node
from remediator_sim.simulation.clock import until
from remediator_sim.simulation.plan import Step
from remediator_sim.simulation.steps.kind import Drawn, Fleet, StepKind, drawn

if TYPE_CHECKING:
    from remediator_sim.simulation.world import World


def _draw(chance: Random, fleet: Fleet) -> Drawn:
    return drawn(after=chance.choice((30, 400, 1500)))


async def _end_work(world: "World", step: Step) -> None:
    """Some time after a node was cordoned for its repair, the Pods of users on it finish."""
    await until(lambda: world.ended or bool(world.look("nodes", step.target)["spec"].get("unschedulable")), 10.0)
    await asyncio.sleep(step["after"])
    entries = world.server.cluster.store.collection("pods").entries.values()
    for pod in of_node([entry.obj for entry in entries], step.target):
        if pod["metadata"]["namespace"] == "default":
            with suppress(errors.ApiError):
                body = {"status": {"phase": "Succeeded"}}
                await world.client.patch(PODS, pod["metadata"]["name"], body, namespace="default", subresource="status")


EACH = "in seeds with a policy that waits for windows or for idle nodes, for four of five of its faults"
KINDS = (StepKind("end-work", 0, _draw, _end_work, each=EACH),)
