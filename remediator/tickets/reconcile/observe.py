"""A ticket, its situation and what the tracker shows → what the table of lives asks about. Pure."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from remediator.core.ticket import ClosedBy, Ticket, TicketPhase
from remediator.tickets.channels.base import Issue
from remediator.tickets.reconcile.situation import Situation, fresh, lasting
from remediator.tickets.reconcile.states import Cause, Seen, Sight, State, Text
from remediator.tickets.render.comments import news


@dataclass(frozen=True, slots=True)
class Times:
    """How long we wait for what.

    A create whose end is not known is looked for every `look_every`, and repeated after `create_again` at the earliest:
    what was created may not be found for minutes. `keep` is how long a Ticket without cause stays.
    """

    look_every: timedelta = timedelta(seconds=60)
    create_again: timedelta = timedelta(minutes=10)
    reopen_within: timedelta = timedelta(hours=24)
    edit_every: timedelta = timedelta(seconds=60)
    read_every: timedelta = timedelta(hours=1)
    after_refusal: timedelta = timedelta(minutes=5)
    keep: timedelta = timedelta(days=7)


def state(ticket: Ticket) -> State:
    """What the Ticket remembers."""
    if ticket.phase is TicketPhase.CLOSED:
        if ticket.issue is None:
            return State.LOST
        return State.LEFT if ticket.closed_by is ClosedBy.USER else State.CLOSED
    if ticket.issue is not None:
        return State.OPEN
    return State.ABSENT if ticket.creating is None else State.CREATING


def sight(issue: Issue) -> Sight:
    """How the tracker shows an issue."""
    if issue.open:
        return Sight.OPEN
    return Sight.PERSON if issue.closed_by_user else Sight.CLOSED


def seen(
    ticket: Ticket, situation: Situation, found: Sight, digest: str, read: datetime, now: datetime, times: Times
) -> Seen:
    """What is observed. `digest` is that of the text that should be written, `read` when the issue was last read."""
    stands, untold = _cause(situation), bool(news(ticket.reported, situation))
    return Seen(
        state=state(ticket),
        cause=stands,
        sight=found,
        text=_text(ticket, digest, now, times, hurry=untold or stands is Cause.NONE),
        fresh=bool(fresh(ticket.reported, situation.causes)),
        untold=untold,
        relabel=situation.stands and situation.severity is not ticket.severity,
        closing_commented=ticket.closing_commented,
        doubt=ticket.issue is not None and _past(ticket.creating, times.create_again, now),
        look=stands is not Cause.NONE and now - read >= times.read_every,
        recent=ticket.closed is not None and now - ticket.closed < times.reopen_within,
        waited=_past(ticket.creating, times.create_again, now),
        lapsed=lasting(ticket.reported, situation.causes) != ticket.reported,
    )


def _cause(situation: Situation) -> Cause:
    if situation.stands:
        return Cause.STANDS
    return Cause.KEPT if situation.kept else Cause.NONE


def _text(ticket: Ticket, digest: str, now: datetime, times: Times, hurry: bool) -> Text:
    """Whether the text is to be written; figures that move all the time are written no more than once a while."""
    if digest == ticket.written_hash:
        return Text.SAME
    hasty = ticket.written is not None and now - ticket.written < times.edit_every
    return Text.HASTY if hasty and not hurry else Text.STALE


def _past(since: datetime | None, wait: timedelta, now: datetime) -> bool:
    return since is not None and now - since >= wait


def abandoned(ticket: Ticket, situation: Situation, now: datetime, times: Times) -> bool:
    """Whether nothing stood behind a Ticket for so long that it may go."""
    if state(ticket) in (State.OPEN, State.CREATING) or situation.stands or situation.kept:
        return False
    last = max(ticket.created, ticket.closed or ticket.created, *(alert.ended or now for alert in ticket.alerts))
    return now - last >= times.keep
