"""Other controllers that ask for a repair, and wait for its end, or no longer."""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import TYPE_CHECKING

from remediator.kube.wire import errors
from remediator_sim.plain import Object
from remediator_sim.simulation.clock import now, until
from remediator_sim.simulation.plan import Step
from remediator_sim.simulation.requesters import (
    COMPLETE,
    HELD_BY_NVSENTINEL,
    MACHINES,
    RELEASED,
    REQUESTERS,
    SPACE,
    TIMED_OUT,
    Requester,
    answered,
)
from remediator_sim.simulation.steps.kind import Drawn, Fleet, StepKind, drawn

if TYPE_CHECKING:
    from remediator_sim.simulation.world import World

AGAIN, LOOK = 5.0, 10.0  # seconds between two tries to write, and between two looks at the answer
TEMPLATES, PATIENCE, RELEASED_AFTER = ("reboot", "reboot", "reset-gpu"), (300, 1800, 7200), (0, 60, 600)


def _draw(chance: Random, fleet: Fleet) -> Drawn:
    by, template = chance.choice(sorted(REQUESTERS)), chance.choice(TEMPLATES)
    patience, released = chance.choice(PATIENCE), chance.choice(RELEASED_AFTER)
    target = chance.choice((*fleet.nodes, *fleet.sick))
    return drawn(target, by=by, template=template, patience=patience, released=released)


async def _request(world: "World", step: Step) -> None:
    """Ask, and wait so many seconds for the end; NVSentinel releases the node some seconds after it has asked."""
    request = RepairRequest(world, step)
    await request.make()
    patience = now() + step["patience"]
    await until(lambda: world.ended or request.over() or now() > patience, LOOK)
    if not request.over():
        await request.give_up()
    await request.delete()


class RepairRequest:
    """One object of another controller."""

    def __init__(self, world: "World", step: Step) -> None:
        self._world, self._step = world, step
        self._by: Requester = REQUESTERS[step["by"]]
        self._name = f"request-{step.target}-{round(step.at)}"
        self._space = SPACE if self._by.kind.namespaced else ""

    def live(self) -> Object:
        """It as it is stored; {} where it is not there."""
        entry = self._world.server.cluster.find(
            f"{self._by.kind.plural}.{self._by.kind.group}", self._space, self._name
        )
        return entry.obj if entry else {}

    def over(self) -> bool:
        """Whether it says how its repair has ended, or is gone."""
        return not self.live() or answered(self._by, self.live())

    async def make(self) -> None:
        """Make it, with the machine that owns it, and hand the node over."""
        node = self._step.target
        if self._step["by"] == "MachineHealthCheck":
            machine = _with_head(MACHINES.api_version, MACHINES.name, {"metadata": {"name": self._name}, "spec": {}})
            await self._patiently(lambda: self._world.client.create(MACHINES, machine, namespace=SPACE))
            ref = {"status": {"nodeRef": {"name": node}}}
            await self._patiently(
                lambda: self._world.client.patch(MACHINES, self._name, ref, namespace=SPACE, subresource="status")
            )
        body = self._by.make(self._name, node, self._step["template"])
        body = _with_head(self._by.kind.api_version, self._by.kind.name, body)
        await self._patiently(lambda: self._world.client.create(self._by.kind, body, namespace=self._space))
        if self._by.end == COMPLETE:
            await asyncio.sleep(self._step["released"])
            await self._release()

    async def _release(self) -> None:
        """What NVSentinel says once the node is ours to repair; its other condition waits for us."""
        waits = {"type": COMPLETE, "status": "Unknown", "reason": "AwaitingExternalSystem"}
        conditions = [{"type": RELEASED, "status": "True", "reason": "Released"}, waits]
        await self._write(lambda live: {"status": {"conditions": conditions}}, "status")

    async def give_up(self) -> None:
        """Wait no longer: NodeHealthCheck says so, and waits until the repair has ended; the others delete."""
        if self._step["by"] == "NodeHealthCheck":
            await self._write(lambda live: {"metadata": {"annotations": {TIMED_OUT: "2026-11-20T23:00:00Z"}}})
            await until(lambda: self._world.ended or self.over(), LOOK)

    async def delete(self) -> None:
        """Delete it; NVSentinel takes its own finalizer off."""
        await self._patiently(lambda: self._world.client.delete(self._by.kind, self._name, namespace=self._space))
        if self._by.end == COMPLETE:
            await self._write(_without_finalizer)

    async def _write(self, change: Callable[[Object], Object], subresource: str = "") -> None:
        """Change it under the version that is there now."""

        async def write() -> None:
            live = self.live()
            if not live:
                return
            body = change(live)
            meta = body.get("metadata", {}) | {"resourceVersion": live["metadata"]["resourceVersion"]}
            more = {"subresource": subresource} if subresource else {}
            kind = self._by.kind
            await self._world.client.patch(kind, self._name, body | {"metadata": meta}, namespace=self._space, **more)

        await self._patiently(write)

    async def _patiently(self, call: Callable[[], Awaitable[object]]) -> None:
        """Again until the server, which may be away or have seen another write, has taken it."""
        while not self._world.ended:
            try:
                await call()
                return
            except (errors.NotFound, errors.AlreadyExists):
                return
            except errors.ApiError:
                await asyncio.sleep(AGAIN)


def _with_head(version: str, kind: str, body: Object) -> Object:
    return {"apiVersion": version, "kind": kind} | body


def _without_finalizer(live: Object) -> Object:
    others = [each for each in live["metadata"].get("finalizers") or () if each != HELD_BY_NVSENTINEL]
    return {"metadata": {"finalizers": others}}


REQUEST = StepKind("request", 0, _draw, _request, each="2 in one of 17 seeds")
KINDS = (REQUEST,)
