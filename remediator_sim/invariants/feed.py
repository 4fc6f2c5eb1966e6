"""Every write of an embedded server, in the order in which it was carried out."""

from collections import deque
from collections.abc import Callable
from typing import Any

from remediator_sim.apiserver import EmbeddedServer
from remediator_sim.apiserver.store import Change, Entry, Listener
from remediator_sim.invariants.contract import KINDS
from remediator_sim.invariants.event import Event


class Feed:
    """Listens from its making until `close`. `standing` is what there was before; `take` empties what came since.

    A listener of the store is told within the write, so that one queue holds the writes of all kinds in their order;
    a watch for each kind would not. Nothing is copied: what is stored is never changed.
    """

    def __init__(self, server: EmbeddedServer) -> None:
        self._cluster, self._queue = server.cluster, deque[Event]()
        self._listeners = {kind: Listener(None, self._hearer(kind), lambda: None) for kind in KINDS}
        for kind, listener in self._listeners.items():
            self._cluster.store.collection(kind).listen(listener)

    def standing(self) -> list[Event]:
        """The objects that are there now, oldest version first."""
        objects = [(entry.rv, kind, entry.obj) for kind in KINDS for entry in self._entries(kind)]
        return [
            Event(kind, self._cluster.now(), None, obj) for _, kind, obj in sorted(objects, key=lambda entry: entry[0])
        ]

    def put(self, kind: str, value: dict[str, Any] | None = None) -> None:
        """Let something that is no write take its place in the order."""
        self._queue.append(Event(kind, self._cluster.now(), None, value))

    def take(self) -> list[Event]:
        """What has happened since it was last asked."""
        taken = list(self._queue)
        self._queue.clear()
        return taken

    def close(self) -> None:
        """Listen no more."""
        for kind, listener in self._listeners.items():
            self._cluster.store.collection(kind).leave(listener)

    def _entries(self, kind: str) -> list[Entry]:
        return list(self._cluster.store.collection(kind).entries.values())

    def _hearer(self, kind: str) -> Callable[[Change], None]:
        def hear(change: Change) -> None:
            gone = change.type == "DELETED"
            old = change.old.obj if change.old else None
            self._queue.append(Event(kind, self._cluster.now(), old, None if gone else change.entry.obj))

        return hear
