"""What every channel does, tried on each: a new channel gets an entry in CHANNELS and a Users of its own."""

from collections.abc import AsyncIterator, Callable
from concurrent.futures import Executor, Future
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

import pytest
import requests

from remediator.clock import SYSTEM
from remediator.core.ticket import IssueRef
from remediator.tickets import channels
from remediator.tickets.channels.base import (
    Channel,
    ChannelError,
    Close,
    Complete,
    Draft,
    Edit,
    Marker,
    Refused,
    Relabel,
    Reopen,
)
from remediator.tickets.channels.github import GitHub, GithubTokenFile
from remediator.tickets.channels.section import NOTICE, fenced
from remediator_sim.github import FakeGitHub, MemoryGitHub
from remediator_sim.github.connection import connected
from tests.oracle.emulator import emulated
from tests.remediator.tickets.memory_channel import START, MemoryChannel

PLACE = "org/repo"
MARKER = Marker("0123456789abcdef", START)
DRAFT = Draft("gpu-17: GpuLost", "the GPU is gone", MARKER, ("remediator", "severity: critical"), ("ann",))


class Users(Protocol):
    """What users do in the place where a channel keeps its issues."""

    def write(self, number: int, body: str) -> None: ...
    def close(self, number: int) -> None: ...
    def reopen(self, number: int) -> None: ...
    def delete(self, number: int) -> None: ...
    def label(self, number: int, name: str) -> None: ...
    def open_milestone(self, title: str) -> None: ...
    def comments(self, number: int) -> list[str]: ...


class OnGitHub:
    """Ann works on GitHub."""

    def __init__(self, fake: MemoryGitHub) -> None:
        self._fake, self._ann = fake, fake.person("ann")

    def write(self, number: int, body: str) -> None:
        self._ann.edit(PLACE, number, body=body)

    def close(self, number: int) -> None:
        self._ann.close(PLACE, number)

    def reopen(self, number: int) -> None:
        self._ann.reopen(PLACE, number)

    def delete(self, number: int) -> None:
        self._ann.delete(PLACE, number)

    def label(self, number: int, name: str) -> None:
        self._ann.label(PLACE, number, name)

    def open_milestone(self, title: str) -> None:
        self._ann.open_milestone(PLACE, title)

    def comments(self, number: int) -> list[str]:
        return [comment.body for comment in self._fake.issues(PLACE)[number - 1].comments]


class InMemory:
    """A user of the channel that tests use in place of GitHub's."""

    def __init__(self, channel: MemoryChannel) -> None:
        self._channel = channel

    def write(self, number: int, body: str) -> None:
        self._channel.change_by_user(number, body=body)

    def close(self, number: int) -> None:
        self._channel.shut(number)

    def reopen(self, number: int) -> None:
        self._channel.change_by_user(number, open=True, reason="reopened", closed_by_user=False)

    def delete(self, number: int) -> None:
        self._channel.delete(number)

    def label(self, number: int, name: str) -> None:
        self._channel.change_by_user(number, labels=(*self._channel.issue(number).labels, name))

    def open_milestone(self, title: str) -> None:
        self._channel.milestones.add(title)

    def comments(self, number: int) -> list[str]:
        return self._channel.comments[number]


@asynccontextmanager
async def github(folder: Path) -> AsyncIterator[tuple[Channel, Users]]:
    async with FakeGitHub([PLACE], ["ann"]) as fake:
        (folder / "token").write_text(fake.token)
        channel = GitHub(fake.url, GithubTokenFile(folder / "token"), SYSTEM, spacing=0.0)
        yield channel, OnGitHub(fake)
        await channel.aclose()
        assert fake.violations == []


class Here(Executor):
    """Runs what is submitted at once."""

    def submit(self, work: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(work(*args, **named))
        except ChannelError as error:
            future.set_exception(error)
        return future


class Way:
    """A line on which nothing goes wrong."""

    def __init__(self, hub: MemoryGitHub) -> None:
        self.carry = hub.serve

    def pause(self, seconds: float) -> None:
        """No time passes."""


@asynccontextmanager
async def in_process(folder: Path) -> AsyncIterator[tuple[Channel, Users]]:
    hub = MemoryGitHub([PLACE], ["ann"])
    (folder / "token").write_text(hub.token)
    with connected(Way(hub)):
        channel = GitHub(hub.url, GithubTokenFile(folder / "token"), SYSTEM, spacing=0.0, worker=Here())
    yield channel, OnGitHub(hub)
    await channel.aclose()
    assert (hub.violations, hub.broken) == ([], [])


class OnEmulate:
    """Ann works on an emulator that others wrote."""

    def __init__(self, url: str) -> None:
        self._home = f"{url}/repos/{PLACE}"

    def write(self, number: int, body: str) -> None:
        self._ask("PATCH", f"/issues/{number}", {"body": body})

    def close(self, number: int) -> None:
        self._ask("PATCH", f"/issues/{number}", {"state": "closed"})

    def reopen(self, number: int) -> None:
        self._ask("PATCH", f"/issues/{number}", {"state": "open"})

    def delete(self, number: int) -> None:
        raise NotImplementedError("over REST nobody can")

    def label(self, number: int, name: str) -> None:
        self._ask("POST", f"/issues/{number}/labels", {"labels": [name]})

    def open_milestone(self, title: str) -> None:
        self._ask("POST", "/milestones", {"title": title})

    def comments(self, number: int) -> list[str]:
        return [comment["body"] for comment in self._ask("GET", f"/issues/{number}/comments")]

    def _ask(self, method: str, path: str, body: object = None) -> Any:
        headers = {"Authorization": "token token-ann"}
        reply = requests.request(method, self._home + path, json=body, headers=headers, timeout=10)
        reply.raise_for_status()
        return reply.json()


@asynccontextmanager
async def on_emulate(folder: Path) -> AsyncIterator[tuple[Channel, Users]]:
    (folder / "token").write_text("token-us")
    async with emulated("github", folder) as url:
        channel = GitHub(url, GithubTokenFile(folder / "token"), SYSTEM, spacing=0.0)
        yield channel, OnEmulate(url)
        await channel.aclose()


@asynccontextmanager
async def memory(folder: Path) -> AsyncIterator[tuple[Channel, Users]]:
    channel = MemoryChannel()
    yield channel, InMemory(channel)


CHANNELS: dict[str, Callable[[Path], AbstractAsyncContextManager[tuple[Channel, Users]]]] = {
    "GitHub": github,
    "GitHub in process": in_process,
    "memory": memory,
    "emulate": on_emulate,
}
# What the emulator does otherwise than GitHub documents it; all else it must do as the others do.
CANNOT: dict[str, str] = {
    "test_labels_of_users_stay": "of a label that an issue has not it says Not Found, as if the issue were not there",
    "test_a_twin_is_closed_as_a_duplicate": "it keeps `completed` where state_reason is `duplicate`",
    "test_an_issue_that_users_deleted_is_refused_by_that_name": "issues are deleted by GraphQL only, which it has not",
}


def test_each_folder_of_a_channel_has_an_entry_here() -> None:
    folders = [path.parent.name for path in Path(channels.__path__[0]).glob("*/__init__.py")]
    assert [folder for folder in folders if folder not in {name.lower() for name in CHANNELS}] == []


ELSEWHERE = {"emulate": pytest.mark.cluster}  # a process of another language


@pytest.fixture(params=[pytest.param(name, marks=ELSEWHERE.get(name, ())) for name in CHANNELS])
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[tuple[Channel, Users]]:
    """A channel, and the users of the place where its issues are."""
    if request.param == "emulate" and (reason := CANNOT.get(request.function.__name__)):
        request.applymarker(pytest.mark.xfail(reason=reason, strict=True))
    async with CHANNELS[request.param](tmp_path) as both:
        yield both


async def test_what_is_created_is_read_back_with_its_place_and_number(place: tuple[Channel, Users]) -> None:
    channel, _ = place
    made = await channel.create(PLACE, DRAFT)
    read = await channel.get(made.ref)
    assert read == made
    assert (read.repository, read.number, read.title, read.open) == (PLACE, 1, DRAFT.title, True)
    assert (read.labels, read.assignees, read.closed_by_user) == (DRAFT.labels, DRAFT.assignees, False)
    assert read.body == fenced(DRAFT.text, MARKER)
    assert read.created.tzinfo is not None
    assert read.url.startswith("http")


async def test_a_text_that_is_never_changed_later_does_not_say_that_it_is(place: tuple[Channel, Users]) -> None:
    channel, _ = place
    made = await channel.create(PLACE, replace(DRAFT, kept_up=False))
    assert made.body == fenced(DRAFT.text, MARKER, kept_up=False)
    assert NOTICE not in made.body
    assert MARKER.whole in made.body


async def test_an_edit_replaces_our_part_and_leaves_the_words_of_users(place: tuple[Channel, Users]) -> None:
    channel, users = place
    made = await channel.create(PLACE, DRAFT)
    users.write(1, f"before\n\n{made.body}\n\nafter")
    edited = await channel.change(await channel.get(made.ref), Edit("it is back", MARKER))
    assert edited.body == f"before\n\n{fenced('it is back', MARKER)}\n\nafter"
    assert (await channel.get(made.ref)).body == edited.body


async def test_words_of_users_take_room_from_our_part(place: tuple[Channel, Users]) -> None:
    channel, users = place
    made = await channel.create(PLACE, DRAFT)
    assert made.room == channel.room
    users.write(1, made.body + "x" * 20_000)
    issue = await channel.get(made.ref)
    assert 0 < issue.room < channel.room
    full = await channel.change(issue, Edit("f" * issue.room, MARKER))
    assert full.body.endswith("x" * 20_000)


async def test_labels_of_users_stay(place: tuple[Channel, Users]) -> None:
    channel, users = place
    made = await channel.create(PLACE, DRAFT)
    users.label(1, "rack-a")
    await channel.change(
        await channel.get(made.ref), Relabel(("severity: warning",), ("severity: critical", "never there"))
    )
    assert set((await channel.get(made.ref)).labels) == {"remediator", "rack-a", "severity: warning"}


async def test_an_issue_is_in_the_milestone_of_its_draft_and_one_that_is_not_open_is_refused_before_anything_is_made(
    place: tuple[Channel, Users],
) -> None:
    channel, users = place
    users.open_milestone("2026-Q4")
    made = await channel.create(PLACE, replace(DRAFT, milestone="2026-Q4"))
    assert (await channel.get(made.ref)).milestone == "2026-Q4"
    with pytest.raises(Refused, match="2027-Q1") as refused:
        await channel.create(PLACE, replace(DRAFT, milestone="2027-Q1"))
    assert refused.value.field == "milestone"
    assert len(await channel.find(PLACE, MARKER.searched, "remediator", made.created - timedelta(minutes=1))) == 1


async def test_what_is_completed_later_stands_beside_what_is_there(place: tuple[Channel, Users]) -> None:
    channel, users = place
    made = await channel.create(PLACE, replace(DRAFT, assignees=()))
    users.open_milestone("2026-Q4")
    await channel.change(made, Complete(labels=("hardware",), assignees=("ann",)))
    issue = await channel.change(await channel.get(made.ref), Complete(milestone="2026-Q4"))
    assert issue == await channel.get(made.ref)
    assert (set(issue.labels), issue.assignees) == ({*DRAFT.labels, "hardware"}, ("ann",))
    assert issue.milestone == "2026-Q4"
    with pytest.raises(Refused) as refused:
        await channel.change(issue, Complete(milestone="2027-Q1"))
    assert refused.value.field == "milestone"


async def test_who_closed_it_is_told_apart(place: tuple[Channel, Users]) -> None:
    channel, users = place
    made = await channel.create(PLACE, DRAFT)
    ours = await channel.change(made, Close())
    assert (ours.open, ours.closed_by_user) == (False, False)
    again = await channel.change(ours, Reopen())
    assert (again.open, again.closed_by_user) == (True, False)
    users.close(1)
    assert (await channel.get(made.ref)).closed_by_user is True
    users.reopen(1)
    assert (await channel.get(made.ref)).open is True


async def test_a_twin_is_closed_as_a_duplicate(place: tuple[Channel, Users]) -> None:
    channel, _ = place
    first, second = await channel.create(PLACE, DRAFT), await channel.create(PLACE, DRAFT)
    closed = await channel.change(second, Close(duplicate_of=first.number))
    assert (closed.open, closed.reason, closed.closed_by_user) == (False, "duplicate", False)
    assert (await channel.get(first.ref)).open is True


async def test_issues_are_found_by_their_marker_in_any_state_oldest_first(place: tuple[Channel, Users]) -> None:
    channel, _ = place
    first, second = await channel.create(PLACE, DRAFT), await channel.create(PLACE, DRAFT)
    await channel.create(PLACE, Draft("other", "text", Marker("f" * 16, START), DRAFT.labels))
    await channel.change(first, Close())
    since = first.created - timedelta(minutes=1)
    issues = await channel.find(PLACE, MARKER.searched, "remediator", since)
    assert [(issue.number, issue.open) for issue in issues] == [(first.number, False), (second.number, True)]
    assert all(MARKER.whole in issue.body for issue in issues)


async def test_a_comment_is_added_once(place: tuple[Channel, Users]) -> None:
    channel, users = place
    made = await channel.create(PLACE, DRAFT)
    await channel.comment(made.ref, "a person is needed")
    assert users.comments(1) == ["a person is needed"]


@pytest.mark.parametrize("verb", ["get", "edit", "comment"])
async def test_an_issue_that_users_deleted_is_refused_by_that_name(place: tuple[Channel, Users], verb: str) -> None:
    channel, users = place
    made = await channel.create(PLACE, DRAFT)
    users.delete(1)
    ref = IssueRef(PLACE, 1, made.url)
    calls = {
        "get": lambda: channel.get(ref),
        "edit": lambda: channel.change(made, Edit("new", MARKER)),
        "comment": lambda: channel.comment(ref, "hello"),
    }
    with pytest.raises(Refused) as refused:
        await calls[verb]()
    assert refused.value.field == "issue"
