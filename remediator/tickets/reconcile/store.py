"""Where Tickets are written under their resourceVersion: alerts by the webhook, the status by the leader."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime

import structlog

from remediator.core.ticket import ALERTS, Alert, NewestAlerts, Subject, Ticket, bounded
from remediator.kube import api
from remediator.kube.api import decode, encode
from remediator.kube.runtime.turns import in_parts
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client
from remediator.tickets.reconcile.cache import TicketCache

ALERT_CONFLICTS, STATUS_CONFLICTS = 10, 5
SLICE = 100  # alerts in one turn of the loop: a delivery may have ten thousands, and kube-scheduler asks meanwhile
log = structlog.get_logger()


class TicketChanged(Exception):
    """The Ticket is not the one that we decided on: another leader wrote it, or it is gone. Read it again."""


class TicketStore:
    """Reads Tickets from the cache and writes them to the API server."""

    def __init__(self, client: Client, cache: TicketCache) -> None:
        self.client, self.cache = client, cache

    async def make(self, subject: Subject) -> Ticket:
        """The Ticket of a subject, created unless it is there."""
        try:
            wire = await self.client.create(api.TICKET, encode.new_ticket(subject))
        except errors.AlreadyExists:
            wire = await self.client.get(api.TICKET, subject.name)
        return self._noted(wire)

    async def merge(self, subject: Subject, alerts: Collection[Alert], now: datetime) -> Ticket | None:
        """Write alerts into the Ticket of a subject; the Ticket as it was before, None where there was none.

        Raises ApiError.
        """
        received = await ReceivedAlerts.of(alerts, now)  # once: what a Ticket has changes while others have their turns
        ticket = self.cache.ticket(subject.name)
        for _ in range(ALERT_CONFLICTS):
            try:
                await self._merge(subject, ticket, received, now)
                return ticket
            except (errors.Conflict, errors.AlreadyExists, errors.NotFound):
                ticket = await self._live(subject.name)
        raise errors.Unavailable(0, "Busy", f"Ticket {subject.name} changes faster than we can write")

    async def _merge(self, subject: Subject, ticket: Ticket | None, received: "ReceivedAlerts", now: datetime) -> None:
        """One write, or none where the Ticket holds it all already: alerts in it only ever grow newer."""
        known = ticket.alerts if ticket else ()
        wanted = received.beside(known, now)
        if others := received.firing_beside(known) - sum(alert.firing for alert in wanted):
            log.warning("more alerts fire than a Ticket holds", ticket=subject.name, held=len(wanted), others=others)
        if ticket is None:
            wire = await self.client.create(api.TICKET, encode.new_ticket(subject, wanted))
        elif wanted == ticket.alerts:
            return
        else:
            wire = await self.client.patch(api.TICKET, ticket.name, encode.with_alerts(ticket, wanted))
        self._noted(wire)

    async def put(self, subject: Subject, ticket: Ticket | None, alerts: Collection[Alert]) -> None:
        """Write all alerts of a Ticket that is as we know it. Raises Conflict, AlreadyExists or NotFound elsewise."""
        if ticket is None:
            self._noted(await self.client.create(api.TICKET, encode.new_ticket(subject, alerts)))
        else:
            self._noted(await self.client.patch(api.TICKET, ticket.name, encode.with_alerts(ticket, alerts)))

    async def save(self, before: Ticket, after: Ticket) -> Ticket:
        """Write the status. Alerts that came meanwhile are taken over; another's status raises TicketChanged."""
        for _ in range(STATUS_CONFLICTS):
            if replace(after, version="", alerts=()) == replace(before, version="", alerts=()):
                return before
            try:
                body = encode.ticket_status(after)
                return self._noted(await self.client.patch(api.TICKET, after.name, body, subresource="status"))
            except errors.Conflict:
                live = await self._live(after.name)
            if live is None:
                raise TicketChanged(f"{after.name} is gone")
            if replace(live, version=before.version, alerts=before.alerts, hinted=before.hinted) != before:
                raise TicketChanged(f"{after.name} was written by another")
            before, after = live, replace(after, version=live.version, alerts=live.alerts, hinted=live.hinted)
        raise TicketChanged(f"{after.name} changes faster than we can write")

    async def delete(self, ticket: Ticket) -> None:
        """Delete a Ticket as we know it: an alert that came meanwhile keeps it."""
        try:
            await self.client.delete(api.TICKET, ticket.name, uid=ticket.uid, version=ticket.version)
        except (errors.NotFound, errors.Conflict):
            return

    async def _live(self, name: str) -> Ticket | None:
        try:
            return self._noted(await self.client.get(api.TICKET, name))
        except errors.NotFound:
            return None

    def _noted(self, wire: api.Ticket) -> Ticket:
        ticket = decode.ticket(wire)
        self.cache.note(ticket)
        return ticket


@dataclass(frozen=True, slots=True)
class ReceivedAlerts:
    """The alerts of one delivery about one thing, put in order once, so that to merge them takes one short turn.

    `foremost`: twice as many as a Ticket holds, since it may know as many of them as newer. `firing`: how many fire.
    """

    newest: NewestAlerts
    foremost: tuple[Alert, ...]
    firing: int

    @classmethod
    async def of(cls, received: Collection[Alert], now: datetime) -> "ReceivedAlerts":
        """In slices, between which others are answered."""
        newest, foremost, firing = NewestAlerts((), now), tuple[Alert, ...](), 0
        async for part in in_parts(received, SLICE):
            newest.add(part)
        async for part in in_parts(newest, SLICE):
            foremost = bounded((*foremost, *part), 2 * ALERTS)
            firing += sum(alert.firing for alert in part)
        return cls(newest, foremost, firing)

    def beside(self, known: Collection[Alert], now: datetime) -> tuple[Alert, ...]:
        """What a Ticket holds of these and those that it has."""
        merged = NewestAlerts(known, now)
        merged.add((*self.foremost, *self.newest.same(known)))
        return bounded(merged)

    def firing_beside(self, known: Collection[Alert]) -> int:
        """How many of these and of those that a Ticket has fire, by what was received last of each."""
        received = {alert.fingerprint for alert in self.newest.same(known)}
        return self.firing + sum(alert.firing for alert in known if alert.fingerprint not in received)
