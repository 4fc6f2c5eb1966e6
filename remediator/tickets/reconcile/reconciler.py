"""Which tickets a pass is over: those that exist, and those that a case wants."""

from datetime import datetime, timedelta

import structlog

from remediator.core.ticket import Subject, Ticket
from remediator.kube.api.builtin import NAMESPACE
from remediator.kube.wire import errors
from remediator.tickets.channels.routes import Routes
from remediator.tickets.reconcile.actions import ACTIONS
from remediator.tickets.reconcile.observe import Times, abandoned
from remediator.tickets.reconcile.reconcile import Reconcile, Rules
from remediator.tickets.reconcile.situation import Situation, situation
from remediator.tickets.reconcile.store import TicketStore
from remediator.tickets.reconcile.subject import of_case, wants
from remediator.tickets.render import body as render

log = structlog.get_logger()


class Reconciler:
    """Passes over tickets, for one leader."""

    def __init__(self, desk: TicketStore, routes: Routes, times: Times) -> None:
        self.desk, self.routes, self.times = desk, routes, times
        self._reads: dict[str, datetime] = {}
        self._rests: dict[str, datetime] = {}
        self._cluster: str | None = None

    async def visit(self, subject: Subject, now: datetime) -> float | None:
        """One pass; seconds until the next look, None for no such wish. Raises ApiError: try again."""
        ticket = self.desk.world.ticket(subject.name)
        if ticket is None:
            if not self._wanted(subject):
                self._reads.pop(subject.name, None)
                self._rests.pop(subject.name, None)
                return None
            ticket = await self.desk.make(subject)
        if abandoned(ticket, self._situation(ticket), now, self.times):
            await self.desk.delete(ticket)
            return None
        if (rest := (self._rests.get(subject.name, now) - now).total_seconds()) > 0:
            return rest
        cluster = await self._cluster_uid()
        rules = Rules(self.routes, self.times, lambda name: render.key(cluster, name))
        visit = Reconcile(self.desk, rules, ticket, self._situation, self._reads, now)
        try:
            return await visit.run(ACTIONS)
        finally:
            self._rests[subject.name] = now + timedelta(seconds=visit.rests)

    def _wanted(self, subject: Subject) -> bool:
        return any(wants(case, policy) and of_case(case) == subject for case, policy in self.desk.world.about(subject))

    def _situation(self, ticket: Ticket) -> Situation:
        return situation(ticket, self.desk.world.about(ticket.subject))

    async def _cluster_uid(self) -> str:
        """What tells this cluster from others that write to the same repository; read once."""
        if self._cluster is None:
            try:
                self._cluster = (await self.desk.client.get(NAMESPACE, "kube-system")).metadata.uid
            except (errors.NotFound, errors.Forbidden) as refused:
                log.warning(
                    "no name for this cluster", failed=str(refused), remedy="allow get on namespace kube-system"
                )
                self._cluster = ""
        return self._cluster
