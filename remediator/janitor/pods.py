"""The Pods of the cluster as a watch tells of them: what passes need of each, packed, so that a pass lists none."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from remediator.core import names
from remediator.core.pod_facts import PodFacts
from remediator.janitor import subject as subjects
from remediator.janitor.settings import JanitorSettings
from remediator.janitor.subject import JanitorSubject
from remediator.kube.api import janitor_pods
from remediator.kube.api.builtin import Head
from remediator.kube.api.common import ObjectMeta, OwnerReference, controller
from remediator.kube.api.janitor_pods import kept
from remediator.kube.runtime.reflector import Reflector
from remediator.kube.runtime.turns import sliced
from remediator.kube.wire.client import Client, Kind

READ = (names.KEEP_UNTIL, names.KEEP_SET_BY, names.IDLE_POLICY, names.IDLE_NOTIFIED_AT, names.IDLE_UNTIL)
# Without one of these the metadata of a Pod says nothing about its life, nor about that of what makes it.
MARKS = frozenset({names.JANITOR_TTL, names.JANITOR_EXPIRES, names.KEEP_UNTIL})
FIRST_LIST = 30.0  # seconds for which the first pass waits for it
SLICE = 1000  # Pods that are unpacked between two turns of the loop: a few ms
NOTHING = b""  # of a Pod that no pass looks at


class WatchedPod(NamedTuple):
    """What passes need of one Pod. `goes_on`: it has not ended. `by`: kind, name and uid of what makes it."""

    facts: PodFacts
    version: str
    deleted: datetime | None
    goes_on: bool
    by: tuple[str, str, str] | None

    @property
    def maker(self) -> OwnerReference | None:
        """What makes it anew."""
        if self.by is None:
            return None
        kind, name, uid = self.by
        return OwnerReference(kind=kind, name=name, uid=uid, controller=True)

    def subject(self, kind: Kind[Any]) -> JanitorSubject:
        """The Pod by its metadata alone."""
        facts, maker = self.facts, self.maker
        meta = ObjectMeta(
            name=facts.name,
            namespace=facts.namespace,
            uid=facts.uid,
            resource_version=self.version,
            creation_timestamp=facts.created,
            deletion_timestamp=self.deleted,
            annotations=dict(facts.annotations),
            owner_references=(maker,) if maker else (),
        )
        return subjects.of(kind, Head(metadata=meta))


_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(WatchedPod).decode


class PodWatch:
    """Follows all Pods. What it says is for looking: whoever deletes or changes something looks at it live before."""

    def __init__(self, client: Client, settings: JanitorSettings) -> None:
        self._selection = settings.selection
        notices = (names.JANITOR_NOTIFIED, names.JANITOR_NOTIFIED_AT, settings.terms.deployment_time)
        self._annotations = tuple({*READ, *MARKS, *notices})
        self._reflector: Reflector[janitor_pods.JanitorPod, bytes] = Reflector(
            client, janitor_pods.POD, self._packed, self._changed
        )
        self._marked: set[str] = set()  # keys of those that say how long they live, or are kept

    async def run(self) -> None:
        """Follow the API server until cancelled."""
        await self._reflector.run()

    async def listed(self) -> None:
        """Wait for the first list, but not for ever."""
        with suppress(TimeoutError):
            async with asyncio.timeout(FIRST_LIST):
                await self._reflector.synced.wait()

    def whole(self) -> bool:
        """Whether every Pod is known, and the watch shows signs of life."""
        return self._reflector.fresh() and not self._reflector.unknown

    def marked(self, kind: Kind[Any]) -> Iterator[JanitorSubject]:
        """Those whose metadata says something, in order of their names."""
        packed = ((key, self._reflector.store.get(key)) for key in sorted(self._marked))
        return (_unpack(pod).subject(kind) for _, pod in packed if pod)

    def unmarked(self) -> int:
        """How many others there are in namespaces that are looked at."""
        places = (key.partition("/")[0] for key in self._reflector.store)
        return sum(map(self._selection.namespace, places)) - len(self._marked)

    async def going_on(self) -> AsyncIterator[WatchedPod]:
        """Those that have not ended, in namespaces that are looked at."""
        async for packed in sliced(tuple(self._reflector.store.values()), SLICE):
            if packed and (pod := _unpack(packed)).goes_on:
                yield pod

    def _packed(self, wire: janitor_pods.JanitorPod) -> bytes:
        meta, goes_on = wire.metadata, janitor_pods.goes_on(wire)
        is_marked = not MARKS.isdisjoint(meta.annotations)
        if not (goes_on or is_marked) or not self._selection.namespace(meta.namespace):
            return NOTHING
        maker = controller(meta.owner_references)
        by = (kept(maker.kind), kept(maker.name), kept(maker.uid)) if maker else None
        facts = janitor_pods.facts(wire, self._annotations)
        return _pack(WatchedPod(facts, meta.resource_version, meta.deletion_timestamp, goes_on, by))

    def _changed(self, key: str, old: bytes | None, new: bytes | None) -> None:
        if new and not MARKS.isdisjoint(_unpack(new).facts.annotations):
            self._marked.add(key)
        else:
            self._marked.discard(key)
