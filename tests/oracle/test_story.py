"""One case from its issue to its end, on GitHub and Slack as others understand them: no fake of ours takes part."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import requests

from remediator.clock import SYSTEM
from remediator.core.policy import Severity
from remediator.core.ticket import ClosedBy
from remediator.live_file import Unchanging
from remediator.tickets.channels.github import GitHub, GithubTokenFile
from remediator.tickets.channels.private import PrivateOnly
from remediator.tickets.channels.rooms import Room, Slack
from remediator.tickets.channels.routes import Route, Routes
from remediator.tickets.channels.slack import SlackRoom
from remediator.tickets.chat.run import EVERY, Rooms
from tests.harness.chat import Leading
from tests.harness.kinds import TICKETS
from tests.harness.tickets import TicketHarness, delivery, ends, fires
from tests.oracle.emulator import emulated
from tests.remediator.tickets.memory_channel import START

pytestmark = pytest.mark.cluster
REPO, ROOM = "org/repo", "gpu-team"


class Story:
    """The product on both, and who reads there."""

    def __init__(self, github: str, slack: str, folder: Path) -> None:
        self._github, self._slack = github, f"{slack}/api/"
        for name, token in (("github", "token-us"), ("slack", "xoxb-us")):
            (folder / name).write_text(token)
        self.routes = Routes(Route(REPO, ("gpu",), ("ann",)), cluster="prod")
        self.channel = GitHub(github, GithubTokenFile(folder / "github"), SYSTEM, spacing=0.0)
        private: Any = PrivateOnly(self.channel, self.routes, SYSTEM)
        self.tickets = TicketHarness(private)
        self.tickets.routes = self.routes
        self.tickets.restart()
        listed = self.ask("conversations.list")["channels"]
        (self.place,) = (channel["id"] for channel in listed if channel["name"] == ROOM)
        room = Room(ROOM, Slack(self.place, folder / "slack", self._slack), frozenset(Severity))
        self.chat, leader = SlackRoom(ROOM, room.place), Leading()
        rooms = Unchanging({ROOM: room})
        given: Any = (rooms, lambda room: self.chat, self.tickets.world, self.routes, leader, self.tickets.clock)
        self.rooms = Rooms(self.tickets.client, *given)

    async def passes(self, **delta: float) -> None:
        """Time goes by; then the leader works until nothing is left to do."""
        await self.tickets.later(**delta)
        while True:
            await self.tickets.refresh()
            self.rooms._cache = self.rooms._store._cache = self.tickets.world
            if await self.rooms.serve(ROOM) >= EVERY:
                return

    def ask(self, method: str, **body: str) -> Any:
        """What Slack shows."""
        headers = {"Authorization": "Bearer xoxb-us"}
        return requests.post(self._slack + method, data=body, headers=headers, timeout=10).json()

    def issues(self, path: str = "") -> Any:
        """What GitHub shows."""
        headers = {"Authorization": "token token-ann"}
        url = f"{self._github}/repos/{REPO}/issues{path}"
        return requests.get(url, params={"state": "all"}, headers=headers, timeout=10).json()

    @property
    def thread(self) -> list[str]:
        """What was said in the only thread."""
        (first,) = (said for said in self.ask("conversations.history", channel=self.place)["messages"])
        said = self.ask("conversations.replies", channel=self.place, ts=first["ts"])["messages"]
        texts = [message["blocks"][0]["elements"][0]["elements"] for message in said]
        return ["".join(element.get("text", "") for element in elements).strip().split("\n")[1] for elements in texts]


@pytest.fixture
async def story(tmp_path: Path) -> AsyncIterator[Story]:
    async with emulated("github", tmp_path) as github, emulated("slack", tmp_path) as slack:
        made = Story(github, slack, tmp_path)
        await made.tickets.prepare()
        yield made
        await made.channel.aclose()
        await made.chat.aclose()


async def test_a_case_has_one_issue_and_one_thread_from_its_start_to_its_end(story: Story) -> None:
    await story.tickets.policy()
    await story.tickets.case()
    await story.passes()
    (issue,) = story.issues()
    assert (issue["title"], issue["state"]) == ("[prod] gpu-17: GpuLost", "open")
    assert {label["name"] for label in issue["labels"]} == {"remediator", "gpu", "severity: warning"}
    assert [person["login"] for person in issue["assignees"]] == ["ann"]
    assert story.thread == ["Warning, it waits"]
    await story.tickets.escalates()
    await story.passes(minutes=2)
    assert story.thread == ["Warning, a person is needed"] * 2
    assert "What to do" in story.issues("/1")["body"]
    await story.tickets.recovers()
    await story.passes(minutes=2)
    issue = story.issues("/1")
    assert (issue["state"], issue["state_reason"], len(story.issues())) == ("closed", "completed", 1)
    assert len(story.issues("/1/comments")) == 2
    assert story.thread == ["Warning, it is over", "Warning, a person is needed", "Warning, it is over"]
    assert (await story.tickets.ticket()).closed_by is ClosedBy.US


async def test_a_create_whose_record_was_lost_is_found_again_and_not_repeated(story: Story) -> None:
    await story.tickets.hear(delivery(fires()))
    await story.passes()
    ticket = await story.tickets.ticket()
    begun = {"phase": "Pending", "issue": None, "creatingSince": START.isoformat(), "creatingIn": REPO}
    await story.tickets.client.patch(TICKETS, ticket.name, {"status": begun}, subresource="status")
    story.tickets.restart()
    await story.passes(minutes=2)
    assert len(story.issues()) == 1
    assert (await story.tickets.ticket()).issue == ticket.issue
    await story.tickets.hear(delivery(ends()))
    await story.passes(minutes=2)
    assert story.issues("/1")["state"] == "closed"
