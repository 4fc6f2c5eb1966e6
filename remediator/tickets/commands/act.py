"""What commands do: fields of cases, assignees and labels of issues. Each is harmless to repeat."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

import structlog

from remediator.core import names
from remediator.core.audit import Authority, Mandate
from remediator.core.case import Case
from remediator.core.command import CaseChange, Keep, hold_until, kept, obeyed
from remediator.core.owner_work import firing, object_of
from remediator.core.ticket import IssueRef, Ticket
from remediator.kube import api
from remediator.kube.api import decode, encode
from remediator.kube.runtime.audited import on_behalf
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client
from remediator.tickets import metrics
from remediator.tickets.channels.base import Channel, Relabel
from remediator.tickets.channels.inbox import Comment, Inbox
from remediator.tickets.commands.decide import CommandDecision, IssueCommand, decide
from remediator.tickets.commands.parse import WrittenCommand
from remediator.tickets.reconcile.cache import TicketCache
from remediator.tickets.reconcile.wanted import concerns
from remediator.tickets.render.markdown import code

TRIES = 5
log = structlog.get_logger()


class NotNow(Exception):
    """We do not lead, or cases change faster than we can decide: look again soon."""


class _Moved(Exception):
    """A case is not the one that was decided on; the cache holds it as it is now."""


class Acting:
    """Carries commands out. `leads` is asked before each write."""

    def __init__(
        self, client: Client, channel: Channel, inbox: Inbox, cache: TicketCache, leads: Callable[[], bool]
    ) -> None:
        self._client, self._channel, self._inbox, self._cache, self._leads = client, channel, inbox, cache, leads

    async def act(
        self, ticket: Ticket, issue: IssueRef, comment: Comment, number: int, command: WrittenCommand
    ) -> CommandDecision:
        """Carry out one command of a comment, the one with this number. Raises NotNow, ChannelError, ApiError."""
        for _ in range(TRIES):
            ticket = self._cache.ticket(ticket.name) or ticket
            work = tuple(object_of(alert) for alert in firing(ticket) if alert.starts <= comment.created)
            asked = IssueCommand(command, comment.author, comment.created, self._cases(ticket, comment.created), work)
            decision = decide(asked)
            try:
                await self._keep(ticket, decision.keeps, comment.created)
                for change in decision.changes:
                    await self._change(change, asked.user, f"{comment.id}.{number}")
            except _Moved:
                continue
            word, result = (command.word, "decided") if decision.known else ("", "unknown")
            metrics.COMMANDS.labels(word, result).inc()
            cases = [change.case for change in decision.changes]
            log.info("command", command=command.word, author=asked.user, comment=comment.url, cases=cases)
            return await self._marked(issue, decision)
        raise NotNow

    def _cases(self, ticket: Ticket, at: datetime) -> tuple[Case, ...]:
        """The cases of the issue that were there then."""
        about = self._cache.about(ticket.subject)
        cases = [case for case, policy in about if concerns(case, policy, ticket.subject) and case.created <= at]
        return tuple(sorted(cases, key=lambda case: (case.created, case.name)))

    async def _change(self, change: CaseChange, user: str, key: str) -> None:
        """Let one case obey, once. One that is gone has nothing to obey."""
        try:
            case = await self._client.get(api.CASE, change.case)
        except errors.NotFound:
            return
        before = obeyed(case.metadata.annotations)
        if key in before:
            return
        if case.metadata.resource_version != change.version:
            self._note(case)
            raise _Moved
        with on_behalf(Mandate(Authority.USER, user)):
            await self._patch(change.case, encode.obeyed(change.version, change, user, (*before, key)))

    async def _keep(self, ticket: Ticket, asked: tuple[Keep, ...], at: datetime) -> None:
        """Ask the janitor, which may change what it has told owners of: it reads the Ticket."""
        if not asked or (wanted := kept(ticket.keeps, asked, at)) == ticket.keeps:
            return
        if not self._leads():
            raise NotNow
        try:
            wire = await self._client.patch(api.TICKET, ticket.name, encode.with_keeps(ticket, wanted))
        except errors.Conflict:
            self._cache.note(decode.ticket(await self._client.get(api.TICKET, ticket.name)))
            raise _Moved from None
        self._cache.note(decode.ticket(wire))

    async def _patch(self, name: str, body: encode.Body) -> None:
        if not self._leads():
            raise NotNow
        try:
            self._note(await self._client.patch(api.CASE, name, body))
        except (errors.Conflict, errors.NotFound):
            raise _Moved from None

    def _note(self, wire: api.NodeRemediation) -> None:
        self._cache.cases.note(wire.metadata.name, decode.remediation_case(wire))

    async def _marked(self, issue: IssueRef, decision: CommandDecision) -> CommandDecision:
        """Assign and label the issue."""
        if not self._leads():
            raise NotNow
        if decision.label:
            await self._channel.change(await self._channel.get(issue), Relabel(add=(decision.label,)))
        if decision.assign and not await self._inbox.assign(issue, decision.assign):
            return replace(decision, answer=f"{code(decision.assign)} cannot be assigned here. Nothing was done.")
        return decision

    async def end_holds(self, now: datetime) -> None:
        """End the holds of comments whose time is over. What a user has changed meanwhile stays."""
        for case in tuple(self._cache.cases):
            if case.open and case.hold and case.set_by.hold.startswith(names.COMMENTER):
                await self._end_hold(case.name, now)

    async def _end_hold(self, name: str, now: datetime) -> None:
        try:
            case = await self._client.get(api.CASE, name)
            until = hold_until(case.metadata.annotations)
            by_comment = case.spec.hold and (case.spec.hold_set_by or "").startswith(names.COMMENTER)
            if until is not None and until <= now and by_comment:
                await self._patch(name, encode.hold_ended(case.metadata.resource_version))
                log.info("hold of a comment ended", case=name, set_by=case.spec.hold_set_by, until=until)
        except (errors.NotFound, _Moved, NotNow):
            return
        except errors.ApiError as error:
            log.warning("hold of a comment not ended", case=name, message=error.message)
