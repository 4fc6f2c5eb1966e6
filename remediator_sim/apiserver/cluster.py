"""The state of one embedded cluster: what is stored, which kinds are served, the clock, and who follows each write."""

from collections.abc import Callable
from datetime import UTC, datetime
from random import Random

from remediator.clock import Clock
from remediator.kube.wire import times
from remediator_sim.apiserver import status
from remediator_sim.apiserver.resources import Registry, Resource
from remediator_sim.apiserver.status import Obj
from remediator_sim.apiserver.store import Collection, Entry, Key, Store

# Called after a write of a kind: (cluster, what was there before, what is there now); None for nothing.
Follower = Callable[["Cluster", Entry | None, Entry | None], None]


class Cluster:
    """Everything that a request can read or change. All methods are synchronous: a request is one step."""

    def __init__(self, clock: Clock, chance: Random, history: int) -> None:
        self._clock, self.chance = clock, chance
        self.store = Store(history)
        self.registry = Registry()
        self.secret = chance.randbytes(32)  # signs the tokens of service accounts
        self.followers: dict[str, Follower] = {}

    def now(self) -> datetime:
        """The clock's time, UTC."""
        now = self._clock.wall()
        return now if now.tzinfo is UTC else now.astimezone(UTC)

    def stamp(self) -> str:
        """The clock's time as objects carry it."""
        return times.stamp(self.now())

    def collection(self, resource: Resource) -> Collection:
        """Where the objects of a kind are."""
        return self.store.collection(resource.storage)

    def find(self, storage: str, namespace: str, name: str) -> Entry | None:
        """One stored object, or None."""
        return self.store.collection(storage).entries.get((namespace, name))

    def get(self, resource: Resource, namespace: str, name: str) -> Entry:
        """One stored object. Raises 404."""
        entry = self.find(resource.storage, namespace, name)
        if entry is None:
            raise status.not_found(resource.group, resource.plural, name)
        return entry

    def put(self, storage: str, obj: Obj) -> Entry:
        """Store an object in its stored form, and tell the follower of its kind."""
        key: Key = (obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
        old = self.store.collection(storage).entries.get(key)
        entry = self.store.write(storage, key, obj)
        self._follow(storage, old, entry)
        return entry

    def remove(self, storage: str, last: Obj) -> Entry:
        """Take an object away for good, `last` being the state that watchers see go; tell the follower of its kind."""
        key: Key = (last["metadata"].get("namespace", ""), last["metadata"]["name"])
        old = self.store.collection(storage).entries[key]
        gone = self.store.delete(storage, key, last)
        self._follow(storage, old, None)
        return gone

    def _follow(self, storage: str, old: Entry | None, new: Entry | None) -> None:
        follower = self.followers.get(storage)
        if follower is not None:
            follower(self, old, new)
