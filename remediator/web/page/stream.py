"""Changes as server-sent events. All who follow a page are woken by one task, and get the same bytes."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Protocol

from remediator.clock import Clock
from remediator.web.page.changes import change
from remediator.web.page.snapshots import Snapshot, Snapshots

MOST = 64  # who may follow
ALIVE_SECONDS, LASTS_SECONDS = 15.0, 600.0  # after that a browser begins anew, and shows again that it may


class Follower(Protocol):
    """One who follows a page."""

    async def event(self, snapshot: Snapshot) -> bytes:
        """What is told with a snapshot; b"" for nothing."""

    @property
    def as_of(self) -> str:
        """Of which moment the page is that was told last, as it was last looked at; "" where nothing is known of it."""


def alive(as_of: str) -> bytes:
    """A sign of life: a page that hears none for long knows that its connection is dead, and else of when it is."""
    data = json.dumps({"asOf": as_of} if as_of else {}, separators=(",", ":"))
    return f"event: alive\ndata: {data}\n\n".encode()


class FleetFollower:
    """One who follows the fleet. `known`: the snapshot that is shown, where it is kept."""

    def __init__(self, known: Snapshot | None, change_event: Callable[[Snapshot | None, Snapshot], bytes]) -> None:
        self._known, self._change_event = known, change_event

    async def event(self, snapshot: Snapshot) -> bytes:
        """What has changed since the one before."""
        before, self._known = self._known, snapshot
        return b"" if before is snapshot else self._change_event(before, snapshot)

    @property
    def as_of(self) -> str:
        """See Follower."""
        return self._known.view.as_of if self._known else ""


class Streams:
    """Those who follow, whatever page it is."""

    def __init__(self, snapshots: Snapshots, identity: str, clock: Clock) -> None:
        self._snapshots, self._identity, self._clock = snapshots, identity, clock
        self._open = 0
        self._events: dict[tuple[int, int], bytes] = {}
        self._ended = asyncio.Event()

    @property
    def room(self) -> bool:
        """Whether one more may follow."""
        return self._open < MOST and not self._ended.is_set()

    def tag(self, snapshot: Snapshot) -> str:
        """Names a snapshot of this replica."""
        return f"{self._identity}-{snapshot.number}"

    @asynccontextmanager
    async def followed(self, follower: Follower) -> AsyncIterator[AsyncIterator[bytes]]:
        """What a reader is told, from now on."""
        self._open += 1
        try:
            yield self._events_of(follower)
        finally:
            self._open -= 1

    def of_fleet(self, shown: str) -> Follower:
        """The events since the snapshot of this tag."""
        known = next((kept for kept in self._snapshots.kept if self.tag(kept) == shown), None)
        return FleetFollower(known, self._event)

    async def stop(self) -> None:
        """End all of them."""
        self._ended.set()
        await self._snapshots.close()

    async def _events_of(self, follower: Follower) -> AsyncIterator[bytes]:
        yield b"retry: 3000\n\n"
        newest, ends = await self._snapshots.newest(), self._clock.monotonic() + LASTS_SECONDS
        if event := await follower.event(newest):
            yield event
        while self._clock.monotonic() < ends and not self._ended.is_set():
            newest, event = await self._following(newest, follower)
            yield event or alive(follower.as_of)

    async def _following(self, snapshot: Snapshot, follower: Follower) -> tuple[Snapshot, bytes]:
        """The next one of which something is told; after a while, or at the end, the same and nothing."""
        coming = asyncio.ensure_future(self._told(snapshot, follower))
        ended = asyncio.ensure_future(self._ended.wait())
        try:
            done, _ = await asyncio.wait({coming, ended}, timeout=ALIVE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        finally:  # also where the reader goes meanwhile
            for task in (coming, ended):
                task.cancel()
        return coming.result() if coming in done and not coming.cancelled() else (snapshot, b"")

    async def _told(self, snapshot: Snapshot, follower: Follower) -> tuple[Snapshot, bytes]:
        event = b""
        while not event:
            snapshot = await self._snapshots.after(snapshot)
            event = await follower.event(snapshot)
        return snapshot, event

    def _event(self, before: Snapshot | None, after: Snapshot) -> bytes:
        """Made once for all who have come as far."""
        tag = self.tag(after)
        key = (before.number if before else 0, after.number)
        if key not in self._events:
            name, data = change(before.view if before else None, after.view)
            text = json.dumps(data, separators=(",", ":"))
            self._events = {each: event for each, event in self._events.items() if each[1] == after.number}
            self._events[key] = f"id: {tag}\nevent: {name}\ndata: {text}\n\n".encode()
        return self._events[key]
