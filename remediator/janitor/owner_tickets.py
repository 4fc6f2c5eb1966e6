"""The Tickets of owners: what comments ask to keep is kept, and what the janitor has told owners is written."""

from collections.abc import Callable
from datetime import datetime

import structlog

from remediator.core import names
from remediator.core.audit import Authority, Mandate
from remediator.core.command import Keep
from remediator.core.idle_policy import IdleTicket
from remediator.core.ticket import About, Ticket
from remediator.janitor.decide import JanitorReason
from remediator.janitor.directory import Directory
from remediator.janitor.idle.owner_tickets import OwnerTicketChange, changes
from remediator.janitor.pass_report import Report
from remediator.janitor.readable import readable
from remediator.janitor.subject import of
from remediator.janitor.ttl import FOREVER, UnreadableTime, parse_expiry
from remediator.janitor.writer import Writer
from remediator.kube import api
from remediator.kube.api import decode, encode, owners
from remediator.kube.api.builtin import Head
from remediator.kube.runtime.audited import on_behalf
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client
from remediator.kube.wire.times import stamp

KINDS = {kind.plural: kind for kind in (owners.JOB, owners.DEPLOYMENT, owners.STATEFUL_SET, owners.POD)}
MINE = f"{names.ABOUT}={About.OWNER.value}"
log = structlog.get_logger(__name__)


class OwnerTickets:
    """Tickets in one pass at one time. What is refused because somebody else wrote is for the next pass."""

    def __init__(self, client: Client, writer: Writer, now: datetime, leads: Callable[[], bool]) -> None:
        self._client, self._writer, self._now, self._leads = client, writer, now, leads
        self._tickets: dict[str, Ticket] = {}
        self._unread = ""  # why they could not be read; who wants none does not need the right
        self.problems: list[str] = []

    async def keep(self) -> None:
        """Read the Tickets, and keep what comments ask for, each with the name of who did."""
        try:
            tickets, problems = await readable(self._client, api.TICKET, decode.ticket, "the ticket", MINE)
        except errors.NotFound:  # nobody has applied the kind
            return
        except errors.ApiError as refused:
            self._unread = f"the tickets of owners are not read: {refused.message}"
            return
        self.problems += [f"{problem}; correct it, or delete it to have it made anew" for problem in problems]
        self._tickets = {ticket.name: ticket for ticket in tickets}
        for ticket in list(self._tickets.values()):
            left = tuple([keep for keep in ticket.keeps if not await self._kept(keep, ticket)])
            if left != ticket.keeps:
                await self._patch(ticket, encode.with_keeps(ticket, left))

    async def _kept(self, keep: Keep, ticket: Ticket) -> bool:
        """Write one on its object; whether nothing is left to do about it."""
        plural, _, rest = keep.target.partition("/")
        namespace, _, name = rest.partition("/")
        if keep.until <= self._now or plural not in KINDS or not name:
            return True
        kind = KINDS[plural]
        try:
            live = await self._client.get(kind, name, namespace=namespace)
            if not self._leads():
                return False
            if not _longer(keep, live.metadata.annotations.get(names.KEEP_UNTIL, "")):
                return True
            meta, until = live.metadata, stamp(keep.until)
            issue = f" in {ticket.issue.url}" if ticket.issue else ""
            message = f"{kind.name} {name} is kept until {until}, as {keep.user} has asked{issue}"
            await self._writer.event(of(kind, Head(metadata=meta)), JanitorReason.KEPT, message, until, self._now)
            marks = {names.KEEP_UNTIL: until, names.KEEP_SET_BY: f"{keep.user} {until}"}
            body = encode.idle_marks(meta.uid, meta.resource_version, marks)
            with on_behalf(Mandate(Authority.USER, keep.user)):
                await self._client.patch(kind, name, body, namespace=namespace)
        except errors.NotFound:
            return True
        except errors.Conflict:
            return False
        except errors.ApiError as refused:
            self.problems.append(f"{keep.target} is not kept as {keep.user} has asked: {refused.message}")
            return False
        log.info("kept", object=keep.target, until=until, set_by=keep.user, ticket=ticket.name)
        return True

    async def write(self, report: Report, directory: Directory) -> None:
        """Write what owners have been told. Only where the last look at IdlePolicies was whole, anything ends."""
        if self._unread:
            asked = any(idle.policy.ticket is IdleTicket.EACH_OWNER for idle in report.idle)
            self.problems += [self._unread] * asked
            return
        tickets = self._tickets.values()
        for change in changes(report.idle, tickets, directory, self._now, whole=report.idle_whole):
            if self._leads():
                await self._change(change)

    async def _change(self, change: OwnerTicketChange) -> None:
        if change.ticket is not None:
            await self._patch(change.ticket, encode.with_alerts(change.ticket, change.alerts))
            return
        try:
            await self._client.create(api.TICKET, encode.new_ticket(change.subject, change.alerts))
        except errors.AlreadyExists:
            return
        except errors.ApiError as refused:
            self.problems.append(f"the ticket of {change.subject.owner} is not made: {refused.message}")

    async def _patch(self, ticket: Ticket, body: encode.Body) -> None:
        try:
            wire = await self._client.patch(api.TICKET, ticket.name, body)
            self._tickets[ticket.name] = decode.ticket(wire)
        except (errors.Conflict, errors.NotFound):
            self._tickets.pop(ticket.name)
        except errors.ApiError as refused:
            self.problems.append(f"the ticket {ticket.name} is not written: {refused.message}")


def _longer(keep: Keep, text: str) -> bool:
    """Whether it keeps an object longer than its annotation does."""
    if text.strip() == FOREVER:
        return False
    try:
        return not text or parse_expiry(text) < keep.until
    except UnreadableTime:
        return True
