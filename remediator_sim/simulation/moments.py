"""Moments of a repair at which something may come between two writes of the product."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from remediator_sim.apiserver.status import Obj
from remediator_sim.apiserver.store import Change, Listener
from remediator_sim.invariants.contract import CASES, OPERATIONS, part

if TYPE_CHECKING:
    from remediator_sim.simulation.world import World

# By its name: the kind of object whose write is the moment, and what is written then for the first time.
MOMENTS: dict[str, tuple[str, Callable[[Obj], object]]] = {
    "case": (CASES, lambda case: case),
    "claim": (CASES, lambda case: part(case, "status").get("startedAt")),
    "drain": (OPERATIONS, lambda operation: part(operation, "status").get("drainStartedAt")),
    "drained": (OPERATIONS, lambda operation: part(operation, "status").get("drainedAt")),
    "intent": (OPERATIONS, lambda operation: part(operation, "status").get("intent")),
}


async def moment(world: "World", node: str, name: str, patience: float) -> bool:
    """Wait for that write for a node, for so many seconds; whether it came. Whoever waits goes on before its answer."""
    kind, tells = MOMENTS[name]
    reached = asyncio.Event()

    def hear(change: Change) -> None:
        new = {} if change.type == "DELETED" else change.entry.obj
        if new and new["spec"]["nodeName"] == node and tells(new) and not (change.old and tells(change.old.obj)):
            reached.set()

    collection, listener = world.server.cluster.store.collection(kind), Listener(None, hear, lambda: None)
    collection.listen(listener)
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await reached.wait()
    finally:
        collection.leave(listener)
    return reached.is_set()
