"""When rooms are served: by the leader, one message after the other, each room by itself.

Whatever a chat does, issues go on: rooms have a queue of their own, and write a part of the Ticket of their own.
"""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

import structlog

from remediator.clock import Clock
from remediator.core.chat import ChatThread
from remediator.core.ticket import Ticket
from remediator.kube.runtime.leader import Leader, LeaderQueue
from remediator.kube.runtime.turns import sliced
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client
from remediator.live_file import LiveFile, Unchanging
from remediator.tickets import metrics
from remediator.tickets.channels.base import ChannelError, Later, Refused, Unsure
from remediator.tickets.channels.chat import Chat, Looked, Message
from remediator.tickets.channels.live_routes import LiveRoutes
from remediator.tickets.channels.rooms import Room
from remediator.tickets.channels.routes import Routes
from remediator.tickets.chat.decide import Act
from remediator.tickets.chat.observe import (
    ChatStep,
    IssueInRoom,
    began,
    digest,
    found,
    hears,
    joined,
    next_step,
    posted,
    see,
)
from remediator.tickets.chat.store import NotKept, ThreadChanged, ThreadStore
from remediator.tickets.reconcile.cache import TicketCache
from remediator.tickets.reconcile.input import ticket_input
from remediator.tickets.reconcile.routing import issue_route

T = TypeVar("T")
EVERY, PACE, AFTER_REFUSAL = 2.0, 1.2, 300.0  # seconds; Slack takes one message a second, and 50 edits a minute
WORKERS = 4  # rooms at once
SLICE = 100  # tickets that are looked at between two turns of the loop
log = structlog.get_logger()


class Rooms:
    """All rooms. `queue` is served where `leader` leads."""

    def __init__(
        self,
        client: Client,
        rooms: Unchanging[Mapping[str, Room]] | LiveFile[Mapping[str, Room]],
        make: Callable[[Room], Chat],
        cache: TicketCache,
        routes: Routes | LiveRoutes,
        leader: Leader,
        clock: Clock,
    ) -> None:
        self._rooms, self._make, self._cache, self._routes = rooms, make, cache, routes
        self._store, self._leader, self._clock = ThreadStore(client, cache), leader, clock
        self._chats = {name: (room.place, make(room)) for name, room in rooms.newest.items()}
        self._looked: defaultdict[str, dict[str, Looked]] = defaultdict(dict)
        self._served: set[str] = set()  # rooms that have a turn
        self.queue: LeaderQueue[str] = LeaderQueue(
            "chat",
            self.serve,
            lambda: tuple(rooms.newest),
            workers=WORKERS,
            informers=lambda: cache.facts,
            essential=False,
            began=self._began,
        )

    def _began(self) -> None:
        """We lead from now on; what looks have shown before may not be so any more."""
        self._looked.clear()
        self._served = set(self._rooms.current(self._clock.now()))

    @property
    def outdated(self) -> str:
        """Why the file is not used as it is now, "" where it is."""
        return self._rooms.outdated

    async def aclose(self) -> None:
        """Give all connections back."""
        for _, chat in self._chats.values():
            await chat.aclose()

    async def serve(self, name: str) -> float | None:
        """One step in one room; seconds until the next. None where the file names it no more."""
        now = self._clock.now().replace(microsecond=0)
        rooms = self._rooms.current(now)
        self.queue.add(*(rooms.keys() - self._served))
        self._served = set(rooms)
        try:
            chat = await self._chat(name, rooms.get(name))
        except ValueError as error:
            log.error("room not served", room=name, message=str(error))
            return AFTER_REFUSAL
        if chat is None:
            return None
        room = rooms[name]
        seen = await self._seen(room, now)
        step = next_step(seen, self._looked[name], self._routes.newest.cluster, chat.edits, now)
        if step.act is Act.NOTHING or not self._leader.is_leader:
            return EVERY
        try:
            await self._perform(room.name, chat, step, now)
        except ThreadChanged:
            return PACE
        except NotKept as older:
            log.error("rooms not told", room=name, message=str(older))
            return AFTER_REFUSAL
        except errors.ApiError as error:
            log.warning("chat not recorded", room=name, message=error.message)
            return EVERY
        except ChannelError as error:
            log.warning("room not told", room=name, message=error.message)
            return _pause(error)
        return PACE

    async def _chat(self, name: str, room: Room | None) -> Chat | None:
        """The chat of a room, of which only its own turn disposes; another one where its place has changed."""
        place, chat = self._chats.get(name, (None, None))
        if chat is not None and (room is None or room.place != place):
            del self._chats[name]
            await chat.aclose()
            chat = None
        if chat is None and room is not None:
            chat = self._make(room)
            self._chats[name] = room.place, chat
        return chat

    async def _seen(self, room: Room, now: datetime) -> list[IssueInRoom]:
        """All issues as a room sees them; others run in between, and what they write is seen by the next step."""
        tickets = sliced(tuple(self._cache.tickets), SLICE)
        return [seen async for ticket in tickets if (seen := self._see(room, ticket, now))]

    def _see(self, room: Room, ticket: Ticket, now: datetime) -> IssueInRoom | None:
        if not hears(room, ticket):
            return None
        given = ticket_input(ticket, self._cache.about(ticket.subject))
        node = self._cache.nodes.get(ticket.subject.node)
        return see(room, ticket, given, *issue_route(self._routes.newest, ticket, given, node), now)

    async def _perform(self, room: str, chat: Chat, step: ChatStep, now: datetime) -> None:
        first, message = step.issues[0], step.message
        match step.act:
            case Act.POST | Act.POST_CROWD if message:
                await self._post(room, chat, step, message, now)
            case Act.JOIN if step.joins:
                for issue in step.issues:
                    await self._store.put(issue.ticket, room, joined(room, step.joins, now))
            case Act.LOOK if first.thread:
                await self._look(room, chat, first, first.thread, now)
            case Act.EDIT if first.thread and message:
                await self._edit(room, chat, first, first.thread, message, now)
            case Act.TELL if first.thread and message:
                await self._tell(room, chat, step, first.thread, message, now)
            case Act.GIVE_UP if first.thread:
                log.warning("post given up", room=room, ticket=first.ticket.name, once=True)
                await self._store.put(first.ticket, room, replace(first.thread, given_up=True))
            case Act.FORGET:
                for issue in step.issues:
                    await self._store.put(issue.ticket, room, None)

    async def _post(self, room: str, chat: Chat, step: ChatStep, message: Message, now: datetime) -> None:
        """Write that it begins, post, write where it is: of two leaders only one succeeds with the first write."""
        first = step.issues[0]
        before = first.thread
        begun = began(room, before, step.act is Act.POST_CROWD, now)
        ticket = await self._put(first.ticket, room, begun)
        self._looked[room].pop(ticket.name, None)
        try:
            id = await self._ask(room, "post", chat.post(message, _marker(ticket, begun)))
        except (Later, Refused):  # it was not carried out
            await self._store.put(ticket, room, before)
            raise
        await self._store.put(ticket, room, posted(begun, id, message, step.issues, now))

    async def _look(self, room: str, chat: Chat, issue: IssueInRoom, thread: ChatThread, now: datetime) -> None:
        shown = await self._ask(room, "find", chat.find(_marker(issue.ticket, thread), thread.opened))
        if shown.looked is Looked.THERE:
            await self._store.put(issue.ticket, room, found(thread, shown.thread, now))
        else:
            self._looked[room][issue.ticket.name] = shown.looked

    async def _edit(
        self, room: str, chat: Chat, issue: IssueInRoom, thread: ChatThread, message: Message, now: datetime
    ) -> None:
        try:
            await self._ask(room, "edit", chat.edit(thread.id, message))
        except Refused as error:
            if error.field != "thread":
                raise
            log.info("a user deleted the thread", room=room, ticket=issue.ticket.name)
            await self._store.put(issue.ticket, room, replace(thread, given_up=True))
            return
        place = thread.place or issue.view.place.value
        await self._store.put(
            issue.ticket, room, replace(thread, written_hash=digest(message), written=now, place=place)
        )

    async def _tell(
        self, room: str, chat: Chat, step: ChatStep, thread: ChatThread, message: Message, now: datetime
    ) -> None:
        """It is recorded as told first: at most once. The first message says the same."""
        issue = step.issues[0]
        after = posted(thread, thread.id, message, step.issues, thread.written or now)
        ticket = await self._put(issue.ticket, room, replace(after, written_hash=thread.written_hash))
        try:
            await self._ask(room, "reply", chat.reply(thread.id, message))
        except (Later, Refused):
            await self._store.put(ticket, room, thread)
            raise
        except Unsure:
            return

    async def _put(self, ticket: Ticket, room: str, thread: ChatThread) -> Ticket:
        """Write it; the Ticket with it, for the next write of this pass."""
        await self._store.put(ticket, room, thread)
        return replace(ticket, chat=(*(other for other in ticket.chat if other.room != room), thread))

    async def _ask(self, room: str, action: str, work: Awaitable[T]) -> T:
        """What a chat does, counted."""
        try:
            answer = await work
        except ChannelError as error:
            metrics.CHAT_CALLS.labels(room, action, type(error).__name__.lower()).inc()
            raise
        metrics.CHAT_CALLS.labels(room, action, "done").inc()
        return answer


def _pause(error: ChannelError) -> float:
    if isinstance(error, Later):
        return max(PACE, error.after)
    return EVERY if isinstance(error, Unsure) else AFTER_REFUSAL


def _marker(ticket: Ticket, thread: ChatThread) -> str:
    """What only this thread holds."""
    return f"{ticket.uid} {thread.room} {thread.opened:%Y%m%dT%H%M%SZ}"
