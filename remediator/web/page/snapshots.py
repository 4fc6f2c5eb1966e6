"""What the page shows, made once for each change and for all who look: their number costs nothing but what is sent."""

import asyncio
import gzip
import hashlib
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from remediator.clock import Clock
from remediator.web.page.fleet_view import FleetFacts, FleetView, fleet_view

EVERY = 2.0  # seconds between two snapshots at least
IDLE_SHARE = 5  # and so many times as long as the last one took: a sixth of a core at most
KEPT = 4  # snapshots whose changes since are known
STALE = 15.0  # seconds until the page is made and the API server asked anew, though nothing has changed


@dataclass(frozen=True, slots=True)
class Body:
    """What is sent, as it is and compressed."""

    plain: bytes
    packed: bytes

    @property
    def tag(self) -> str:
        """The same for the same bytes, whichever replica has made them."""
        return f'"{hashlib.sha256(self.plain).hexdigest()[:20]}"'


def body(make: Callable[[], bytes]) -> Body:
    """Compressed once."""
    plain = make()
    return Body(plain, gzip.compress(plain, 5, mtime=0))


@dataclass(eq=False, slots=True)
class Snapshot:
    """The fleet at one moment. `bodies` are made when somebody asks for the first time, in a thread."""

    facts: FleetFacts
    view: FleetView
    number: int
    bodies: dict[str, asyncio.Task[Body]] = field(default_factory=dict)

    async def body(self, name: str, make: Callable[["Snapshot"], bytes]) -> Body:
        """One of them."""
        if name not in self.bodies:
            self.bodies[name] = asyncio.create_task(asyncio.to_thread(body, partial(make, self)))
        return await asyncio.shield(self.bodies[name])


class Snapshots:
    """The newest one. `facts()` gathers what is known now, quickly."""

    def __init__(self, facts: Callable[[], Awaitable[FleetFacts]], clock: Clock) -> None:
        self._facts, self._clock = facts, clock
        self._newest: Snapshot | None = None
        self.kept: deque[Snapshot] = deque(maxlen=KEPT)
        self._stale = asyncio.Event()
        self._at, self._took = 0.0, 0.0
        self._making: asyncio.Task[Snapshot] | None = None
        self._next: asyncio.Task[Snapshot] | None = None

    def moved(self) -> None:
        """Something has changed that it shows."""
        self._stale.set()

    async def newest(self) -> Snapshot:
        """At most as old as the pause between two."""
        if self._newest is not None and (self._pause() > 0 or not self._changed()):
            return self._newest
        if self._making is None or self._making.done():
            self._making = asyncio.create_task(self._make())
        return await asyncio.shield(self._making)

    async def after(self, snapshot: Snapshot) -> Snapshot:
        """The next one that differs from this; one task waits for all who ask."""
        if self._newest is not None and self._newest is not snapshot:
            return self._newest
        if self._next is None or self._next.done():
            self._next = asyncio.create_task(self._until_changed())
        return await asyncio.shield(self._next)

    async def close(self) -> None:
        """Nobody waits any more for what may change; what is being made is finished."""
        if self._next is not None:
            self._next.cancel()
        await asyncio.gather(*(task for task in (self._making, self._next) if task), return_exceptions=True)

    async def _until_changed(self) -> Snapshot:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._at + STALE - self._clock.monotonic()):
                await self._stale.wait()
        await asyncio.sleep(max(0.0, self._pause()))
        return await self.newest()

    def _pause(self) -> float:
        return self._at + max(EVERY, IDLE_SHARE * self._took) - self._clock.monotonic()

    def _changed(self) -> bool:
        return self._stale.is_set() or self._clock.monotonic() - self._at > STALE

    async def _make(self) -> Snapshot:
        began = self._clock.monotonic()
        self._stale.clear()
        facts = await self._facts()
        view = await asyncio.to_thread(fleet_view, facts)
        number = self._newest.number + 1 if self._newest else 1
        if self._newest is not None:
            self._newest.bodies.clear()
        self._newest = Snapshot(facts, view, number)
        self.kept.append(self._newest)
        self._at = self._clock.monotonic()
        self._took = self._at - began
        return self._newest
