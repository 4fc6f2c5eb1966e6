"""Tickets, and what is so → what the tables of one room ask about, and which step comes next there. Pure.

One step is at most one message: who serves a room waits a second before the next, as Slack asks for.
"""

import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from remediator.core.chat import ChatThread
from remediator.core.ticket import ClosedBy, Ticket, TicketPhase
from remediator.tickets.board.decide import place
from remediator.tickets.channels.boards import BoardPlace
from remediator.tickets.channels.chat import Looked, Message
from remediator.tickets.channels.oncall import left_alone
from remediator.tickets.channels.rooms import Room
from remediator.tickets.channels.routes import Route
from remediator.tickets.chat.decide import Act, Crowd, MessageState, ThreadObservation, ThreadState, Want, act
from remediator.tickets.chat.text import View, compose, urgency
from remediator.tickets.reconcile.input import TicketInput
from remediator.tickets.reconcile.routing import issue_severity

FEW, TOGETHER = 5, timedelta(minutes=10)  # threads that begin so close are begun one by one; more are a crowd
SETTLED, TRIES = timedelta(minutes=1), 3
EDIT_EVERY, KEEP = timedelta(minutes=1), timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class IssueInRoom:
    """One issue as one room sees it."""

    ticket: Ticket
    view: View
    want: Want
    quiet: bool
    thread: ChatThread | None


@dataclass(frozen=True, slots=True)
class ChatStep:
    """What is done next: about which issues, the one that began the thread first, what is said, and what they join."""

    act: Act = Act.NOTHING
    issues: tuple[IssueInRoom, ...] = ()
    message: Message | None = None
    joins: ChatThread | None = None


def see(room: Room, ticket: Ticket, given: TicketInput, named: str, route: Route, now: datetime) -> IssueInRoom:
    """One issue, under the route of this name."""
    severity = issue_severity(ticket, given)
    by_user = ticket.phase is TicketPhase.CLOSED and ticket.closed_by is ClosedBy.USER
    needed = (given.active or given.case_open) and not by_user
    stands = place(replace(ticket, phase=TicketPhase.OPEN), [linked.case for linked in given.cases])
    quiet = left_alone(route.quiet, severity, now)
    wanted = given.active and not by_user and room.takes(severity, named)
    want = Want.NOT_WANTED if not wanted else Want.LATER if quiet else Want.WANTED
    view = View(ticket, given, severity, stands if needed else BoardPlace.DONE)
    return IssueInRoom(ticket, view, want, quiet, ticket.thread(room.name))


def hears(room: Room, ticket: Ticket) -> bool:
    """Whether a room may have to do with an issue: most are over, and were told of."""
    return ticket.phase in (TicketPhase.PENDING, TicketPhase.OPEN) or ticket.thread(room.name) is not None


URGENT = (Act.JOIN, Act.POST_CROWD, Act.POST, Act.TELL, Act.LOOK, Act.EDIT, Act.GIVE_UP, Act.FORGET)


def next_step(
    issues: Collection[IssueInRoom], looked: Mapping[str, Looked], cluster: str, edits: bool, now: datetime
) -> ChatStep:
    """The most urgent step in a room; `looked` is what looks of this leader have shown, by Ticket."""
    room = _Room.of(issues, looked, cluster, edits, now)
    alone = [room.alone(issue) for issue in room.issues if issue.thread is None or not issue.thread.id]
    steps = [*alone, *(room.thread(thread) for thread in _threads(room.issues))]
    return room.whole(min(steps, key=lambda step: _rank(step.act), default=ChatStep()))


def _rank(what: Act) -> int:
    return URGENT.index(what) if what in URGENT else len(URGENT)


def _order(issue: IssueInRoom) -> tuple[object, ...]:
    return (*urgency(issue.view), issue.ticket.name)


def _threads(issues: Iterable[IssueInRoom]) -> Iterable[tuple[IssueInRoom, ...]]:
    """The issues of each thread, the one that began it first; where that is gone, any."""
    by_id: dict[str, list[IssueInRoom]] = {}
    for issue in issues:
        if issue.thread and issue.thread.id:
            by_id.setdefault(issue.thread.id, []).append(issue)
    for together in by_id.values():
        yield tuple(sorted(together, key=lambda issue: issue.thread is None or issue.thread.written is None))


@dataclass(frozen=True, slots=True)
class _Room:
    """All issues of a room, the most urgent first. `waiting` are to get a thread; `crowds` are for many."""

    issues: tuple[IssueInRoom, ...]
    waiting: tuple[IssueInRoom, ...]
    crowds: tuple[ChatThread, ...]
    crowd: Crowd
    looked: Mapping[str, Looked]
    cluster: str
    edits: bool
    now: datetime

    @classmethod
    def of(
        cls, given: Collection[IssueInRoom], looked: Mapping[str, Looked], cluster: str, edits: bool, now: datetime
    ) -> "_Room":
        """A room as it is now."""
        issues = tuple(sorted(given, key=_order))
        waiting = tuple(issue for issue in issues if issue.thread is None and issue.want is Want.WANTED)
        lately = [issue.thread for issue in issues if issue.thread and now - issue.thread.began < TOGETHER]
        crowds = tuple(thread for thread in lately if thread.crowd and not thread.given_up)
        return cls(issues, waiting, crowds, _crowd(lately, crowds, len(waiting)), looked, cluster, edits, now)

    def alone(self, issue: IssueInRoom) -> ChatStep:
        """What is done about an issue without a thread."""
        thread = issue.thread
        what = act(
            ThreadObservation(
                _state(thread),
                want=issue.want,
                crowd=self.crowd,
                looked=self.looked.get(issue.ticket.name),
                settled=thread is not None and self.now - thread.began >= SETTLED,
                tries_left=thread is None or thread.tries < TRIES,
                over=issue.view.place is BoardPlace.DONE,
            )
        )
        return ChatStep(what, (issue,))

    def whole(self, step: ChatStep) -> ChatStep:
        """The step that is taken, with all that it is about and what is said: each costs a look at all that waits."""
        if not step.issues:
            return step
        first = step.issues[0]
        if step.act is Act.JOIN:
            step = replace(step, issues=self.waiting, joins=next(thread for thread in self.crowds if thread.id))
        elif step.act is Act.POST_CROWD or _crowded(first.thread):
            step = replace(step, issues=(first, *(other for other in self.waiting if other is not first)))
        return step if step.message else replace(step, message=self.compose(step.issues))

    def thread(self, issues: tuple[IssueInRoom, ...]) -> ChatStep:
        """What is done about a thread."""
        first, stands = issues[0].thread, _stands(issues)
        if first is None:
            return ChatStep()
        message, ended = self.compose(issues), stands is BoardPlace.DONE and first.place == BoardPlace.DONE.value
        observation = ThreadObservation(
            _state(first),
            text=self._text(first, message),
            untold=untold(stands, first.place),
            quiet=all(issue.quiet for issue in issues),
            over=stands is BoardPlace.DONE,
            over_long=ended and (first.written is None or self.now - first.written > KEEP),
        )
        return ChatStep(act(observation), issues, message)

    def _text(self, first: ChatThread, message: Message) -> MessageState:
        if not self.edits or digest(message) == first.written_hash:
            return MessageState.SAME
        recent = first.written is not None and self.now - first.written < EDIT_EVERY
        return MessageState.TOO_SOON if recent else MessageState.OUTDATED

    def compose(self, issues: Iterable[IssueInRoom]) -> Message:
        """What is said of them."""
        return compose([issue.view for issue in issues], self.cluster)


def _crowded(thread: ChatThread | None) -> bool:
    """Whether it is a post about many that is not known to have arrived: it takes in what waits now."""
    return thread is not None and thread.crowd and not thread.id


def _crowd(lately: Collection[ChatThread], crowds: Collection[ChatThread], waiting: int) -> Crowd:
    if crowds:
        return Crowd.POSTED if any(thread.id for thread in crowds) else Crowd.POSTING
    begun = {thread.id or str(index) for index, thread in enumerate(lately)}
    return Crowd.MANY if len(begun) + waiting > FEW else Crowd.FEW


def untold(stands: BoardPlace, last: str) -> bool:
    """Whether people are told where an issue stands: a person is needed, it is over, or it is back."""
    return last not in ("", stands.value) and (
        stands in (BoardPlace.PERSON, BoardPlace.DONE) or last == BoardPlace.DONE.value
    )


def digest(message: Message) -> str:
    """What tells one message from others."""
    return hashlib.sha256(repr(message).encode()).hexdigest()[:16]


def _state(thread: ChatThread | None) -> ThreadState:
    if thread is None:
        return ThreadState.NONE
    if thread.given_up:
        return ThreadState.GIVEN_UP
    return ThreadState.POSTED if thread.id else ThreadState.POSTING


def _stands(issues: Iterable[IssueInRoom]) -> BoardPlace:
    """Where the most urgent of them stands."""
    return min((issue.view for issue in issues), key=urgency).place


def began(room: str, before: ChatThread | None, crowd: bool, now: datetime) -> ChatThread:
    """What is written before a post is begun."""
    if before is None:
        return ChatThread(room, now, now, crowd=crowd)
    return replace(before, began=now, tries=before.tries + 1)


def posted(begun: ChatThread, id: str, message: Message, issues: Iterable[IssueInRoom], now: datetime) -> ChatThread:
    """What is written once it is answered."""
    return replace(begun, id=id, written_hash=digest(message), written=now, place=_stands(issues).value)


def found(begun: ChatThread, id: str, now: datetime) -> ChatThread:
    """The same where a look has shown it: nobody knows what it says."""
    return replace(begun, id=id, written=now - EDIT_EVERY)


def joined(room: str, first: ChatThread, now: datetime) -> ChatThread:
    """What is written of an issue that joins the thread of another."""
    return ChatThread(room, now, first.began, id=first.id)
