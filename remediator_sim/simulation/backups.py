"""Backups of what is stored, as somebody makes them of etcd."""

import asyncio

from remediator_sim.apiserver.store import Snapshot, Store
from remediator_sim.simulation.clock import now

EVERY = 60.0  # seconds
SKIPPED = 1000  # versions that a restore leaves out: they go on, as etcd's own tool has it


class Backups:
    """Those of one store, oldest first."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._snapshots: list[tuple[float, Snapshot]] = []

    async def run(self) -> None:
        """Make one after the other, until cancelled."""
        while True:
            self._snapshots.append((now(), self._store.snapshot()))
            await asyncio.sleep(EVERY)

    def restore(self, ago: float) -> None:
        """Store what the newest backup has that is so many seconds old; else the oldest."""
        fit = [snapshot for at, snapshot in self._snapshots if at <= now() - ago] or [self._snapshots[0][1]]
        self._store.restore(fit[-1], self._store.rv + SKIPPED)
