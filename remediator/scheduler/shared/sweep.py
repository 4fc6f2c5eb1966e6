"""Puts ledgers right: takes out what no Pod holds any more, and takes in what Pods hold that no ledger says.

Every replica sweeps; each write is under the version that was read, and what was done already is done by doing nothing.
"""

import asyncio
from collections.abc import Iterable
from contextlib import suppress

import structlog

from remediator.clock import Clock
from remediator.core.shared_gpus import Ledger
from remediator.kube.runtime.informer import synced
from remediator.kube.wire import errors
from remediator.metrics import Contained
from remediator.scheduler.shared.books import Books
from remediator.scheduler.shared.ledger import adopted, doubtful, unlisted
from remediator.scheduler.shared.store import Store
from remediator.scheduler.shared.taking_back import take_back

EVERY = 10.0  # seconds between two looks at all ledgers
SOON = 0.2  # seconds from a Pod's end to the look at its node: several end at once
log = structlog.get_logger(__name__)


class LedgerSweep:
    """Run it as a task."""

    def __init__(self, store: Store, books: Books, clock: Clock) -> None:
        self._store, self._books, self._clock = store, books, clock
        self._left = asyncio.Event()
        books.on_node(lambda node: self._left.set() if node in books.departed else None)

    async def run(self) -> None:
        """Look at all ledgers now and then, and at those of nodes that Pods have left soon, until cancelled."""
        await synced(self._books.nodes, *self._books.informers)
        while True:
            await self.once()
            self._left.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(EVERY):
                    await self._left.wait()
                    await asyncio.sleep(SOON)
            if self._left.is_set():
                await self.once(tuple(self._books.departed))

    async def once(self, nodes: Iterable[str] | None = None) -> None:
        """One look at these nodes; at all that have a ledger, or Pods with cards, where none are named."""
        every = dict.fromkeys((*self._books.ledgers.keys(), *self._books.departed, *self._books.nodes.keys()))
        self._store.keep(every.keys())
        for node in dict.fromkeys(every if nodes is None else nodes):
            with Contained("gpu-ledger", node):
                try:
                    await self._node(node)
                except (errors.ApiError, ValueError) as error:
                    log.warning("a ledger of shared GPUs was not put right", node=node, error=str(error))

    async def _node(self, name: str) -> None:
        ledger, pods, now = self._books.ledger(name), self._books.pods(name), self._clock.now()
        known = self._books.nodes.get(name)
        sizes = known.cards.sizes if known else ()
        gone = set(self._books.departed.get(name, ()))
        for entry in doubtful(ledger, {pod.uid for pod in pods if not pod.ended}, gone, now):
            await take_back(self._store, name, sizes, entry, alone=False)
        if known is not None and known.cards.shared and unlisted(ledger, pods, now):
            await self._store.write(name, sizes, lambda stored: self._with_all(stored, known.uid, name))
        if known is None and ledger.version and not ledger.reservations:
            await self._store.drop(ledger)
        self._forget(name, gone)

    def _with_all(self, stored: Ledger, uid: str, name: str) -> Ledger:
        return adopted(stored if stored.version else Ledger(name, uid), self._books.pods(name), self._clock.now())

    def _forget(self, name: str, looked_after: set[str]) -> None:
        left = self._books.departed.get(name, set())
        left -= looked_after
        if not left:
            self._books.departed.pop(name, None)
