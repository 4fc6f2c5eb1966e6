"""What was posted is written to the Ticket: first that it begins, then where it is."""

from remediator.core.chat import ChatThread
from remediator.core.ticket import Ticket
from remediator.kube import api
from remediator.kube.api import decode, encode
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client
from remediator.tickets.reconcile.cache import TicketCache

CONFLICTS = 5


class ThreadChanged(Exception):
    """What the Ticket says of the thread is not what we decided on: another leader wrote it, or the Ticket is gone."""


class NotKept(Exception):
    """The API server took the write and dropped what was written: its CRD is older than we are."""


class ThreadStore:
    """Writes threads under the resourceVersion of their Tickets; nobody else writes that part."""

    def __init__(self, client: Client, cache: TicketCache) -> None:
        self._client, self._cache = client, cache

    async def put(self, ticket: Ticket, room: str, thread: ChatThread | None) -> None:
        """Write the thread of a room, None for none. Raises ThreadChanged, NotKept, ApiError."""
        before = ticket.thread(room)
        for _ in range(CONFLICTS):
            live = await self._live(ticket)
            if live.thread(room) != before:
                raise ThreadChanged(f"{ticket.name} was written by another")
            others = [other for other in live.chat if other.room != room]
            body = encode.ticket_chat(live, [*others, *([thread] if thread else [])])
            try:
                wire = await self._client.patch(api.TICKET, ticket.name, body, subresource="status")
            except errors.Conflict:
                continue
            written = decode.ticket(wire)
            self._cache.note(written)
            if written.thread(room) != thread:
                raise NotKept(f"Ticket {ticket.name} has no status.chat; apply deploy/crds")
            return
        raise ThreadChanged(f"{ticket.name} changes faster than we can write")

    async def _live(self, ticket: Ticket) -> Ticket:
        try:
            live = decode.ticket(await self._client.get(api.TICKET, ticket.name))
        except errors.NotFound:
            raise ThreadChanged(f"{ticket.name} is gone") from None
        if live.uid != ticket.uid:
            raise ThreadChanged(f"{ticket.name} is another one now")
        return live
