"""The facts of one kind: from its watch, with our own writes visible at once.

The next decision must see the result of the last one. So a reply to one of our writes replaces the reflector's fact
until the watch has come as far: to that version, or past it, or to a list that began later. No clock ends it sooner,
because a watch may be cut off for minutes, and what we have written would then seem not to be so.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, Protocol, TypeVar

import msgspec
import structlog

from remediator.clock import Clock
from remediator.kube.runtime.index import Index
from remediator.kube.runtime.reflector import Reflector
from remediator.kube.runtime.turns import sliced
from remediator.kube.runtime.versions import is_older, number, reaches
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client, Kind
from remediator.metrics import Contained

log = structlog.get_logger(__name__)
SLICE = 2000  # versions that are compared between two turns of the loop
LOOK_AGAIN, RESTART_AFTER, LONGEST_PATIENCE = 0.05, 1.0, 64.0  # seconds, while the cache catches up


class Fact(Protocol):
    """What is kept of one object; `version` is its resourceVersion."""

    @property
    def version(self) -> str: ...


F = TypeVar("F", bound=Fact)


class Informer(Generic[F]):
    """Watches one kind once for everybody in this process. Keys are names, or `namespace/name`.

    `index` names fields of the fact by which it is looked up, too. Those never change while an object lives; a namesake
    that came later is told apart when looked up. Only what is in `namespace`, has `labels` and `fields` is watched.
    `careful` makes the fact of an object that cannot be read: the most careful thing that it could be.
    """

    def __init__(
        self,
        client: Client,
        kind: Kind[Any],
        project: Callable[[Any], F],
        clock: Clock,
        *,
        careful: Callable[[msgspec.Raw], F] | None = None,
        index: tuple[str, ...] = (),
        namespace: str = "",
        labels: str = "",
        fields: str = "",
    ) -> None:
        self._reflector: Reflector[Any, F] = Reflector(
            client,
            kind,
            project,
            self._changed,
            on_beat=self._beaten,
            careful=careful,
            namespace=namespace,
            labels=labels,
            fields=fields,
        )
        self._client, self._kind = client, kind
        self._where = {"namespace": namespace, "labels": labels, "fields": fields}
        self._watched: Mapping[str, F] = self._reflector.store
        self._written: dict[str, tuple[F, int]] = {}  # with the number of lists that had begun by then
        self._settled: tuple[str, int] = ("", 0)  # how far the watch had come when writes were looked at last
        self._monotonic = clock.monotonic
        self._index = {field: Index() for field in index}
        self._handlers: list[Callable[[str, F | None, F | None], None]] = []
        self._viewers: list[Callable[[F | None, F | None], None]] = []
        self._listeners: list[Callable[[str], None]] = []

    @property
    def kind(self) -> str:
        """The name of the kind that it watches."""
        return self._kind.name

    # --- following ---------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Follow the API server until cancelled."""
        await self._reflector.run()

    async def read(self) -> None:
        """Read all objects once, for whoever does not follow them. Raises ApiError."""
        await self._reflector.read()

    async def synced(self) -> None:
        """Wait until the first list is complete."""
        await self._reflector.synced.wait()

    def age(self) -> float:
        """Seconds since the last sign of life of the watch; infinite before the first."""
        return self._reflector.age()

    def fresh(self) -> bool:
        """Whether the list is complete and the watch shows signs of life."""
        return self._reflector.fresh()

    def list_anew(self) -> None:
        """Read everything again, since what the watch has told is not so any more."""
        self._reflector.list_anew()

    async def caught_up(self) -> None:
        """Wait until the cache has every version that the API server has now, by a list that misses nothing.

        A watch that does not get there soon is opened anew: half-open connections are silent for a long time. One that
        still does not get there begins with a list: what a restored server has changed may be in no watch. Each time
        it is given twice as long, since a server under load may need seconds to answer.
        """
        heads, version = await self._of_now()
        began, patience, open_anew = self._monotonic(), RESTART_AFTER, self._reflector.restart
        while late := await self._late(heads, version):
            if self._monotonic() - began >= patience:
                log.warning("a cache is behind; its watch is opened anew", kind=self._kind.name, objects=len(late))
                open_anew()
                open_anew = self.list_anew
                heads, version = await self._heads()  # what has gone since is waited for no longer
                began, patience = self._monotonic(), min(2 * patience, LONGEST_PATIENCE)
            await asyncio.sleep(LOOK_AGAIN)

    async def _of_now(self) -> tuple[dict[str, str], str]:
        """The heads, for a cache of the same history: a server restored from a backup knows none of what came later."""
        patience = RESTART_AFTER
        while True:
            known, watched = await self._versions(), self._reflector.version
            heads, version = await self._heads()
            if not is_older(version, watched) and not await _is_of_another_history(known, heads, version):
                return heads, version
            log.warning("the API server went back; everything is read anew", kind=self._kind.name, version=version)
            lists = self._reflector.lists_begun
            self.list_anew()
            for _ in range(int(patience / LOOK_AGAIN)):
                await asyncio.sleep(LOOK_AGAIN)
                if self._reflector.list_adopted > lists:
                    break
            patience = min(2 * patience, LONGEST_PATIENCE)

    async def _versions(self) -> dict[str, str]:
        """The version by which each object is known at this moment, be it by the watch or by a write of ours."""
        keys, facts, unknown = tuple(self._watched), tuple(self._watched.values()), dict(self._reflector.unknown)
        written = {key: fact.version for key in tuple(self._written) if (fact := self.get(key)) is not None}
        versions = {key: fact.version async for key, fact in sliced(zip(keys, facts, strict=True), SLICE)}
        versions.update(unknown)
        versions.update(written)
        return versions

    async def _late(self, heads: Mapping[str, str], version: str) -> set[str]:
        """The keys of which less is known than these versions, or which are not in this list any more."""
        known, late = await self._versions(), set[str]()
        async for key, head in sliced(heads.items(), SLICE):
            if key not in known or not reaches(known[key], head):
                late.add(key)
        async for key, ours in sliced(known.items(), SLICE):
            if key not in heads and reaches(version, ours):
                late.add(key)
        return late

    async def _heads(self) -> tuple[dict[str, str], str]:
        """Every object that is watched, with its version, once the API server answers."""
        while True:
            try:
                return await self._client.heads(self._kind, **self._where)
            except errors.ApiError as error:
                log.warning("the caches cannot be compared with the API server", kind=self._kind.name, error=str(error))
                await asyncio.sleep(error.retry_after or RESTART_AFTER)

    def unreadable(self) -> int:
        """How many objects cannot be read now."""
        return len(self._reflector.unknown)

    def on_change(self, handler: Callable[[str, F | None, F | None], None]) -> None:
        """Call `handler(key, old, new)` after each change that the watch tells; None is an object that is not there.

        What it raises is logged and harms no other handler. The same change is not told again: whoever acts on changes
        looks at everything now and then, too.
        """
        self._handlers.append(handler)

    def on_beat(self, listener: Callable[[str], None]) -> None:
        """Call `listener(key)` whenever the watch tells of an object whose fact is the same as before."""
        self._listeners.append(listener)

    def on_view(self, viewer: Callable[[F | None, F | None], None]) -> None:
        """Call `viewer(old, new)` whenever what `get` gives has changed, be it by the watch or by a write of ours."""
        self._viewers.append(viewer)

    # --- what is known -----------------------------------------------------------------------------------------------

    def note(self, key: str, fact: F) -> None:
        """What the server answered to a write of ours, or to a live read; an answer that comes late hides nothing."""
        before = self.get(key)
        if self._told(before, fact, self._reflector.lists_begun):
            return
        self._written[key] = (fact, self._reflector.lists_begun)
        self._moved(key, before, fact)

    def get(self, key: str) -> F | None:
        """The newest that is known of one object."""
        watched = self._watched.get(key)
        if not self._written or (written := self._written.get(key)) is None:  # as nearly always
            return watched
        fact, lists_begun = written
        if not self._told(watched, fact, lists_begun):
            return fact
        del self._written[key]
        self._moved(key, fact, watched)
        return watched

    def _told(self, watched: F | None, fact: F, lists_begun: int) -> bool:
        """Whether the watch has come as far as a write of ours."""
        reflector = self._reflector
        if watched is not None and reaches(watched.version, fact.version):
            return True
        passed = reflector.version != "" and reaches(reflector.version, fact.version)
        return passed or reflector.list_adopted > lists_begun

    def by(self, field: str, value: str) -> list[F]:
        """The facts whose `field` has this value, in order of their names."""
        self.settle()  # a write that is over gives the index back what the watch has told
        keys = self._index[field].keys(value)
        if not keys:
            return []
        look = self.get if self._written else self._watched.get
        ordered = sorted(keys) if len(keys) > 1 else keys
        return [fact for fact in map(look, ordered) if fact is not None and getattr(fact, field) == value]

    def settle(self) -> None:
        """Let go of our writes that the watch has passed: whoever keeps accounts by `on_view` is told."""
        if not self._written:  # as nearly always
            return
        come = (self._reflector.version, self._reflector.list_adopted)
        if come != self._settled:
            for key in tuple(self._written):
                self.get(key)
            self._settled = come

    def __iter__(self) -> Iterator[F]:
        if not self._written:  # as nearly always
            return iter(tuple(self._watched.values()))
        keys = [*self._watched, *(key for key in self._written if key not in self._watched)]
        return (fact for key in keys if (fact := self.get(key)) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def keys(self) -> list[str]:
        """The keys of the objects that the watch has told of."""
        return list(self._watched)

    # --- changes -----------------------------------------------------------------------------------------------------

    def _changed(self, key: str, old: F | None, new: F | None) -> None:
        written, now = self._written.get(key), new
        if written is not None:
            if self._told(new, *written):  # else what goes now is an earlier one of this name
                del self._written[key]
            else:
                now = written[0]
        self._moved(key, written[0] if written else old, now)
        for handler in self._handlers:
            with Contained("change", key):
                handler(key, old, new)

    def _beaten(self, key: str) -> None:
        for listener in self._listeners:
            with Contained("beat", key):
                listener(key)

    def _moved(self, key: str, before: F | None, after: F | None) -> None:
        """What `get` gives has changed."""
        if before is after:
            return
        for field, index in self._index.items():
            old, new = getattr(before, field, None), getattr(after, field, None)
            if old is not None and old != new:
                index.discard(old, key)
            if new is not None and old != new:
                index.add(new, key)
        for viewer in self._viewers:
            with Contained("view", key):
                viewer(before, after)


async def _is_of_another_history(known: Mapping[str, str], heads: Mapping[str, str], version: str) -> bool:
    """Whether a cache knows what a list that came after it does not: a version beyond its own, or beyond its head's.

    Versions go on from the backup's after a restore, or jump ahead, as etcd's tool can be told; objects keep theirs.
    """
    newest = number(version) if version.isdecimal() else None
    async for key, ours in sliced(known.items(), SLICE):
        if (newest is not None and number(ours) > newest) or is_older(heads.get(key, ""), ours):
            return True
    return False


async def synced(*informers: Informer[Any]) -> None:
    """Wait until the first list of each is complete."""
    await asyncio.gather(*(informer.synced() for informer in informers))


async def caught_up(*informers: Informer[Any]) -> None:
    """Wait until each has what the API server has now."""
    await asyncio.gather(*(informer.caught_up() for informer in informers))
