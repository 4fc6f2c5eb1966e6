"""Rooms over the embedded server and a Slack on loopback, with a clock turned by hand."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from remediator.clock import Clock
from remediator.core.policy import Severity
from remediator.live_file import Unchanging
from remediator.tickets.channels.chat import Chat
from remediator.tickets.channels.rooms import Room, Slack
from remediator.tickets.channels.slack import SlackRoom
from remediator.tickets.chat.run import EVERY, Rooms
from remediator_sim.slack import FakeSlack, Post
from tests.harness.tickets import TicketHarness
from tests.remediator.tickets.memory_channel import START

ROOM, PLACE = "gpu-team", "C0123456789"
ALL = frozenset(Severity)


class Leading:
    is_leader = True


class ChatHarness(TicketHarness):
    """Issues in a channel in memory, and one room of Slack that hears of all of them."""

    def __init__(self, slack: FakeSlack, token: Path) -> None:
        super().__init__()
        self.slack, self.leader = slack, Leading()
        self.room = Room(ROOM, Slack(PLACE, token, slack.url), ALL)
        self.chat: Chat = SlackRoom(ROOM, self.room.place, timeout=5)
        self.rooms = self.another()

    def another(self) -> Rooms:
        """Who would lead next: nothing in memory survives."""
        leader: Any = self.leader
        rooms = Unchanging({ROOM: self.room})
        return Rooms(self.client, rooms, lambda room: self.chat, self.world, self.routes, leader, self.clock)

    def restart_chat(self) -> None:
        """Another process leads."""
        self.rooms = self.another()

    async def step(self) -> float:
        """One step with caches that are up to date."""
        await self.refresh()
        self.rooms._cache = self.rooms._store._cache = self.world
        seconds = await self.rooms.serve(ROOM)
        assert seconds is not None
        return seconds

    async def told(self, **delta: float) -> float:
        """Time goes by; then issues and steps, until nothing is left to do now. Seconds until the next step."""
        await self.later(**delta)
        while (seconds := await self.step()) < EVERY:
            self.now += timedelta(seconds=seconds)
        return seconds

    @property
    def threads(self) -> list[Post]:
        """What a user sees in the channel."""
        return self.slack.threads(PLACE)

    @property
    def heads(self) -> list[str]:
        """The second line of each thread: where the issue stands."""
        return [thread.lines[1] for thread in self.threads]

    def replies(self) -> list[str]:
        """The same of what was said below the first of them."""
        return [said.lines[1] for said in self.slack.replies(PLACE, self.threads[0].ts)]

    def hears(self, *severities: Severity, routes: frozenset[str] = frozenset()) -> None:
        """The room hears of these alone."""
        self.room = replace(self.room, severities=frozenset(severities), routes=routes)
        self.restart_chat()


@asynccontextmanager
async def chat_harness(folder: Path, **slack: Any) -> AsyncIterator[ChatHarness]:
    """All of it, for the length of an `async with`."""
    token = folder / "slack-token"
    made: list[ChatHarness] = []
    clock = Clock(lambda: made[0].now if made else START, lambda: (made[0].now - START).total_seconds())
    async with FakeSlack([PLACE], clock=clock, **slack) as fake:
        token.write_text(fake.token + "\n")
        made.append(ChatHarness(fake, token))
        await made[0].prepare()
        yield made[0]
        await made[0].rooms.aclose()
