"""When tickets are looked at: changes wake subjects, and the leader's queue serves them."""

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import timedelta

from remediator.clock import Clock
from remediator.core.case import Case
from remediator.core.policy import Policy
from remediator.core.ticket import Subject, Ticket
from remediator.core.ticket_route import TicketRoute
from remediator.kube.informers import Informers
from remediator.kube.runtime.informer import Informer, synced
from remediator.kube.runtime.leader import Leader, LeaderQueue, Sweep, every
from remediator.kube.wire.client import Client
from remediator.prometheus.alerts import Alertmanagers
from remediator.tickets import metrics
from remediator.tickets.alertmanager.run import Comparison
from remediator.tickets.channels.base import Channel
from remediator.tickets.channels.live_routes import LiveRoutes
from remediator.tickets.channels.routes import Routes
from remediator.tickets.commands.hint import Hints
from remediator.tickets.floods.limits import FloodLimits
from remediator.tickets.floods.line import OpeningQueue
from remediator.tickets.reconcile.actions import ACTIONS
from remediator.tickets.reconcile.cache import TicketCache
from remediator.tickets.reconcile.conditions import unsynced
from remediator.tickets.reconcile.observe import Times
from remediator.tickets.reconcile.reconciler import TicketReconciler
from remediator.tickets.reconcile.store import TicketStore
from remediator.tickets.webhook.receiver import Receiver

WORKERS = 4  # the channel takes one write after the other anyway
RESYNC = timedelta(minutes=10)


class Tickets:
    """The passes over Tickets, which `leader` runs where it leads, and the `receiver` of alerts of every replica.

    Whatever fails here, the leader goes on with its other work. Without `limits` each issue is opened at once, and no
    two nodes share that of an alert.
    """

    def __init__(
        self,
        client: Client,
        channel: Channel,
        routes: Routes | LiveRoutes,
        informers: Informers,
        leader: Leader,
        clock: Clock,
        times: Times | None = None,
        alertmanagers: Alertmanagers | None = None,
        limits: FloodLimits | None = None,
    ) -> None:
        self.channel, self.routes, self.leader, self._clock = channel, routes, leader, clock
        self.cache = TicketCache(informers, limits)
        store = TicketStore(client, self.cache)
        self.hints = Hints(client, self.cache)
        self.receiver = Receiver(client, store, self.ready, clock, asked=alertmanagers is not None, routes=routes)
        line = OpeningQueue(limits, lambda subject: self._queue.add(subject)) if limits else None
        times = times or Times()
        self.rooms_outdated: Callable[[], str] = str  # of the chat, which there may not be
        given = store, channel, routes, times, ACTIONS, lambda: leader.is_leader, line
        self._reconciler = TicketReconciler(*given, lambda: self.rooms_outdated())
        self._queue: LeaderQueue[Subject] = LeaderQueue(
            "tickets",
            self._pass,
            self.cache.every,
            workers=WORKERS,
            informers=lambda: self.cache.informers,
            sweeps=(Sweep("all tickets", every(RESYNC), self._resync),),
            essential=False,
            prepare=self._read_routes,  # those that wait for an issue to be filed by them are watched first
            began=line.forget if line else lambda: None,
        )
        leader.add(self._queue)
        if alertmanagers is not None:
            leader.add(self._comparing(Comparison(alertmanagers, store, lambda: leader.is_leader, clock)))
        self.cache.tickets.on_change(self._on_ticket)
        self.cache.cases.on_change(self._on_case)
        self.cache.policies.on_change(self._on_policy)

    def _comparing(self, comparison: Comparison) -> LeaderQueue[str]:
        return LeaderQueue(
            "alerts",
            lambda key: comparison.compare(),
            lambda: ["alerts"],
            workers=1,
            informers=lambda: self.cache.facts,
            essential=False,
            ended=comparison.forget,
        )

    def take(self, team_routes: Informer[TicketRoute]) -> None:
        """From now on nothing is filed before TicketRoutes are read."""
        self.cache.take(team_routes)

    def _read_routes(self) -> None:
        self.routes.current(self._clock.now())

    def _resync(self) -> None:
        """Where no Ticket is, no pass looks at the routes."""
        self._read_routes()
        self._queue.add_all()

    def fitting(self) -> Mapping[str, int]:
        """How many open issues each TicketRoute fits."""
        return self._reconciler.fitting()

    def ready(self) -> bool:
        """Whether every watch that posts need has its list and shows signs of life; says nothing of leading."""
        return all(informer.fresh() for informer in self.cache.facts)

    def measure(self) -> None:
        """Bring the gauges up to date, those of the routes file too; asked for by each scrape."""
        self._read_routes()
        metrics.TICKETS.clear()
        for phase, count in Counter(ticket.phase.value or "New" for ticket in self.cache.tickets).items():
            metrics.TICKETS.labels(phase).set(count)
        metrics.UNSYNCED.set(sum(unsynced(ticket) for ticket in self.cache.tickets))

    def _on_ticket(self, key: str, old: Ticket | None, new: Ticket | None) -> None:
        self._queue.add(*(ticket.subject for ticket in (old, new) if ticket), *self.cache.folding.touched(old, new))

    def _on_case(self, key: str, old: Case | None, new: Case | None) -> None:
        for case in (old, new):
            if case is not None:
                self._queue.add(*self.cache.subjects(case))

    def _on_policy(self, key: str, old: Policy | None, new: Policy | None) -> None:
        """A write of its status changes nothing that a ticket says."""
        if self._queue.leading and (old is None or new is None or old.spec != new.spec):
            self._queue.add(*self.cache.under(key))

    async def _pass(self, subject: Subject) -> float | None:
        self._read_routes()
        await synced(*self.cache.team_routes)
        return await self._reconciler.reconcile(subject, self._clock.now())  # the wait may have been long
