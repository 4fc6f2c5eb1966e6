"""Backups of what is stored, as somebody makes them of etcd."""

import asyncio

from remediator_sim.apiserver.store import Snapshot, Store
from remediator_sim.simulation.clock import now

EVERY = 60.0  # seconds
HEARTBEATS = 150  # of 20 kubelets, their leases included, from one backup to the next


class Backups:
    """Those of one store, oldest first."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._snapshots: list[tuple[float, Snapshot]] = []

    async def run(self) -> None:
        """Make one after the other, until cancelled. Versions go on by the heartbeats that are not sent, too."""
        while True:
            self._store.rv += HEARTBEATS
            self._snapshots.append((now(), self._store.snapshot()))
            await asyncio.sleep(EVERY)

    def restore(self, ago: float, jump: int) -> None:
        """Store what the newest backup has that is so many seconds old; else the oldest.

        `jump`: by how much versions go ahead; with 0 they go on where the backup ends. etcd's own tool does either.
        """
        fit = [snapshot for at, snapshot in self._snapshots if at <= now() - ago] or [self._snapshots[0][1]]
        self._store.restore(fit[-1], self._store.rv + jump if jump else 0)
