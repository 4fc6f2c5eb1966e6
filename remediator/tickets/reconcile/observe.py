"""A ticket, its input and what the channel shows → what the tables of states ask about. Pure."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from remediator.core.ticket import RESEND_WINDOW, ClosedBy, Ticket, TicketPhase
from remediator.tickets.channels.base import Issue
from remediator.tickets.reconcile.causes import new_causes, still_active
from remediator.tickets.reconcile.input import TicketInput
from remediator.tickets.reconcile.states import IssueState, Need, TextState, TicketObservation, TicketState
from remediator.tickets.render.comments import comments


@dataclass(frozen=True, slots=True)
class Times:
    """How long we wait for what.

    A create whose answer is not known is searched every `search_every`, and repeated after `create_again` at the
    earliest: what was created may not be found for minutes. `keep` is how long a Ticket without cause stays, and
    `keep_unopened` the same of one that never had an issue: for as long as an old post may still come.
    """

    search_every: timedelta = timedelta(seconds=60)
    create_again: timedelta = timedelta(minutes=10)
    reopen_within: timedelta = timedelta(hours=24)
    edit_every: timedelta = timedelta(seconds=60)
    read_every: timedelta = timedelta(hours=1)
    after_refusal: timedelta = timedelta(minutes=5)
    keep: timedelta = timedelta(days=7)
    keep_unopened: timedelta = RESEND_WINDOW


def ticket_state(ticket: Ticket) -> TicketState:
    """What the Ticket remembers of its issue."""
    if ticket.phase is TicketPhase.CLOSED:
        if ticket.issue is None:
            return TicketState.DELETED
        return TicketState.CLOSED_BY_USER if ticket.closed_by is ClosedBy.USER else TicketState.CLOSED_BY_US
    if ticket.issue is not None:
        return TicketState.OPEN
    return TicketState.NO_ISSUE if ticket.creating is None else TicketState.CREATING


def issue_state(issue: Issue) -> IssueState:
    """How the channel shows an issue."""
    if issue.open:
        return IssueState.OPEN
    return IssueState.CLOSED_BY_USER if issue.closed_by_user else IssueState.CLOSED_BY_US


def observe(
    ticket: Ticket,
    given: TicketInput,
    issue: IssueState,
    digest: str,
    read: datetime,
    now: datetime,
    times: Times,
    missing: bool,
) -> TicketObservation:
    """What is observed. `digest` is that of the text that should be written, `read` when the issue was last read.

    `missing`: something of the route that was refused is to be tried again.
    """
    need, unreported = _need(given), bool(comments(ticket.reported, given))
    return TicketObservation(
        ticket=ticket_state(ticket),
        need=need,
        issue=issue,
        text=_text(ticket, digest, now, times, at_once=unreported or need is Need.NOT_NEEDED),
        new_cause=bool(new_causes(ticket.reported, given.causes)),
        unreported=unreported,
        parts_due=given.active and (given.severity is not ticket.severity or missing),
        closing_commented=ticket.closing_commented,
        maybe_twice=ticket.issue is not None and _past(ticket.creating, times.create_again, now),
        read_due=need is not Need.NOT_NEEDED and now - read >= times.read_every,
        closed_recently=ticket.closed is not None and now - ticket.closed < times.reopen_within,
        create_again=_past(ticket.creating, times.create_again, now),
        causes_over=still_active(ticket.reported, given.causes) != ticket.reported,
    )


def _need(given: TicketInput) -> Need:
    if given.active:
        return Need.NEEDED
    return Need.KEEP_OPEN if given.case_open or given.kept_open else Need.NOT_NEEDED


def _text(ticket: Ticket, digest: str, now: datetime, times: Times, at_once: bool) -> TextState:
    """Whether the text is to be written; figures that move all the time are written no more than once a minute."""
    if digest == ticket.written_hash:
        return TextState.SAME
    too_soon = ticket.written is not None and now - ticket.written < times.edit_every
    return TextState.TOO_SOON if too_soon and not at_once else TextState.OUTDATED


def _past(since: datetime | None, wait: timedelta, now: datetime) -> bool:
    return since is not None and now - since >= wait


def abandoned(ticket: Ticket, given: TicketInput, now: datetime, times: Times) -> bool:
    """Whether a Ticket had no cause for so long that it may be deleted."""
    open_now = ticket_state(ticket) in (TicketState.OPEN, TicketState.CREATING)
    if open_now or given.active or given.case_open:
        return False
    if ticket.alerts and ticket_state(ticket) is TicketState.NO_ISSUE and not ticket.previous:
        return now - max(alert.received or alert.ended or now for alert in ticket.alerts) >= times.keep_unopened
    last = max(ticket.created, ticket.closed or ticket.created, *(alert.ended or now for alert in ticket.alerts))
    return now - last >= times.keep
