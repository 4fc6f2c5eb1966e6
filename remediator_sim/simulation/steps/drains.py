"""What stands in the way of drains: Pods that nobody may take, and templates that drain in other ways for a while."""

import asyncio
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING

from remediator.kube import api
from remediator.kube.wire import errors
from remediator_sim.apiserver.status import Obj
from remediator_sim.plain import PODS, plain
from remediator_sim.simulation.clock import until
from remediator_sim.simulation.plan import Step
from remediator_sim.simulation.steps.kind import Drawn, Fleet, StepKind, drawn

if TYPE_CHECKING:
    from remediator_sim.simulation.world import World

TEMPLATES = plain(api.TEMPLATE)
OWNED = {"ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "j", "controller": True}]}
# Why a Pod may not be taken: metadata and volumes.
KEPT: dict[str, tuple[Obj, list[Obj]]] = {
    "bare": ({}, []),
    "data": (OWNED, [{"name": "dshm", "emptyDir": {"medium": "Memory"}}]),
    "do-not-disrupt": (OWNED | {"annotations": {"karpenter.sh/do-not-disrupt": "true"}}, []),
    "unsafe": (OWNED | {"annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}}, []),
}
# How templates that evict drain meanwhile.
DRAINS: tuple[Obj, ...] = (
    {"strategy": "EvictThenDelete", "evictFor": "5m"},
    {"strategy": "Delete"},
    {"strategy": "WaitForCompletion", "timeout": "10m"},
    {"rules": [{"namespaces": ["default"], "strategy": "EvictThenDelete"}], "timeout": "10m"},
    {"rules": [{"namespaces": ["default"], "strategy": "None"}]},
    {"deleteBarePods": True, "deleteEmptyDirData": True},
)
USUAL: Obj = dict.fromkeys(("evictFor", "rules", "deleteBarePods", "deleteEmptyDirData"))


def _draw_keep(chance: Random, fleet: Fleet) -> Drawn:
    why, seconds = chance.choice(sorted(KEPT)), chance.choice((60, 600, 7200))
    return drawn(chance.choice(fleet.sick or fleet.nodes), why=why, seconds=seconds)


async def _keep(world: "World", step: Step) -> None:
    """A Pod that no drain may take, until its owner lets it go so many seconds after a drain has named it."""
    name, (head, volumes) = f"kept-{step.target}", KEPT[step["why"]]
    spec = {"nodeName": step.target, "volumes": volumes, "containers": [{"name": "main", "image": "train"}]}
    with suppress(errors.ApiError):
        await world.client.create(PODS, {"metadata": head | {"name": name}, "spec": spec}, namespace="default")
        await until(lambda: world.ended or f"default/{name}" in world.pods_in_the_way(), 5.0)
        await asyncio.sleep(step["seconds"])
        declared = {"metadata": {"annotations": {"remediator.dev/evict": "true"}}}
        await world.client.patch(PODS, name, declared, namespace="default")


def _draw_drain(chance: Random, fleet: Fleet) -> Drawn:
    return drawn(chance.choice(("reboot", "reset-gpu", "remount-nfs")), drain=chance.choice(DRAINS), seconds=3600)


async def _drain(world: "World", step: Step) -> None:
    """An operation drains in another way for a while."""
    with suppress(errors.ApiError):
        before = (await world.client.get(TEMPLATES, step.target))["spec"]["drain"]
        await world.client.patch(TEMPLATES, step.target, {"spec": {"drain": step["drain"]}})
        await asyncio.sleep(step["seconds"])
        await world.client.patch(TEMPLATES, step.target, {"spec": {"drain": USUAL | before}})


KINDS = (StepKind("keep", 2, _draw_keep, _keep), StepKind("drain", 1, _draw_drain, _drain))
