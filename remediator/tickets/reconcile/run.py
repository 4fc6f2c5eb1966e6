"""When tickets are looked at: watches wake subjects, one queue serves them, and only the leader has a queue."""

import asyncio
from collections import Counter
from datetime import UTC
from typing import Any

import structlog
from apscheduler.schedulers.asyncio import AsyncIOScheduler

from remediator.clock import Clock
from remediator.core.case import Case
from remediator.core.policy import Policy
from remediator.core.ticket import Subject, Ticket
from remediator.kube import api
from remediator.kube.api import decode
from remediator.kube.api import decode as codec
from remediator.kube.runtime.elector import Elector
from remediator.kube.runtime.queue import WorkQueue
from remediator.kube.runtime.reflector import Reflector
from remediator.kube.wire.client import Client
from remediator.tickets import metrics
from remediator.tickets.channels.base import Channel
from remediator.tickets.channels.routes import Routes
from remediator.tickets.reconcile.actions import ACTIONS
from remediator.tickets.reconcile.cache import TicketCache, slim
from remediator.tickets.reconcile.conditions import unsynced
from remediator.tickets.reconcile.observe import Times
from remediator.tickets.reconcile.reconciler import Reconciler
from remediator.tickets.reconcile.store import TicketStore
from remediator.tickets.webhook.receiver import Receiver

log = structlog.get_logger()
LEASE = "remediator-tickets"
WORKERS = 4  # the channel takes one write after the other anyway
RESYNC_MINUTES = 10


class Tickets:
    """Everything that one replica runs for tickets. Watches and `receiver` serve everywhere; passes on the leader only.

    `identity` must be new for each process start; `namespace` holds the Lease, whose times are seconds.
    """

    def __init__(
        self,
        client: Client,
        channel: Channel,
        routes: Routes,
        clock: Clock,
        *,
        identity: str,
        namespace: str,
        lease_duration: float = 15.0,
        lease_renew: float = 10.0,
        lease_retry: float = 2.0,
        times: Times | None = None,
    ) -> None:
        self.channel = channel
        self.world = TicketCache(clock.monotonic)
        self.elector = Elector(
            client,
            LEASE,
            namespace,
            identity,
            clock,
            duration=lease_duration,
            renew=lease_renew,
            retry=lease_retry,
        )
        store = TicketStore(client, self.world)
        self.receiver = Receiver(client, store, self.ready, clock)
        self._reconciler = Reconciler(store, channel, routes, times or Times(), ACTIONS, lambda: self.elector.is_leader)
        self._clock = clock
        self._queue: WorkQueue[Subject] | None = None
        self._reflectors = self._watches(client)

    async def run(self) -> None:
        """Watch, and lead whenever the lease is ours, until cancelled."""
        async with asyncio.TaskGroup() as group:
            for reflector in self._reflectors:
                group.create_task(reflector.run())
            await asyncio.gather(*(reflector.synced.wait() for reflector in self._reflectors))
            log.info("tickets synced", tickets=len(self.world.tickets))
            await self.elector.run(self._lead)

    def ready(self) -> bool:
        """Whether every watch has its list and shows signs of life; says nothing of leading."""
        return all(reflector.fresh() for reflector in self._reflectors)

    def measure(self) -> None:
        """Bring the gauges up to date; asked for by each scrape."""
        metrics.TICKETS.clear()
        for phase, count in Counter(ticket.phase.value or "New" for ticket in self.world.tickets.values()).items():
            metrics.TICKETS.labels(phase).set(count)
        metrics.UNSYNCED.set(sum(unsynced(ticket) for ticket in self.world.tickets.values()))

    # --- watches -----------------------------------------------------------------------------------------------------

    def _watches(self, client: Client) -> tuple[Reflector[Any, Any], ...]:
        held = Reflector(client, api.TICKET, decode.ticket, self._on_ticket)
        cases = Reflector(client, api.CASE, lambda wire: slim(codec.remediation_case(wire)), self._on_case)
        policies = Reflector(client, api.POLICY, codec.remediation_policy, self._on_policy)
        self.world.tickets, self.world.cases, self.world.policies = held.store, cases.store, policies.store
        return held, cases, policies

    def _on_ticket(self, key: str, old: Ticket | None, new: Ticket | None) -> None:
        self.world.ticket_changed(key, new)
        self._wake(*(ticket.subject for ticket in (old, new) if ticket))

    def _on_case(self, key: str, old: Case | None, new: Case | None) -> None:
        self.world.case_changed(key, old, new)
        for case in (old, new):
            if case is not None:
                self._wake(*self.world.subjects(case))

    def _on_policy(self, key: str, old: Policy | None, new: Policy | None) -> None:
        self._wake(*self.world.under(key))

    def _wake(self, *subjects: Subject) -> None:
        if self._queue is not None:
            for subject in subjects:
                self._queue.add(subject)

    async def _sweep(self) -> None:
        """A coroutine, though it waits for nothing: APScheduler runs plain functions in threads, beside the loop."""
        self._all()

    def _all(self) -> None:
        self._wake(*self.world.every())

    # --- leading -----------------------------------------------------------------------------------------------------

    async def _lead(self) -> None:
        """Serve the queue; start with a pass over everything, since nothing is remembered."""
        self._queue = WorkQueue()
        self._all()
        scheduler = AsyncIOScheduler(timezone=UTC, job_defaults={"coalesce": True, "misfire_grace_time": 60})
        scheduler.add_job(self._sweep, "interval", minutes=RESYNC_MINUTES)
        scheduler.start()
        try:
            await self._queue.run(self._pass, WORKERS)
        finally:
            scheduler.shutdown(wait=False)
            self._queue.close()
            self._queue = None

    async def _pass(self, subject: Subject) -> float | None:
        return await self._reconciler.reconcile(subject, self._clock.now())
