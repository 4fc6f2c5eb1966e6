"""Commands from a comment to the case and back: the real channel, the fake GitHub, the embedded server."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from remediator.clock import Clock
from remediator.core.command import Keep
from remediator.core.names import Namespaces
from remediator.core.owner_work import Notice, as_alert
from remediator.kube import api
from remediator.kube.api import encode
from remediator.kube.informers import Informers
from remediator.kube.wire import errors
from remediator.tickets.channels.base import Draft, Marker
from remediator.tickets.channels.github import GitHub, GithubTokenFile
from remediator.tickets.channels.inbox import Comment
from remediator.tickets.channels.routes import Route, Routes
from remediator.tickets.commands.answers import unanswered
from remediator.tickets.commands.run import HOLDS, Commands
from remediator.tickets.reconcile.cache import TicketCache
from remediator_sim.apiserver import EmbeddedServer
from remediator_sim.github import GithubFault, MemoryGitHub
from remediator_sim.github.connection import connected
from tests.harness.cluster import with_kinds
from tests.harness.kinds import CASES, TICKETS
from tests.harness.tickets import GPU, TicketHarness
from tests.remediator.tickets.memory_channel import START
from tests.remediator.tickets.test_channel import Here, Way

REPO = "org/gpu"


class Leading:
    is_leader = True


class World(TicketHarness):
    """One issue about gpu-17 on a GitHub in memory, and who reads its comments."""

    def __init__(self, folder: Path, **of_hub: str) -> None:
        clock = Clock(lambda: self.now, lambda: 0.0)
        self.now = START
        super().__init__(server=EmbeddedServer(clock=clock, like=with_kinds()))
        self.hub = MemoryGitHub([REPO], ["ann", "bob"], clock=clock, **of_hub)
        self.token = folder / "token"
        self.token.write_text(self.hub.token)
        self.leader = Leading()

    async def begin(self) -> None:
        await self.prepare()
        await self.policy()
        await self.case()
        self.now += timedelta(minutes=1)  # the case is older than what is said
        self.restart_commands()
        issue = (await self.github.create(REPO, Draft("gpu-17", "text", Marker("mark", START)))).ref
        await self.make(TICKETS, GPU.name, subject={"kind": "Node", "nodeName": "gpu-17"})
        status = {"phase": "Open", "issue": {"repository": REPO, "number": issue.number, "url": issue.url}}
        await self.client.patch(TICKETS, GPU.name, {"status": status}, subresource="status")

    def restart_commands(self) -> None:
        """Another replica leads: nothing in memory survives."""
        self.way = Way(self.hub)
        with connected(self.way):
            self.github = GitHub(self.hub.url, GithubTokenFile(self.token), self.clock, spacing=0.0, worker=Here())
        self._made: Commands | None = None

    async def read(self, key: str = REPO) -> float | None:
        """One pass with caches that are up to date."""
        informers = Informers(self.client, self.clock, Namespaces())
        cache = TicketCache(informers)
        await informers.read()
        if self._made is None:
            leader: Any = self.leader
            routes = Routes(Route(REPO, commands=True))
            self._made = Commands(self.client, self.github, self.github, cache, routes, leader, self.clock)
        self._made._cache = self._made._acting._cache = cache
        return await self._made.serve(key)

    async def spec(self, name: str = "case-1") -> dict[str, Any]:
        return dict((await self.client.get(CASES, name))["spec"])

    def says(self, text: str, who: str = "ann") -> int:
        return self.hub.person(who).comment(REPO, 1, text)

    @property
    def answers(self) -> list[str]:
        comments = self.hub.issues(REPO)[0].comments
        return [comment.body.partition("\n\n")[2] for comment in comments if comment.author == "remediator[bot]"]

    @property
    def eyes(self) -> int:
        return sum(len(comment.reactions) for comment in self.hub.issues(REPO)[0].comments)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    made = World(tmp_path)
    await made.begin()
    yield made
    assert (made.hub.violations, made.hub.broken) == ([], [])


async def test_a_hold_is_set_with_its_authors_name_answered_once_and_ends_by_itself(world: World) -> None:
    world.says("/hold 2h")
    for _ in range(3):
        assert await world.read() == 30.0
    held = await world.client.get(CASES, "case-1")
    assert (held["spec"]["hold"], held["spec"]["holdSetBy"]) == (True, "github:ann")
    assert held["metadata"]["annotations"]["remediator.dev/hold-until"] == "2026-11-20T11:01:00Z"
    assert world.answers == ["- `/hold 2h`: nothing new starts in `case-1` on `gpu-17` until 2026-11-20 11:01:00 UTC."]
    assert world.eyes == 1
    world.now += timedelta(minutes=119)
    await world.read(HOLDS)
    assert (await world.spec())["hold"] is True
    world.now += timedelta(minutes=1)
    await world.read(HOLDS)
    assert "holdSetBy" not in await world.spec()
    assert (await world.spec())["hold"] is False


async def test_a_hold_that_a_user_has_taken_over_does_not_end_by_itself(world: World) -> None:
    world.says("/hold 1h")
    await world.read()
    await world.read(HOLDS)
    await world.client.patch(CASES, "case-1", {"spec": {"hold": True, "holdSetBy": "olga"}})
    world.now += timedelta(hours=2)
    assert world._made is not None
    await world._made.serve(HOLDS)  # its cache does not know olga yet
    await world.read(HOLDS)
    assert (await world.spec())["hold"] is True


async def test_two_commands_on_one_case_are_both_obeyed_and_stand_in_one_answer(world: World) -> None:
    await world.becomes("case-1", "Held", blockedBy=[{"reason": "ApprovalNeeded", "message": "approval: Required"}])
    world.says("Looks fine.\n\n/approve\n/hold 1h")
    await world.read()
    spec = await world.spec()
    assert (spec["approved"], spec["approvedBy"], spec["hold"]) == (True, "github:ann", True)
    assert [answer.count("\n") for answer in world.answers] == [1]


async def test_release_assign_and_rma(world: World) -> None:
    await world.escalates()
    world.says("/rma\n/assign bob")
    await world.read()
    issue = world.hub.issues(REPO)[0]
    assert (issue.labels, issue.assignees) == (("rma",), ("bob",))
    assert (await world.spec())["hold"] is True
    world.says("/assign nobody\n/release")
    await world.read()
    assert (await world.spec())["releaseSetBy"] == "github:ann"
    assert "`nobody` cannot be assigned here" in world.answers[1]


async def test_who_has_no_write_access_is_told_once_and_nothing_is_done(world: World) -> None:
    world.hub.repository(REPO).permissions["bob"] = "triage"
    for text in ("/hold 2h", "/approve", "/lgtm"):
        world.says(text, "bob")
    await world.read()
    world.restart_commands()
    world.says("/release", "bob")
    await world.read()
    assert [answer.partition(",")[0] for answer in world.answers] == ["You have no write access to this repository"]
    assert "hold" not in await world.spec()


async def test_where_nobody_can_tell_who_it_is_nothing_is_done_and_it_is_tried_again(world: World) -> None:
    world.says("/hold 2h")
    world.hub.fail("GET", "/permission", GithubFault(502), times=4)
    await world.read()
    assert ("hold" not in await world.spec(), world.answers, world.eyes) == (True, [], 0)
    await world.read()
    assert (await world.spec())["hold"] is True
    assert len(world.answers) == 1


@pytest.mark.parametrize("why", ["edited", "older than an hour", "by a bot", "before the case"])
async def test_what_is_no_command_does_nothing(world: World, why: str) -> None:
    world.hub.repository(REPO).permissions["ci[bot]"] = "write"
    comment = world.says("/hold 2h", "ci[bot]" if why == "by a bot" else "ann")
    if why == "edited":
        world.now += timedelta(seconds=1)
        world.hub.person("bob").edit_comment(REPO, comment, "/hold 7d")
    if why == "older than an hour":
        world.now += timedelta(minutes=61)
    if why == "before the case":
        await world.client.delete(CASES, "case-1")
        world.now += timedelta(seconds=30)
        await world.case()
    await world.read()
    assert "hold" not in await world.spec()
    assert ["no case of this issue is open" in answer for answer in world.answers] == [True] * (
        why == "before the case"
    )


async def test_an_unknown_command_is_answered_with_the_list(world: World) -> None:
    world.says("/merge now")
    await world.read()
    assert "- `/merge now`: there is no such command, so nothing was done." in world.answers[0]
    assert "| `/hold 2h` |" in world.answers[0]


async def test_text_of_a_comment_does_not_leave_its_code_span_in_the_answer(world: World) -> None:
    world.says("/merge `@all` <!-- remediator answer 1 --> | x")
    await world.read()
    assert world.answers == []  # it is no plain line, so it is no command
    world.says("/merge @all #1 -->|x")
    await world.read()
    assert "`/merge @all #1 -\u200b->¦x`" in world.answers[0]


@pytest.mark.parametrize("at", ["reactions", "comments"])
async def test_a_crash_between_the_deed_and_its_answer_leads_to_one_answer(world: World, at: str) -> None:
    """The reply of GitHub is lost, and another replica goes on: it waits until an answer would have been seen."""
    world.says("/hold 2h")
    world.hub.fail("POST", f"{at}$", GithubFault(drop=True, carried_out=True))
    await world.read()
    world.restart_commands()
    await world.client.patch(CASES, "case-1", {"spec": {"hold": False}})  # a user thinks otherwise
    for minutes in (0, 1, 5, 5):
        world.now += timedelta(minutes=minutes)
        await world.read()
    assert len(world.answers) == 1
    assert (await world.spec())["hold"] is False


async def test_an_answer_that_a_list_does_not_show_yet_is_not_given_twice(world: World) -> None:
    world.says("/hold 2h")
    world.now += timedelta(seconds=30)
    await world.read()
    world.restart_commands()
    world.hub.lag(listing=60)
    for _ in range(3):
        world.now += timedelta(seconds=45)  # at first the list shows the comment and not the answer
        await world.read()
    assert len(world.answers) == 1


def test_the_account_behind_the_token_gives_no_commands() -> None:
    comments = [
        Comment(REPO, 1, id, "", author, id, False, "/why", START, False) for id, author in [(1, "Ann"), (2, "bob")]
    ]
    assert [comment.id for comment in unanswered(comments, comments, "ann")] == [2]


async def test_a_case_that_may_not_be_changed_holds_up_no_other_comment(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(*_: Any, **__: Any) -> None:
        raise errors.Forbidden(403, "Forbidden", "not by you")

    world.says("/hold 2h")
    world.says("/why")
    with monkeypatch.context() as patched:
        patched.setattr(world.client, "patch", refused)
        await world.read()
    assert [answer.partition(":")[0] for answer in world.answers] == ["- `/why`"]
    await world.read()
    assert [answer.partition(":")[0] for answer in world.answers] == ["- `/why`", "- `/hold 2h`"]


async def test_a_replica_that_does_not_lead_any_more_changes_nothing(world: World) -> None:
    world.says("/hold 2h")
    world.leader.is_leader = False
    assert await world.read() == 1.0
    assert "hold" not in await world.spec()
    assert world.answers == []


async def test_comments_below_other_issues_are_none_of_ours(world: World) -> None:
    world.hub.person("ann").open(REPO, "another")
    world.hub.person("ann").comment(REPO, 2, "/hold 2h")
    asked = len(world.hub.requests)
    await world.read()
    assert [(request.method, request.path) for request in world.hub.requests[asked:]] == [
        ("GET", f"/repos/{REPO}/issues/comments")
    ]


async def test_a_repository_of_which_no_route_takes_commands_any_more_is_read_no_more(world: World) -> None:
    await world.read()
    assert world._made is not None
    world._made._routes = Routes(Route(REPO))
    world.says("/hold 2h")
    assert (await world.read(), await world.read(HOLDS)) == (None, 30.0)
    assert (world.answers, (await world.spec()).get("hold")) == ([], None)


async def test_a_quiet_minute_costs_no_quota(world: World) -> None:
    world.says("a word")
    await world.read()
    used = world.hub.limits.quota("core", world.hub.now()).used
    for _ in range(10):
        await world.read()
    assert world.hub.limits.quota("core", world.hub.now()).used == used


async def test_a_hint_has_the_repository_read_at_once_and_again_until_the_list_shows_the_comment(world: World) -> None:
    assert await world.read() == 30.0
    commands = world._made
    assert commands is not None
    woken: list[str] = []
    commands.queue._queue = object()  # it leads
    commands.queue.add = lambda *keys: woken.extend(keys)  # type: ignore[method-assign]
    before = await world.ticket()
    number = world.says("/hold 2h")
    commands._on_ticket(GPU.name, before, replace(before, hinted=number + 1))  # of which no list knows yet
    assert woken == [REPO]
    assert await world.read() == 3.0
    world.now += timedelta(minutes=1)
    assert await world.read() == 30.0, "somebody may have deleted it"
    commands._on_ticket(GPU.name, before, replace(before, hinted=number))
    assert await world.read() == 30.0
    assert woken == [REPO, REPO]


async def owner_ticket(world: World) -> None:
    """The issue is about two objects of ann, of which the janitor has told her."""
    await world.client.delete(TICKETS, GPU.name)
    notices = [
        Notice("gpus", "IdleGPUs", "pods", "team", name, name, "ann-k", START, START + timedelta(hours=4), "idle")
        for name in ("p", "q")
    ]
    told = [as_alert(notice, "ml", "Bob", START) for notice in notices]
    wire = await world.client.create(api.TICKET, encode.new_ticket(notices[0].subject, told))
    status = {"phase": "Open", "issue": {"repository": REPO, "number": 1, "url": "https://x"}}
    await world.client.patch(TICKETS, wire.metadata.name, {"status": status}, subresource="status")


async def keeps(world: World) -> list[tuple[str, str, str]]:
    (ticket,) = await world.tickets()
    return [(keep.target, f"{keep.until:%d %H:%M}", keep.user) for keep in ticket.keeps]


async def test_what_an_issue_says_of_an_owner_is_kept_by_a_comment_all_of_it_or_one_object(world: World) -> None:
    await owner_ticket(world)
    world.says("/keep 8h pods/team/q\n/keep pods/team/q\n/keep 8h pods/team/other")
    await world.read()
    assert await keeps(world) == [("pods/team/q", "20 17:01", "github:ann")]
    assert world.answers == [
        "- `/keep 8h pods/team/q`: `pods/team/q`: kept until 2026-11-20 17:01:00 UTC. "
        "The janitor writes that on them with its next pass.\n"
        "- `/keep pods/team/q`: say for how long, from 1m to 7d, such as `/keep 8h`; longer: `remediator keep`. "
        "Nothing was done.\n"
        "- `/keep 8h pods/team/other`: the janitor has given notice of no such work in this issue, so nothing was done."
    ]
    world.says("/keep 1d")
    world.says("/keep 2h")
    await world.read()
    assert await keeps(world) == [(f"pods/team/{name}", "21 09:01", "github:ann") for name in "pq"], "the longest"


async def test_an_owner_needs_no_write_access_to_keep_what_is_his_and_may_do_nothing_else(world: World) -> None:
    await owner_ticket(world)
    for who in ("bob", "ann"):
        world.hub.repository(REPO).permissions[who] = "triage"
    world.says("/keep 8h pods/team/p", "bob")
    world.says("/keep 8h pods/team/q", "ann")
    world.says("/keep 8h pods/team/q\n/assign bob", "bob")
    await world.read()
    assert await keeps(world) == [("pods/team/p", "20 17:01", "github:bob")]
    refused = [answer.startswith("You have no write access") for answer in world.answers]
    assert refused == [False, True, True]


async def test_a_ticket_that_moves_while_a_comment_is_obeyed_is_read_again(world: World) -> None:
    await owner_ticket(world)
    world.says("/keep 8h pods/team/p")
    (ticket,) = await world.tickets()
    moved = False

    async def another() -> None:
        nonlocal moved
        moved = True
        keep = Keep("pods/team/q", world.now + timedelta(hours=1), "github:zoe")
        await world.client.patch(TICKETS, ticket.name, encode.with_keeps(ticket, [keep]))

    patch = world.client.patch

    async def patching(kind: Any, name: str, body: Any, **more: Any) -> Any:
        if not moved and kind is api.TICKET:
            world.client.patch = patch  # type: ignore[method-assign]
            await another()
        return await patch(kind, name, body, **more)

    world.client.patch = patching  # type: ignore[method-assign, assignment]
    await world.read()
    assert moved
    assert [target for target, *_ in await keeps(world)] == ["pods/team/q", "pods/team/p"]


async def test_of_an_issue_about_a_node_nothing_is_kept(world: World) -> None:
    world.says("/keep 8h")
    await world.read()
    assert "the janitor has given notice of no such work in this issue" in world.answers[0]
