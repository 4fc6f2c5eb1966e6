"""Where a pass writes: Tickets under their resourceVersion, issues through the tracker, each call counted."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

import structlog

from remediator.core.ticket import Subject, Ticket
from remediator.kube import api
from remediator.kube.api import decode, encode
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client
from remediator.tickets import metrics
from remediator.tickets.channels.base import Later, Refused, Tracker, Unsure
from remediator.tickets.reconcile.cache import TicketCache

T = TypeVar("T")
log = structlog.get_logger()
CONFLICTS = 5


class Moved(Exception):
    """The Ticket is not what we decided on: another leader wrote it, or it is gone. Look again."""


class TicketStore:
    """Writes for one leader. `leads` is asked before each call of the tracker."""

    def __init__(self, client: Client, tracker: Tracker, world: TicketCache, leads: Callable[[], bool]) -> None:
        self.client, self.tracker, self.world, self.leads = client, tracker, world, leads

    async def make(self, subject: Subject) -> Ticket:
        """The Ticket of a subject, created unless it is there."""
        try:
            wire = await self.client.create(api.TICKET, encode.new_ticket(subject))
        except errors.AlreadyExists:
            wire = await self.client.get(api.TICKET, subject.name)
        return self._noted(wire)

    async def save(self, before: Ticket, after: Ticket) -> Ticket:
        """Write the status. What the webhook wrote meanwhile is taken over; another's status raises Moved."""
        for _ in range(CONFLICTS):
            if replace(after, version="", alerts=()) == replace(before, version="", alerts=()):
                return before
            try:
                body = encode.ticket_status(after)
                return self._noted(await self.client.patch(api.TICKET, after.name, body, subresource="status"))
            except errors.Conflict:
                live = await self._live(after.name)
            if replace(live, version=before.version, alerts=before.alerts) != before:
                raise Moved(f"{after.name} was written by another")
            before, after = live, replace(after, version=live.version, alerts=live.alerts)
        raise Moved(f"{after.name} moves faster than we can write")

    async def _live(self, name: str) -> Ticket:
        try:
            return self._noted(await self.client.get(api.TICKET, name))
        except errors.NotFound:
            raise Moved(f"{name} is gone") from None

    async def delete(self, ticket: Ticket) -> None:
        """Delete a Ticket as we know it: an alert that came meanwhile keeps it."""
        path = api.TICKET.path(ticket.name)
        only = {"preconditions": {"uid": ticket.uid, "resourceVersion": ticket.version}}
        try:
            await self.client.send("DELETE", path, dict, only)
        except (errors.NotFound, errors.Conflict):
            return

    def _noted(self, wire: api.Ticket) -> Ticket:
        found = decode.ticket(wire)
        self.world.note(found)
        return found

    async def ask(self, action: str, ticket: str, call: Awaitable[T]) -> T:
        """Await one call of the tracker; count how it ended, and log it."""
        result = "failed"
        try:
            answer = await call
            result = "done"
            return answer
        except (Later, Unsure, Refused) as error:
            result = type(error).__name__.lower()
            log.warning("the tracker did not do it", action=action, ticket=ticket, result=result, said=error.message)
            raise
        finally:
            metrics.ISSUE_CALLS.labels(action, result).inc()
