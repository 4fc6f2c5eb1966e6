"""Changes as server-sent events. All who follow the page are woken by one task, and get the same bytes."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from remediator.clock import Clock
from remediator.web.page.changes import change
from remediator.web.page.snapshots import Snapshot, Snapshots

MOST = 64  # who may follow
ALIVE_SECONDS, LASTS_SECONDS = 15.0, 600.0  # after that a browser begins anew, and shows again that it may
ALIVE = b"event: alive\ndata: {}\n\n"  # a page that hears none for long knows that its connection is dead


class Streams:
    """Those who follow."""

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
    async def followed(self, shown: str) -> AsyncIterator[AsyncIterator[bytes]]:
        """The events since the snapshot of this tag."""
        self._open += 1
        try:
            yield self._since(shown)
        finally:
            self._open -= 1

    async def stop(self) -> None:
        """End all of them."""
        self._ended.set()
        await self._snapshots.close()

    async def _since(self, shown: str) -> AsyncIterator[bytes]:
        yield b"retry: 3000\n\n"
        newest, ends = await self._snapshots.newest(), self._clock.monotonic() + LASTS_SECONDS
        known = next((kept for kept in self._snapshots.kept if self.tag(kept) == shown), None)
        if known is not newest:
            yield self._event(known, newest)
        while self._clock.monotonic() < ends and not self._ended.is_set():
            following = await self._following(newest)
            if following is newest:
                yield ALIVE
            else:
                yield self._event(newest, following)
                newest = following

    async def _following(self, snapshot: Snapshot) -> Snapshot:
        """The next one; after a while, or at the end, the same."""
        coming = asyncio.ensure_future(self._snapshots.after(snapshot))
        ended = asyncio.ensure_future(self._ended.wait())
        try:
            done, _ = await asyncio.wait({coming, ended}, timeout=ALIVE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        finally:  # also where the reader goes meanwhile
            for task in (coming, ended):
                task.cancel()
        return coming.result() if coming in done and not coming.cancelled() else snapshot

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
