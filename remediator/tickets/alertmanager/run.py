"""Asks every Alertmanager again and again, and writes what Tickets should hold."""

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime

import structlog

from remediator.clock import Clock
from remediator.core.alerts import node_names
from remediator.kube.wire import errors
from remediator.prometheus.alerts import Alertmanagers, ListedAlert, together
from remediator.tickets.alertmanager.decide import AlertsChange, decide
from remediator.tickets.reconcile.store import TicketStore

EVERY = 30.0  # seconds between two looks
WRITERS = 16
log = structlog.get_logger()


class Comparison:
    """Compares lists and Tickets, for one leader. What it remembers makes it wait; losing it makes it wait again."""

    def __init__(self, asked: Alertmanagers, store: TicketStore, leads: Callable[[], bool], clock: Clock) -> None:
        self._asked, self._store, self._leads, self._clock = asked, store, leads, clock
        self._missing: Mapping[str, datetime] = {}
        self._writers = asyncio.Semaphore(WRITERS)

    def forget(self) -> None:
        """Another may lead meanwhile."""
        self._missing = {}

    async def compare(self) -> float:
        """One pass; seconds until the next one. Raises ApiError, once all writes are over: try again."""
        now, asked = self._clock.now(), self._asked
        listings = await asked.listings()
        if not (self._store.cache.tickets.fresh() and self._store.cache.nodes.fresh()):
            return EVERY
        # In a thread: of 10,000 alerts both take a third of a second, in which the loop serves others.
        firing = await asyncio.to_thread(together, listings, asked.watchdog)
        nodes = {name for alert in firing.alerts.values() for name in self._nodes(alert)}
        tickets = tuple(self._store.cache.tickets)
        decision = await asyncio.to_thread(decide, tickets, firing, asked.receiver, nodes, self._missing, now)
        self._missing = decision.missing
        results = await asyncio.gather(*map(self._write, decision.changes), return_exceptions=True)
        for failure in results:
            if failure is not None:
                raise failure
        return EVERY

    def _nodes(self, alert: ListedAlert) -> list[str]:
        return [name for name in node_names(alert.labels) if self._store.cache.knows_node(name)]

    async def _write(self, change: AlertsChange) -> None:
        """Where the Ticket has moved since, the next pass decides anew."""
        async with self._writers:
            if not self._leads():
                return
            try:
                await self._store.put(change.subject, change.ticket, change.alerts)
            except (errors.Conflict, errors.AlreadyExists, errors.NotFound) as moved:
                log.info(
                    "the ticket has changed; its alerts are compared again",
                    ticket=change.subject.name,
                    because=str(moved),
                )
