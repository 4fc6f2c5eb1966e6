"""What the conditions of a Ticket say to users: that the issue is up to date, or why not and what to do. Pure."""

from collections.abc import Mapping
from datetime import datetime

from remediator.core.ticket import Ticket, TicketCondition
from remediator.tickets.channels.base import ChannelError, Later, PublicRepository, Refused, VisibilityUnknown
from remediator.tickets.reconcile.observe import Times

SYNCED, ROUTE_INVALID, BODY_FULL = "Synced", "RouteInvalid", "BodyFull"
TEMPLATE_INVALID, ROUTES_OUTDATED, BOARD_INVALID = "TemplateInvalid", "RoutesOutdated", "BoardInvalid"
ROOMS_OUTDATED = "RoomsOutdated"
CHANGING = frozenset({"ChannelUnavailable", "Unsure", "VisibilityUnknown"})  # their messages hold seconds and addresses
PARTS = {"assignees": "AssigneesRefused", "labels": "LabelsRefused", "milestone": "MilestoneRefused"}
WITHOUT = "filed without "
NO_ROOM = "the text that users wrote into the issue leaves no room for our part, which stays as it was; shorten it"
MANY = (
    "as many issues as --issues-per-hour allows were opened within an hour; the issue that lists the others says when"
)


def synced(now: datetime) -> TicketCondition:
    """The issue is up to date."""
    return TicketCondition(SYNCED, "True", "Synced", "the issue says what is so", now)


def body_full(type: str, now: datetime) -> TicketCondition:
    """Our part of the text cannot be replaced: condition BodyFull itself, and Synced as long as that is so."""
    status, reason = ("True", "NoRoom") if type == BODY_FULL else ("False", BODY_FULL)
    return TicketCondition(type, status, reason, NO_ROOM, now)


def waiting(now: datetime) -> TicketCondition:
    """The issue is opened later."""
    return TicketCondition(SYNCED, "False", "Waiting", MANY, now)


def route_invalid(reason: str, message: str, now: datetime) -> TicketCondition:
    """The routes file is to be corrected; the issue was filed all the same."""
    return TicketCondition(ROUTE_INVALID, "True", reason, message, now)


def parts_refused(refused: Mapping[str, str], now: datetime) -> TicketCondition:
    """What the channel refused of a route, and why; the issue was filed all the same. `missing_parts` reads it."""
    why = "; ".join(dict.fromkeys(refused.values()))
    return route_invalid(PARTS[next(iter(refused))], f"{WITHOUT}{', '.join(refused)}: {why}", now)


def missing_parts(ticket: Ticket) -> tuple[str, ...]:
    """What the issue was filed without: some of `PARTS`."""
    condition = ticket.condition(ROUTE_INVALID)
    if condition is None or condition.reason not in PARTS.values():
        return ()
    named = condition.message.removeprefix(WITHOUT).partition(": ")[0].split(", ")
    return tuple(part for part in PARTS if part in named)


def with_template_problem(ticket: Ticket, problem: str, now: datetime) -> Ticket:
    """The Ticket with what is wrong with the template of its route, "" for nothing; it was written all the same."""
    if not problem:
        return ticket.without_condition(TEMPLATE_INVALID)
    return ticket.with_condition(TicketCondition(TEMPLATE_INVALID, "True", "TemplateInvalid", problem, now))


def with_board_problem(ticket: Ticket, problem: str, now: datetime) -> Ticket:
    """The Ticket with what is wrong with the board of its route, "" for nothing; its issue is written all the same."""
    if not problem:
        return ticket.without_condition(BOARD_INVALID)
    return ticket.with_condition(TicketCondition(BOARD_INVALID, "True", "BoardRefused", problem, now))


def with_routes_problem(ticket: Ticket, problem: str, now: datetime) -> Ticket:
    """The Ticket with what is wrong with the routes file, "" for nothing."""
    if not problem:
        return ticket.without_condition(ROUTES_OUTDATED)
    return ticket.with_condition(TicketCondition(ROUTES_OUTDATED, "True", "RoutesInvalid", problem, now))


def with_rooms_problem(ticket: Ticket, problem: str, now: datetime) -> Ticket:
    """The Ticket with what is wrong with the file of --chat, "" for nothing."""
    if not problem:
        return ticket.without_condition(ROOMS_OUTDATED)
    return ticket.with_condition(TicketCondition(ROOMS_OUTDATED, "True", "RoomsInvalid", problem, now))


def failed(error: ChannelError, times: Times, now: datetime) -> tuple[TicketCondition, float]:
    """Why the issue could not be written, with the remedy, and in how many seconds it is tried again."""
    reason, seconds, remedy = _remedy(error, times)
    return TicketCondition(SYNCED, "False", reason, f"{error.message}; {remedy}", now), seconds


def _remedy(error: ChannelError, times: Times) -> tuple[str, float, str]:
    if isinstance(error, PublicRepository):
        return "PublicRepository", times.after_refusal.total_seconds(), "correct the routes file or the repository"
    if isinstance(error, VisibilityUnknown):
        return "VisibilityUnknown", max(1.0, error.after), "it is asked again"
    if isinstance(error, Refused):
        what = error.field or "the token or the routes file"
        remedy = f"correct {what}; where the issue is gone, delete this Ticket"
        return "Refused", times.after_refusal.total_seconds(), remedy
    if isinstance(error, Later):
        return "ChannelUnavailable", max(1.0, error.after), "it is tried again"
    return "Unsure", times.search_every.total_seconds(), "it is searched before it is repeated"


def unsynced(ticket: Ticket) -> bool:
    """Whether the issue of a Ticket cannot be written now."""
    condition = ticket.condition(SYNCED)
    return condition is not None and condition.status == "False"
