"""Another controller that works on a node under its Lease: it gives that back, lets it expire, or steals ours."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Any

from remediator.kube.wire import errors
from remediator_sim.invariants.contract import LEASE_SPACE, moment, part
from remediator_sim.invariants.contract import LEASES as STORED
from remediator_sim.plain import LEASES, Object
from remediator_sim.simulation import moments
from remediator_sim.simulation.clock import now, true_time
from remediator_sim.simulation.plan import Step
from remediator_sim.simulation.steps.kind import Drawn, Fleet, StepKind, drawn

if TYPE_CHECKING:
    from remediator_sim.simulation.world import World

HOLDER, LENGTH, RENEWED = "node-maintenance", 600, 240.0  # its name, and seconds
PATIENCE, AGAIN = 3000.0, 5.0  # seconds for which a moment is waited for, and between two tries to write


def _draw(chance: Random, fleet: Fleet) -> Drawn:
    when = chance.choice(("", "case", "claim", "drain", "drained", "intent"))
    words = {"moment": when, "seconds": chance.choice((120, 900, 2400))}
    manners = {"steals": chance.random() < 0.4, "returns": chance.random() < 0.6}
    return drawn(chance.choice(fleet.sick or fleet.nodes), **words, **manners)


async def _hold(world: "World", step: Step) -> None:
    """Take the Lease, from now on or from a moment of a repair on, keep it for a while, and give it back or not."""
    if step["moment"] and not await moments.moment(world, step.target, step["moment"], PATIENCE):
        return
    holder = LeaseHolder(world, step.target)
    await holder.take(steals=step["steals"])
    end = now() + step["seconds"]
    while not world.ended and holder.holds() and now() < end:
        await asyncio.sleep(min(RENEWED, end - now()))
        await holder.renew()
    if step["returns"]:
        await holder.give_back()


class LeaseHolder:
    """That controller, on one node."""

    def __init__(self, world: "World", node: str) -> None:
        self._world, self._name = world, f"node-{node}"

    def _live(self) -> Object:
        """The Lease as it is stored; {} where there is none."""
        entry = self._world.server.cluster.find(STORED, LEASE_SPACE, self._name)
        return entry.obj if entry else {}

    def holds(self) -> bool:
        """Whether it has it."""
        return self._holder() == HOLDER

    def _holder(self) -> str:
        return str(part(self._live(), "spec").get("holderIdentity") or "")

    def _is_free(self) -> bool:
        spec = part(self._live(), "spec")
        length = timedelta(seconds=spec.get("leaseDurationSeconds") or 0)
        until = moment(spec.get("renewTime") or "") + length
        return not self._holder() or until < true_time()

    async def take(self, *, steals: bool) -> None:
        """Take it as soon as nobody has it, or from whoever has it."""
        patience = now() + PATIENCE
        while not (self._world.ended or self.holds() or now() > patience):
            if steals or self._is_free():
                await self._write()
            else:
                await asyncio.sleep(AGAIN)

    async def renew(self) -> None:
        """Hold it for longer, if it has it."""
        await self._while_held(self._write)

    async def give_back(self) -> None:
        """Delete it, if it has it."""
        await self._while_held(self._delete)

    async def _while_held(self, work: Callable[[], Awaitable[bool]]) -> None:
        while not self._world.ended and self.holds() and not await work():
            pass

    async def _write(self) -> bool:
        """Under the version that is there now; whether the server, which may be away, has taken it."""
        live, at = self._live(), f"{true_time():%Y-%m-%dT%H:%M:%S.%fZ}"
        spec = {"holderIdentity": HOLDER, "leaseDurationSeconds": LENGTH, "renewTime": at}
        meta = {"name": self._name}
        if not live:
            return await self._answered(self._world.client.create(LEASES, _lease(meta, spec), namespace=LEASE_SPACE))
        meta["resourceVersion"] = live["metadata"]["resourceVersion"]
        body = _lease(meta, spec)
        return await self._answered(self._world.client.replace(LEASES, self._name, body, namespace=LEASE_SPACE))

    async def _delete(self) -> bool:
        meta = self._live()["metadata"]
        which = {"namespace": LEASE_SPACE, "uid": meta["uid"], "version": meta["resourceVersion"]}
        return await self._answered(self._world.client.delete(LEASES, self._name, **which))

    async def _answered(self, call: Awaitable[Any]) -> bool:
        with suppress(errors.ApiError):
            await call
            return True
        await asyncio.sleep(AGAIN)
        return False


def _lease(meta: Object, spec: Object) -> Object:
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta, "spec": spec}


LEASE = StepKind("lease", 0, _draw, _hold, each="4 in one of 17 seeds")
KINDS = (LEASE,)
