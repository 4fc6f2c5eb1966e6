"""What is said in a room of one issue, or of many. Pure: the same issues are the same message."""

from collections.abc import Sequence
from dataclasses import dataclass

from remediator.core.case import Block
from remediator.core.policy import Severity
from remediator.core.text import printable
from remediator.core.ticket import Ticket
from remediator.tickets.channels.boards import BoardPlace
from remediator.tickets.channels.chat import ChatLine, Message
from remediator.tickets.reconcile.input import TicketInput
from remediator.tickets.reconcile.wanted import needs_user
from remediator.tickets.render.titles import title

STANDS = {
    BoardPlace.PERSON: "a person is needed",
    BoardPlace.WAITING: "it waits",
    BoardPlace.REPAIRING: "it is being repaired",
    BoardPlace.DONE: "it is over",
}
ORDER = (BoardPlace.PERSON, BoardPlace.WAITING, BoardPlace.REPAIRING, BoardPlace.DONE)
CAUSES, LISTED, LONGEST = 4, 20, 240  # causes of one issue, issues of a crowd, characters of a line


@dataclass(frozen=True, slots=True)
class View:
    """One issue: what it is about, how severe it is, and where it stands."""

    ticket: Ticket
    given: TicketInput
    severity: Severity
    place: BoardPlace


def urgency(view: View) -> tuple[int, int]:
    """Less is more urgent."""
    return ORDER.index(view.place), view.severity.rank


def compose(issues: Sequence[View], cluster: str) -> Message:
    """What is said of them."""
    return _one(issues[0], cluster) if len(issues) == 1 else _many(sorted(issues, key=_order), cluster)


def _order(view: View) -> tuple[object, ...]:
    return (*urgency(view), view.ticket.name)


def _one(view: View, cluster: str) -> Message:
    issue = view.ticket.issue
    where = [_line(f"Issue: {issue.repository}#{issue.number}", _web(issue.url))] if issue else []
    stands = _line(f"{view.severity.value}, {STANDS[view.place]}")
    return Message(view.severity, _title(view, cluster), (stands, *_causes(view.given), *where))


def _many(issues: Sequence[View], cluster: str) -> Message:
    left = [view for view in issues if view.place is not BoardPlace.DONE]
    persons = sum(view.place is BoardPlace.PERSON for view in left)
    prefix = f"[{cluster}] " if cluster else ""
    head = f"{prefix}{len(issues)} issues at once: {persons} need a person, {len(issues) - len(left)} are over"
    lines = [_listed(view, cluster) for view in left[:LISTED]]
    more = [_line(f"and {len(left) - LISTED} more: kubectl get tickets")] if len(left) > LISTED else []
    return Message((left or issues)[0].severity, _line(head), (*lines, *more))


def _listed(view: View, cluster: str) -> ChatLine:
    name = _title(view, cluster)
    return _line(f"{name.text}: {view.severity.value}, {STANDS[view.place]}", name.url)


def _title(view: View, cluster: str) -> ChatLine:
    issue = view.ticket.issue
    return _line(title(view.given, cluster), _web(issue.url) if issue else "")


def _causes(given: TicketInput) -> list[ChatLine]:
    """What the open cases wait for, and what alerts say."""
    cases = [linked.case for linked in given.cases if linked.case.open]
    lines = [f"{case.policy} on {case.node}: {case.phase.value or 'New'}{_held(case.blocks)}" for case in cases]
    lines += [f"{alert.name}: {alert.summary}" for alert in given.alerts if alert.firing]
    more = [_line(f"and {len(lines) - CAUSES} more")] if len(lines) > CAUSES else []
    return [*(_line(text) for text in lines[:CAUSES]), *more]


def _held(blocks: Sequence[Block]) -> str:
    waits = next((block for block in blocks if needs_user(block)), None)
    return f", {waits.reason.value}: {waits.message}" if waits else ""


def _line(text: str, url: str = "") -> ChatLine:
    flat = " ".join(printable(text).split())
    return ChatLine(flat if len(flat) <= LONGEST else f"{flat[: LONGEST - 1]}…", url)


def _web(url: str) -> str:
    """An address that a browser opens; a tracker gave it."""
    return url if url.startswith(("https://", "http://")) and url.isprintable() and " " not in url else ""
