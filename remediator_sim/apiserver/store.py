"""What is stored: objects under one counter of versions, the recent history of each kind, and who watches it."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec

from remediator_sim.apiserver.selectors import field_value
from remediator_sim.apiserver.status import Obj, expired

Key = tuple[str, str]  # namespace ("" for cluster scope), name
_encode = msgspec.json.Encoder().encode


class Entry:
    """One stored object at one version. Never changed after it was stored; encoded once."""

    __slots__ = ("_json", "obj", "rv")

    def __init__(self, obj: Obj, rv: int) -> None:
        self.obj, self.rv = obj, rv
        self._json: bytes | None = None

    @property
    def json(self) -> bytes:
        """The object as JSON."""
        if self._json is None:
            self._json = _encode(self.obj)
        return self._json

    def copy(self) -> Obj:
        """A copy that the caller may change."""
        return msgspec.json.decode(self.json)  # type: ignore[no-any-return]


class Change:
    """One write: ADDED, MODIFIED or DELETED; `entry` is the new (or last) state, `old` what was there before."""

    __slots__ = ("entry", "frames", "key", "old", "rv", "type")

    def __init__(self, rv: int, type_: str, key: Key, entry: Entry, old: Entry | None) -> None:
        self.rv, self.type, self.key, self.entry, self.old = rv, type_, key, entry, old
        self.frames: dict[tuple[str, str], bytes] = {}  # the encoded watch event, by (event type, form)

    def left(self) -> Entry:
        """What somebody sees whose selector it no longer matches: the old state at the new version."""
        old = self.old or self.entry
        return Entry({**old.obj, "metadata": {**old.obj["metadata"], "resourceVersion": str(self.rv)}}, self.rv)


class Listener(NamedTuple):
    """Somebody who is told of changes. `address` is a field term that all its objects share, or None."""

    address: tuple[str, str] | None
    tell: Callable[[Change], None]
    end: Callable[[], None]


class Collection:
    """All objects of one kind, in the order of their keys."""

    def __init__(self, history: int) -> None:
        self.entries: dict[Key, Entry] = {}
        self.keys: list[Key] = []
        self.changes: list[Change] = []
        self.floor = 0  # changes up to this version are forgotten
        self.states = 0  # how often something has changed: what was read of one state holds until the next
        self._history = history
        # Told in the order in which they came: a set would be ordered by addresses in memory.
        self._listeners: dict[tuple[str, str] | None, dict[Listener, None]] = {}

    def scan(self, namespace: str) -> Iterator[Entry]:
        """The objects of one namespace, or of all where it is empty."""
        keys = self.keys
        if namespace:
            keys = keys[bisect_left(keys, (namespace, "")) : bisect_left(keys, (namespace + "\0", ""))]
        return (self.entries[key] for key in keys)

    @property
    def newest(self) -> int:
        """The version of the last change."""
        return self.changes[-1].rv if self.changes else self.floor

    def put(self, change: Change) -> None:
        """Take a change in, remember it and tell the listeners."""
        if change.type == "DELETED":
            del self.entries[change.key]
            del self.keys[bisect_left(self.keys, change.key)]
        else:
            if change.key not in self.entries:
                insort(self.keys, change.key)
            self.entries[change.key] = change.entry
        self.states += 1
        self.changes.append(change)
        if len(self.changes) > 2 * self._history:
            self.forget(self._history)
        self._tell(change)

    def forget(self, keep: int = 0) -> None:
        """Drop all but the newest `keep` changes."""
        dropped = self.changes[: len(self.changes) - keep]
        if dropped:
            self.floor = dropped[-1].rv
            del self.changes[: len(dropped)]

    def since(self, rv: int) -> list[Change]:
        """The changes after version `rv`. Raises 410 where they are forgotten."""
        if rv < self.floor:
            raise expired(f"too old resource version: {rv} ({self.floor})")
        return self.changes[bisect_right(self.changes, rv, key=lambda change: change.rv) :]

    def at(self, rv: int, namespace: str) -> list[Entry]:
        """The objects as they were at version `rv`, in order of their keys. Raises 410 where that is forgotten."""
        later = self.since(rv)
        if not later:
            return list(self.scan(namespace))
        then: dict[Key, Entry | None] = {}
        for change in reversed(later):
            then[change.key] = change.old
        keys = sorted({*self.keys, *then})
        entries = (then.get(key, self.entries.get(key)) for key in keys if not namespace or key[0] == namespace)
        return [entry for entry in entries if entry is not None]

    def listen(self, listener: Listener) -> None:
        """Tell `listener` of every change at its address from now on."""
        self._listeners.setdefault(listener.address, {})[listener] = None

    def leave(self, listener: Listener) -> None:
        """Tell it no more."""
        self._listeners.get(listener.address, {}).pop(listener, None)

    def end(self) -> None:
        """End every listener: the kind is no longer served."""
        for listener in [one for group in self._listeners.values() for one in group]:
            listener.end()

    def _tell(self, change: Change) -> None:
        states = [entry for entry in (change.entry, change.old) if entry is not None]
        addresses: dict[tuple[str, str] | None, None] = {None: None}
        for path in dict.fromkeys(address[0] for address in self._listeners if address):
            addresses |= {(path, field_value(entry.obj, path)): None for entry in states}
        for address in addresses:
            for listener in tuple(self._listeners.get(address, ())):
                listener.tell(change)


class Snapshot(NamedTuple):
    """All that is stored at one version, by kind."""

    rv: int
    entries: dict[str, dict[Key, Entry]]


class Store:
    """The collections under one counter."""

    def __init__(self, history: int = 2048) -> None:
        self.rv = 1
        self._history = history
        self._collections: dict[str, Collection] = {}

    def collection(self, storage: str) -> Collection:
        """The objects of one kind."""
        collection = self._collections.get(storage)
        if collection is None:
            collection = self._collections[storage] = Collection(self._history)
        return collection

    def collections(self) -> dict[str, Collection]:
        """All collections by their key."""
        return self._collections

    def drop(self, storage: str) -> None:
        """Forget a kind whose definition is gone."""
        if gone := self._collections.pop(storage, None):
            gone.end()

    def clear(self) -> None:
        """Forget everything, once nobody asks any more: objects that go by themselves need no collector."""
        for collection in self._collections.values():
            collection.entries.clear()
            collection.states += 1
            collection.forget()

    def write(self, storage: str, key: Key, obj: Obj) -> Entry:
        """Store `obj` (ours from now on) under a new version."""
        collection = self.collection(storage)
        old = collection.entries.get(key)
        self.rv += 1
        obj["metadata"]["resourceVersion"] = str(self.rv)
        # Type first: lists of built-in kinds leave it out by cutting it off.
        entry = Entry({"apiVersion": obj["apiVersion"], "kind": obj["kind"]} | obj, self.rv)
        collection.put(Change(self.rv, "MODIFIED" if old else "ADDED", key, entry, old))
        return entry

    def delete(self, storage: str, key: Key, last: Obj) -> Entry:
        """Remove an object that is there; the answer is its `last` state under the version of its removal."""
        collection = self.collection(storage)
        old = collection.entries[key]
        self.rv += 1
        entry = Entry({**last, "metadata": {**last["metadata"], "resourceVersion": str(self.rv)}}, self.rv)
        collection.put(Change(self.rv, "DELETED", key, entry, old))
        return entry

    def snapshot(self) -> "Snapshot":
        """What is stored now. Entries never change, so nothing is copied."""
        return Snapshot(self.rv, {name: dict(one.entries) for name, one in self._collections.items()})

    def restore(self, snapshot: "Snapshot", rv: int = 0) -> None:
        """Store what was stored then, at version `rv` or that of the snapshot, without any history."""
        self.rv = max(rv, snapshot.rv)
        for name in (*self._collections, *snapshot.entries):
            collection = self.collection(name)
            collection.entries = dict(snapshot.entries.get(name, {}))
            collection.keys = sorted(collection.entries)
            collection.states += 1
        self.compact()

    def compact(self) -> None:
        """Forget all history, as etcd's compaction does."""
        for collection in self._collections.values():
            collection.forget()
            collection.floor = self.rv
