"""Watches: what happened since a version, what happens now, bookmarks, and the end of it."""

import asyncio
import math
from collections import deque
from collections.abc import AsyncIterator
from functools import lru_cache

import msgspec

from remediator_sim.apiserver import forms, listing, status
from remediator_sim.apiserver.cluster import Cluster
from remediator_sim.apiserver.faults import Faults, Stream
from remediator_sim.apiserver.forms import Form
from remediator_sim.apiserver.options import Options, version_number
from remediator_sim.apiserver.selectors import Test
from remediator_sim.apiserver.status import Obj
from remediator_sim.apiserver.store import Change, Entry, Listener
from remediator_sim.apiserver.writes import Target

BOOKMARK_EVERY = 60.0  # seconds
_BEFORE_END = 2.0  # a last bookmark comes this long before the server ends the watch
_QUEUE = 20000  # events that a slow reader may be behind before its watch is ended
_INDEXED = ("metadata.name", "spec.nodeName")


class Watch:
    """One watch. `open` it, iterate over the chunks of its body, `close` it. It queues while its reader is busy."""

    def __init__(self, cluster: Cluster, target: Target, options: Options, form: Form, faults: Faults) -> None:
        self._cluster, self._resource, self._options = cluster, target.resource, options
        self._namespace, self._form = target.namespace, form
        self._test, terms = listing.chosen(target.resource, options, target.name)
        self._frames: deque[bytes] = deque()
        self._wake = asyncio.Event()
        self._faults, self._stream = faults, Stream(self._wake)
        self._ended = self._due = False
        self._after = 0  # a version yet to come has to pass before anything is told, as with the real cache
        address = next(((term.path, term.value) for term in terms if term.equal and term.path in _INDEXED), None)
        self._listener = Listener(address, self._take, self.end)
        self._collection = cluster.collection(target.resource)

    def open(self) -> None:
        """Queue what the watch begins with, and listen. Raises 400 for a version that is none."""
        options, text = self._options, self._options.version
        initial = text in ("", "0") if options.initial_events is None else options.initial_events
        try:
            if initial:
                self._begin_with_state()
            elif text not in ("", "0"):
                self._after = version_number(text)
                for change in self._collection.since(self._after):
                    self._take(change)
        except status.Failure as failure:
            if failure.code != 410:
                raise
            self._frames.append(frame("ERROR", msgspec.json.encode(failure.body())))
            self._ended = True
        self._collection.listen(self._listener)
        self._faults.join(self._stream)

    def _begin_with_state(self) -> None:
        for entry in self._collection.scan(self._namespace):
            if self._test is None or self._test(entry.obj):
                self._frames.append(frame("ADDED", self._form.one(entry)))
        if self._options.initial_events and self._options.bookmarks:
            self._frames.append(self._bookmark({"k8s.io/initial-events-end": "true"}))

    def _bookmark(self, annotations: dict[str, str] | None = None) -> bytes:
        resource, rv = self._resource, self._cluster.store.rv
        if annotations is None and self._form.name == forms.PLAIN and not resource.stored_as:
            return _come_to(resource.kind, resource.api_version, rv)
        meta: Obj = {"resourceVersion": str(rv)}
        if annotations:
            meta["annotations"] = annotations
        obj: Obj = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": meta}
        return frame("BOOKMARK", self._form.one(Entry(obj, rv)))

    def _take(self, change: Change) -> None:
        """Queue a change in the words of this watch's selectors."""
        if change.rv <= self._after or (self._namespace and change.key[0] != self._namespace):
            return
        type_ = change.type if self._test is None else seen(change, self._test)
        if type_ is None:
            return
        self._frames.append(self._frame(change, type_))
        if len(self._frames) > _QUEUE:
            self._ended = True
        self._wake.set()

    def _frame(self, change: Change, type_: str) -> bytes:
        """The encoded event; watches of one form share it."""
        shared = type_, f"{self._resource.api_version} {self._form.name}"
        made = change.frames.get(shared)
        if made is None:
            entry = change.left() if type_ == "DELETED" != change.type else change.entry
            made = change.frames[shared] = frame(type_, self._form.one(entry))
        return made

    def end(self) -> None:
        """End the watch after what is queued."""
        self._ended = True
        self._wake.set()

    def close(self) -> None:
        """Listen no more."""
        self._collection.leave(self._listener)
        self._faults.leave(self._stream)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Chunks of the body until the server ends the watch. Raises faults.Severed where the stream is cut."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._options.timeout if self._options.timeout else math.inf
        alarm = self._alarm(loop.time(), deadline)
        try:
            while True:
                self._stream.check()
                self._wake.clear()
                now = max(loop.time(), alarm.when()) if self._due else loop.time()  # it may ring a moment early
                if self._stream.silent:
                    await self._wake.wait()
                elif self._frames:
                    chunk = b"".join(self._frames)
                    self._frames.clear()
                    yield chunk
                elif self._ended or now >= deadline:
                    return
                elif self._due:
                    alarm = self._alarm(now, deadline)
                    if self._options.bookmarks and self._cluster.store.rv >= self._after:
                        self._frames.append(self._bookmark())
                else:
                    await self._wake.wait()
        finally:
            alarm.cancel()

    @staticmethod
    def _next_bookmark(now: float, deadline: float) -> float:
        regular, last = now + BOOKMARK_EVERY, deadline - _BEFORE_END
        return last if now < last < regular else regular

    def _alarm(self, now: float, deadline: float) -> asyncio.TimerHandle:
        """What wakes the watch for its next bookmark, or its end."""
        self._due = False
        rings_at = min(self._next_bookmark(now, deadline), deadline)
        return asyncio.get_running_loop().call_at(rings_at, self._ring)

    def _ring(self) -> None:
        self._due = True
        self._wake.set()


def seen(change: Change, test: Test) -> str | None:
    """A change as somebody sees it who sees only what the test holds for; None where nothing is to be seen."""
    before = change.old is not None and test(change.old.obj)
    if change.type == "DELETED":
        return "DELETED" if before else None
    after = test(change.entry.obj)
    return {(False, True): "ADDED", (True, True): "MODIFIED", (True, False): "DELETED"}.get((before, after))


@lru_cache(64)
def _come_to(kind: str, api_version: str, rv: int) -> bytes:
    """The bookmark that every plain watch of a kind is told at one version."""
    obj: Obj = {"kind": kind, "apiVersion": api_version, "metadata": {"resourceVersion": str(rv)}}
    return frame("BOOKMARK", msgspec.json.encode(obj))


def frame(type_: str, encoded: bytes) -> bytes:
    """One line of a watch's body."""
    return b'{"type":"%s","object":%s}\n' % (type_.encode(), encoded)
