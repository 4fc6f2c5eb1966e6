"""What makes a node part of the control plane, or look like it: labels, and the static Pods that kubelets show."""

import asyncio
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING

from remediator.kube.wire import errors
from remediator_sim.invariants.contract import DRAINS
from remediator_sim.plain import NODES, PODS
from remediator_sim.simulation.clock import until
from remediator_sim.simulation.plan import Step
from remediator_sim.simulation.steps.kind import Drawn, Fleet, StepKind, drawn

if TYPE_CHECKING:
    from remediator_sim.simulation.world import World

LABEL, ETCD, PROXY = "label", "etcd", "kube-proxy"
ROLES = (LABEL, ETCD, PROXY)  # RKE2 shows kube-proxy on every worker
ROLE, SYSTEM = "node-role.kubernetes.io/control-plane", "kube-system"


async def take_role(world: "World", node: str, role: str) -> None:
    """Let a node be that."""
    with suppress(errors.ApiError):
        if role == LABEL:
            await world.client.patch(NODES, node, {"metadata": {"labels": {ROLE: "true"}}})
            return
        labels, notes = {"tier": "control-plane", "component": role}, {"kubernetes.io/config.mirror": "a1"}
        head = {"name": f"{role}-{node}", "labels": labels, "annotations": notes}
        spec = {"nodeName": node, "containers": [{"name": role, "image": role}]}
        await world.client.create(PODS, {"metadata": head, "spec": spec}, namespace=SYSTEM)


async def leave_role(world: "World", node: str, role: str) -> None:
    """Let it be that no more."""
    with suppress(errors.ApiError):
        if role == LABEL:
            await world.client.patch(NODES, node, {"metadata": {"labels": {ROLE: None}}})
        else:
            await world.client.delete(PODS, f"{role}-{node}", namespace=SYSTEM)


def _draw(chance: Random, fleet: Fleet) -> Drawn:
    seconds = chance.choice((600, 2400))
    return drawn(chance.choice(fleet.sick or fleet.nodes), role=chance.choice((LABEL, ETCD)), seconds=seconds)


async def _join(world: "World", step: Step) -> None:
    """A node becomes part of the control plane, whatever is done to it meanwhile, and leaves it later.

    A kubelet that takes its static Pod away looks to the judge like a drain of ours: it waits for the end of that.
    """
    if step.target in dict(world.plan.roles):
        return
    await take_role(world, step.target, step["role"])
    await asyncio.sleep(step["seconds"])
    if step["role"] == ETCD:
        await until(lambda: world.ended or not _is_drained(world, step.target), 5.0)
    await leave_role(world, step.target, step["role"])


def _is_drained(world: "World", node: str) -> bool:
    return any(about[:2] == (node, DRAINS) for about in world.running_pods())


EACH = "1, and three nodes that have a role from the begin, in a sixth of the seeds"
KINDS = (StepKind("join-control-plane", 0, _draw, _join, each=EACH),)
