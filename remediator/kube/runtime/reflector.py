"""Reflector: lists and watches one kind, keeps one small fact per object, and recovers from every watch error."""

import asyncio
import math
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Generic, TypeVar

import msgspec
import structlog

from remediator.kube.runtime.backoff import full_jitter
from remediator.kube.runtime.reading import Reader, Reading
from remediator.kube.runtime.turns import sliced
from remediator.kube.runtime.versions import is_older
from remediator.kube.wire import errors
from remediator.kube.wire import frames as wire
from remediator.kube.wire.client import Client, Kind, check, decode
from remediator.kube.wire.transport import Reply, Stream

PAGE = 250
READ = 50  # objects of a page that are read between two turns of the loop: 10 ms for nodes of 16 KB
SLICE = 250  # objects of a list that are taken in between two turns of the loop
IDLE_SECONDS = 75.0  # bookmarks come about once a minute
WATCH_SECONDS = 300  # and up to twice that, so that watches do not end together
HEALTHY_SECONDS = 60.0
STALE_SECONDS = 150.0  # two bookmarks that did not come
BACKOFF_BASE, BACKOFF_CAP = 0.8, 30.0
DISTRUST_AFTER = 4  # refusals in a row before our resourceVersion is given up; a restored etcd knows it no more
# Watches in a row that were opened and said nothing: a restored server keeps everything back up to our version.
DISTRUST_SILENCE = 2

T = TypeVar("T")
F = TypeVar("F")
# A list under way, by key: the fact alone of what could be read, of which there are thousands.
Listing = dict[str, F | Reading[F]]
log = structlog.get_logger(__name__)


class Reflector(Generic[T, F]):
    """Follows all objects of `kind` that match and keeps `project(object)` of each in `store`.

    Keys are names, or `namespace/name`. `on_change(key, old, new)` is called in the loop, after the store changed and
    only where the fact did: old is None for a new object, new is None for one that is gone. `on_beat(key)` is called
    where it did not: what its facts do not compare has moved, such as a heartbeat.

    An object that cannot be decoded or projected is *unknown*, not gone: its key stands in `unknown`, and
    `on_unknown(key)` is called once. In `store` stands what `careful(bytes)` makes of it, the most careful thing that
    it could be; without `careful`, its last fact. When it can be read again, or goes, `on_change` tells, also if the
    fact is the same as before.

    During a re-list the store keeps serving; it changes when the list is complete, slice by slice. What `on_change` or
    `on_unknown` raise ends `run`.
    """

    def __init__(
        self,
        client: Client,
        kind: Kind[T],
        project: Callable[[T], F],
        on_change: Callable[[str, F | None, F | None], None],
        *,
        on_unknown: Callable[[str], None] = lambda key: None,
        on_beat: Callable[[str], None] = lambda key: None,
        careful: Callable[[msgspec.Raw], F] | None = None,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        rand: Callable[[], float] = random.random,
    ) -> None:
        self.store: dict[str, F] = {}
        self.unknown: dict[str, str] = {}  # key → version
        self.synced = asyncio.Event()
        self._transport, self._path = client.transport, kind.path("", namespace)
        self._log = log.bind(kind=kind.name)
        self._on_change, self._on_unknown, self._on_beat = on_change, on_unknown, on_beat
        self._reader = Reader(kind, project, careful, self.unknown)
        self._selectors = [(k, v) for k, v in (("labelSelector", labels), ("fieldSelector", fields)) if v]
        self._rand = rand
        self.lists_begun, self.list_adopted = 0, 0  # how many there were, and the number of the newest that is complete
        self._version = ""  # opaque; "" means list anew
        self._lists_by_watch = True
        self._failures, self._silences = 0, 0
        self._anew = False
        self._restarted = asyncio.Event()
        self._turning: asyncio.Timeout | None = None
        self._opened_at = math.inf
        self._alive_at = -math.inf

    @property
    def undecodable(self) -> int:
        """How many readings failed."""
        return self._reader.undecodable

    @property
    def version(self) -> str:
        """The version up to which the store has everything; "" while it is not known."""
        return self._version

    def age(self) -> float:
        """Seconds since the last event, bookmark or page; infinite before the first."""
        return asyncio.get_running_loop().time() - self._alive_at

    def fresh(self) -> bool:
        """Whether the list is complete and the watch shows signs of life."""
        return asyncio.get_running_loop().time() - self._alive_at < STALE_SECONDS and self.synced.is_set()

    async def read(self) -> None:
        """List once, for whoever does not follow. Raises ApiError."""
        await self._list()

    async def run(self) -> None:
        """Follow the API server until cancelled."""
        while True:
            delay = await self._turn()
            with suppress(TimeoutError):
                async with asyncio.timeout(delay):
                    await self._restarted.wait()
            self._restarted.clear()

    def restart(self) -> None:
        """Open the watch anew, from where it stands: a connection that says nothing may be half-open."""
        self._restarted.set()
        if self._turning is not None and not self._turning.expired():
            self._turning.reschedule(asyncio.get_running_loop().time())

    def list_anew(self) -> None:
        """Forget how far the watch has come, whatever it still tells, and read everything again."""
        self._anew = True
        self.restart()

    async def _turn(self) -> float:
        """List if needed and watch until the watch ends; seconds to wait before the next turn."""
        self._opened_at = math.inf
        if self._anew:
            self._version, self._anew = "", False
        try:
            await self._follow()
        except TimeoutError:  # it was asked to begin anew
            return 0.0
        except errors.ApiError as error:
            return self._after(error)
        except (ValueError, RecursionError) as error:  # of an answer that is none
            return self._after(errors.Unavailable(200, "Unreadable", str(error)))
        return self._after(None)

    async def _follow(self) -> None:
        async with asyncio.timeout(None) as self._turning:
            try:
                if not self._version and not self._lists_by_watch:
                    await self._list()
                await self._watch()
            finally:
                self._turning = None

    def _after(self, error: errors.ApiError | None) -> float:
        if asyncio.get_running_loop().time() - self._opened_at >= HEALTHY_SECONDS:
            self._failures = 0
            if error is None:
                return 0.0
        elif isinstance(error, errors.Invalid) and self._lists_by_watch and not self._version:
            self._lists_by_watch = False
            self._log.info("server streams no lists; paging instead", error=str(error))
            return 0.0
        self._silences = self._silences + 1 if self._alive_at < self._opened_at < math.inf else 0
        if self._silences >= DISTRUST_SILENCE or (error is not None and self._blames_version(error)):
            self._version = ""
        return self._back_off(error)

    def _blames_version(self, error: errors.ApiError) -> bool:
        if error.status == 0 or isinstance(error, errors.TooManyRequests):
            return False
        return isinstance(error, errors.Expired) or self._failures >= DISTRUST_AFTER

    def _back_off(self, error: errors.ApiError | None) -> float:
        delay = full_jitter(self._failures, base=BACKOFF_BASE, cap=BACKOFF_CAP, rand=self._rand)
        self._failures += 1
        if error is None:  # a server that ends every watch at once
            return delay
        delay += error.retry_after or 0.0
        if isinstance(error, errors.Forbidden):
            delay += BACKOFF_CAP
            self._log.error("not allowed to watch", error=str(error), retry_in=delay)
        else:
            self._log.warning("watch interrupted", error=str(error), retry_in=delay)
        return delay

    async def _list(self) -> None:
        listing: Listing[F] = {}
        page = wire.PageMeta()
        self.lists_begun += 1
        while True:
            query = [("limit", str(PAGE)), *self._selectors]
            if page.continue_:
                query.append(("continue", page.continue_))
            reply = check(await self._transport.request("GET", self._path, query=query))
            answer = decode(reply.body, wire.Page)
            async for item in sliced(answer.items or (), READ):
                _collect(listing, self._reader.read(item), gone=False)
            page = answer.metadata
            self._touch()
            if not page.continue_:
                return await self._adopt(listing, page.resource_version)

    async def _watch(self) -> None:
        listing: Listing[F] | None = None if self._version else {}
        self.lists_begun += listing is not None
        async with self._transport.stream(self._path, query=self._watch_query(), idle_timeout=IDLE_SECONDS) as stream:
            if stream.status >= 400:
                await _refuse(stream)
            self._opened_at = asyncio.get_running_loop().time()
            async for line in wire.lines(aiter(stream)):
                listing = await self._take(line, listing)

    def _watch_query(self) -> list[tuple[str, str]]:
        query = [
            ("watch", "true"),
            ("allowWatchBookmarks", "true"),
            ("timeoutSeconds", str(int(WATCH_SECONDS * (1 + self._rand())))),
            *self._selectors,
        ]
        if self._version:
            return [*query, ("resourceVersion", self._version)]
        return [*query, ("sendInitialEvents", "true"), ("resourceVersionMatch", "NotOlderThan")]

    async def _take(self, line: bytes | bytearray, listing: Listing[F] | None) -> Listing[F] | None:
        """Take in one line of a watch. `listing` is the list under way, None when it is complete; so is the result."""
        try:
            event = wire.EVENT.decode(line)
        except (ValueError, RecursionError) as error:
            self._reader.miss("", error)
            return listing
        if event.type == "ERROR":
            failure = msgspec.json.decode(event.object, type=wire.WatchFailure)
            raise errors.from_status(failure.code, failure.reason, failure.message)
        self._touch()
        if event.type == "BOOKMARK":
            return await self._bookmark(msgspec.json.decode(event.object, type=wire.Bookmark).metadata, listing)
        gone = event.type == "DELETED"
        reading = self._reader.read(event.object, head_only=gone)
        if listing is not None:
            _collect(listing, reading, gone)
        elif reading.key:
            self._come_to(reading.version)
            self._apply(reading, gone)
        return listing

    async def _bookmark(self, meta: wire.BookmarkMeta, listing: Listing[F] | None) -> Listing[F] | None:
        if listing is None:
            self._come_to(meta.resource_version)
        elif meta.ends_the_list:
            await self._adopt(listing, meta.resource_version)
            return None
        return listing

    def _come_to(self, version: str) -> None:
        """The watch is at this version now. Raises Expired where that is older than the last one."""
        if is_older(version, self._version):
            raise errors.Expired(410, "Expired", f"the API server went back from {self._version} to {version}")
        self._version = version

    async def _adopt(self, listing: Listing[F], version: str) -> None:
        """Make the store what the complete list says, a slice at a time, as if the watch told of each object."""
        if "" not in listing:  # else the nameless one may be any of those that seem to be missing
            async for key in sliced((self.store.keys() | self.unknown.keys()) - listing.keys(), SLICE):
                self._drop(key)
        async for key, listed in sliced(listing.items(), SLICE):
            if isinstance(listed, Reading):
                self._apply(listed, gone=False)
            else:
                self._keep(key, listed, self._was_unknown(key))
        self._version, self.list_adopted = version, self.lists_begun
        self.synced.set()

    def _apply(self, reading: Reading[F], gone: bool) -> None:
        if gone:
            self._drop(reading.key)
        elif reading.readable and reading.fact is not None:
            self._keep(reading.key, reading.fact, self._was_unknown(reading.key))
        elif reading.key:
            self._keep_unknown(reading.key, reading.version, reading.fact)

    def _keep_unknown(self, key: str, version: str, fact: F | None) -> None:
        news = key not in self.unknown
        self.unknown[key] = version
        if fact is not None:
            self._keep(key, fact, news)
        if news:
            self._on_unknown(key)

    def _keep(self, key: str, fact: F, news: bool = False) -> None:
        old = self.store.get(key)
        self.store[key] = fact
        if news or old != fact:
            self._on_change(key, old, fact)
        else:
            self._on_beat(key)

    def _drop(self, key: str) -> None:
        old = self.store.pop(key, None)
        if self._was_unknown(key) or old is not None:
            self._on_change(key, old, None)

    def _was_unknown(self, key: str) -> bool:
        return self.unknown.pop(key, None) is not None

    def _touch(self) -> None:
        self._alive_at = asyncio.get_running_loop().time()


def _collect(listing: Listing[Any], reading: Reading[Any], gone: bool) -> None:
    if gone and reading.key:
        listing.pop(reading.key, None)
    else:
        listing[reading.key] = reading.fact if reading.readable and reading.fact is not None else reading


async def _refuse(stream: Stream) -> None:
    body = b"".join([chunk async for chunk in stream])
    check(Reply(stream.status, body, stream.headers))
