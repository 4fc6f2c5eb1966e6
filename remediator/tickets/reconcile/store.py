"""Where Tickets are written under their resourceVersion: alerts by the webhook, the status by the leader."""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime

import structlog

from remediator.core.ticket import Alert, NewestAlerts, Subject, Ticket, bounded
from remediator.kube import api
from remediator.kube.api import decode, encode
from remediator.kube.runtime.turns import in_parts
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client
from remediator.tickets.reconcile.cache import TicketCache

ALERT_CONFLICTS, STATUS_CONFLICTS = 10, 5
SLICE = 500  # alerts about one thing that are merged in one turn of the loop
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
        ticket = self.cache.ticket(subject.name)
        for _ in range(ALERT_CONFLICTS):
            try:
                await self._merge(subject, ticket, alerts, now)
                return ticket
            except (errors.Conflict, errors.AlreadyExists, errors.NotFound):
                ticket = await self._live(subject.name)
        raise errors.Unavailable(0, "Busy", f"Ticket {subject.name} changes faster than we can write")

    async def _merge(self, subject: Subject, ticket: Ticket | None, alerts: Collection[Alert], now: datetime) -> None:
        """One write, or none where the Ticket holds it all already: alerts in it only ever grow newer."""
        if ticket is None:
            wanted = await _merged(subject, (), alerts, now)
            wire = await self.client.create(api.TICKET, encode.new_ticket(subject, wanted))
        else:
            wanted = await _merged(subject, ticket.alerts, alerts, now)
            if wanted == ticket.alerts:
                return
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


async def _merged(
    subject: Subject, known: Collection[Alert], received: Collection[Alert], now: datetime
) -> tuple[Alert, ...]:
    """`merged` of core, in slices between which others are answered. What fires and is left out is told."""
    newest, kept = NewestAlerts(known, now), tuple[Alert, ...]()
    async for part in in_parts(received, SLICE):
        newest.add(part)
    async for part in in_parts(newest, SLICE):
        kept = bounded((*kept, *part))
    if left := sum(alert.firing for alert in newest) - sum(alert.firing for alert in kept):
        log.warning("more alerts fire than a Ticket holds", ticket=subject.name, held=len(kept), left_out=left)
    return kept
