"""The parts of a replica for tests: caches that nobody follows, and parts at work until a block is left."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from remediator.clock import SYSTEM, Clock
from remediator.controller.cache import ClusterCache
from remediator.core.names import Namespaces
from remediator.kube.informers import Informers
from remediator.kube.wire.client import Client
from remediator.scheduler.extender import Extender
from remediator.scheduler.reasons import VerdictReason
from remediator.scheduler.row import STRANGER, NodeState
from remediator.scheduler.verdict import Shape, verdict
from remediator_sim.apiserver import EmbeddedServer


def clock_of(monotonic: Callable[[], float]) -> Clock:
    """A clock whose monotonic part is this; its wall stands."""
    return Clock(lambda: datetime(2026, 11, 20, 12, tzinfo=UTC), monotonic)


def empty_cache(
    client: Client | None = None, namespaces: Namespaces | None = None, monotonic: Callable[[], float] = lambda: 0.0
) -> ClusterCache:
    """A cache that knows only what is noted in it."""
    wire = client or Client(EmbeddedServer().transport())
    return ClusterCache(Informers(wire, clock_of(monotonic), namespaces or Namespaces()))


def an_extender(client: Client | None = None, clock: Clock = SYSTEM) -> tuple[Extender, Informers]:
    """An extender, and the watches that it needs to be at work, too."""
    wire = client or Client(EmbeddedServer().transport())
    informers = Informers(wire, clock, Namespaces())
    return Extender(wire, informers, clock), informers


def state_of(extender: Extender, node: str) -> NodeState:
    """All that the extender knows of a node."""
    extender._fleet.settle()
    return extender._fleet.rows.get(node, STRANGER)


def verdict_of(extender: Extender, node: str, gpus: Mapping[str, int] | None = None) -> VerdictReason:
    """The verdict on a node for a Pod that asks for so many GPUs by resource."""
    shape = Shape(tuple(sorted((gpus or {}).items())))
    return verdict(state_of(extender, node), shape, extender._open is not None)


@asynccontextmanager
async def at_work(*parts: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """All of these run until the block is left; one that fails by itself fails the test."""
    tasks = [asyncio.ensure_future(part) for part in parts]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task
