"""What stands on a real API server, in a store as the embedded server has it: in the order of its versions."""

import asyncio
import heapq
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from random import Random
from typing import Any, NamedTuple

import msgspec

from remediator.clock import SYSTEM
from remediator.kube import api
from remediator.kube.wire import errors, frames
from remediator.kube.wire.client import Client, Kind
from remediator_sim.apiserver.cluster import Cluster
from remediator_sim.apiserver.store import Change, Entry, Key
from remediator_sim.plain import LEASES, NODES, PODS, SPACES, plain
from tests.cluster.simulation.hasty import Outside

HOLD = 0.08  # seconds within which the watches of all kinds have told of a write
KINDS = (NODES, PODS, SPACES, LEASES, *map(plain, api.KINDS))
Obj = dict[str, Any]


class Seen(NamedTuple):
    """One event of a watch. `due`: when it may be told."""

    version: int
    number: int
    due: float
    type: str
    storage: str
    obj: Obj


class Mirror:
    """`cluster` is the copy. `begin` it in the loop in which it is looked at; `close` it there.

    Each kind has a watch of its own. What they tell is held back for a moment and told by version, as it happened.
    """

    def __init__(self, outside: Outside, client: Client) -> None:
        self.cluster, self.audit = Cluster(SYSTEM, Random(0), 2048), deque[Any]()
        self._outside, self._client = outside, client
        self._seen: list[Seen] = []
        self._number = 0
        self._watches: list[Future[None]] = []

    async def begin(self) -> None:
        """Take in what there is, and follow it."""
        self._loop = asyncio.get_running_loop()
        for kind in KINDS:
            items, version = await self._outside.do(self._list(kind))
            for obj in items:
                self._take(_storage(kind), "ADDED", obj)
            watch = self._watch(kind, version)
            self._watches.append(asyncio.run_coroutine_threadsafe(watch, self._outside.loop))

    def close(self) -> None:
        """Follow no more."""
        for watch in self._watches:
            watch.cancel()

    def later(self, tell: Callable[[], object]) -> None:
        """Call this once everything that has been written by now was told."""
        self._loop.call_later(self._hold * 2, tell)

    async def settle(self) -> None:
        """Wait until everything that has been written by now was told."""
        await asyncio.sleep(self._hold * 4)

    @property
    def _hold(self) -> float:
        return HOLD * getattr(self._loop, "faster", 1.0)

    # --- outside -----------------------------------------------------------------------------------------------------

    async def _list(self, kind: Kind[Obj]) -> tuple[list[Obj], str]:
        reply = await self._client.transport.request("GET", kind.path())
        page = msgspec.json.decode(reply.body)
        return page["items"], page["metadata"]["resourceVersion"]

    async def _watch(self, kind: Kind[Obj], version: str) -> None:
        while True:
            query = [("watch", "1"), ("resourceVersion", version), ("allowWatchBookmarks", "true")]
            try:
                async with self._client.transport.stream(kind.path(), query=query, idle_timeout=300) as stream:
                    async for line in frames.lines(aiter(stream)):
                        event = msgspec.json.decode(line)
                        version = event["object"]["metadata"]["resourceVersion"]
                        if event["type"] != "BOOKMARK":
                            self._loop.call_soon_threadsafe(self._arrive, kind, event["type"], event["object"])
            except errors.Unavailable:
                await asyncio.sleep(0.1)

    # --- in the loop of those who look -------------------------------------------------------------------------------

    def _arrive(self, kind: Kind[Obj], type_: str, obj: Obj) -> None:
        self._number += 1
        version, due = int(obj["metadata"]["resourceVersion"]), self._loop.time() + self._hold
        heapq.heappush(self._seen, Seen(version, self._number, due, type_, _storage(kind), obj))
        self._loop.call_at(due, self._tell)

    def _tell(self) -> None:
        """Tell what is due, and what happened before."""
        due = [seen.version for seen in self._seen if seen.due <= self._loop.time()]
        while due and self._seen and self._seen[0].version <= max(due):
            seen = heapq.heappop(self._seen)
            self._take(seen.storage, seen.type, seen.obj)

    def _take(self, storage: str, type_: str, obj: Obj) -> None:
        collection, meta = self.cluster.store.collection(storage), obj["metadata"]
        key: Key = (meta.get("namespace", ""), meta["name"])
        old, version = collection.entries.get(key), int(meta["resourceVersion"])
        if type_ == "DELETED" and old is None:
            return
        known = "DELETED" if type_ == "DELETED" else "MODIFIED" if old else "ADDED"
        self.cluster.store.rv = max(self.cluster.store.rv, version)
        collection.put(Change(version, known, key, Entry(obj, version), old))


def _storage(kind: Kind[Any]) -> str:
    return f"{kind.plural}.{kind.group}" if kind.group else kind.plural
