"""Comments below issues, with the real PyGithub, against the fake."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from remediator.clock import SYSTEM, Clock
from remediator.core.ticket import IssueRef
from remediator.tickets.channels.base import Draft, Later, Marker
from remediator.tickets.channels.github import GitHub, GithubTokenFile
from remediator.tickets.channels.github.errors import GithubCall
from remediator.tickets.channels.github.rate_limit import RateLimits
from remediator_sim.github import GithubFault, MemoryGitHub
from remediator_sim.github.connection import connected
from tests.remediator.tickets.test_channel import Here, Way

REPO, ISSUE = "org/repo", IssueRef("org/repo", 1, "")
SINCE = datetime(2020, 1, 1, tzinfo=UTC)
DRAFT = Draft("gpu-17", "text", Marker("mark", SINCE))


@pytest.fixture
async def hub() -> AsyncIterator[MemoryGitHub]:
    """One issue of ours."""
    hub = MemoryGitHub([REPO], ["ann", "bob"])
    yield hub
    assert (hub.violations, hub.broken) == ([], [])


@pytest.fixture
async def github(hub: MemoryGitHub, tmp_path: Path) -> AsyncIterator[GitHub]:
    (tmp_path / "token").write_text(hub.token)
    with connected(Way(hub)):
        github = GitHub(hub.url, GithubTokenFile(tmp_path / "token"), SYSTEM, spacing=0.0, worker=Here())
    await github.create(REPO, DRAFT)
    yield github
    await github.aclose()


async def test_comments_come_oldest_first_with_who_wrote_them_and_whether_they_were_changed(
    hub: MemoryGitHub, github: GitHub
) -> None:
    ann = hub.person("ann")
    first = ann.comment(REPO, 1, "/hold 2h")
    hub.advance(5)
    ann.edit_comment(REPO, first, "/hold 3h")
    hub.person("robot[bot]").comment(REPO, 1, "/why")
    comments = await github.comments(REPO, SINCE)
    assert [(c.issue, c.author, c.program, c.text, c.edited) for c in comments] == [
        (1, "ann", False, "/hold 3h", True),
        (1, "robot[bot]", True, "/why", False),
    ]


async def test_nothing_new_costs_no_quota_and_101_comments_take_two_pages(hub: MemoryGitHub, github: GitHub) -> None:
    for number in range(101):
        hub.person("ann").comment(REPO, 1, f"comment {number}")
    assert [comment.text for comment in await github.comments(REPO, SINCE)] == [f"comment {n}" for n in range(101)]
    used, asked = hub.limits.quota("core", hub.now()).used, len(hub.requests)
    assert len(await github.comments(REPO, SINCE)) == 101
    assert [request.status for request in hub.requests[asked:]] == [304]
    assert hub.limits.quota("core", hub.now()).used == used


@pytest.mark.parametrize(
    ("permission", "writes"),
    [("admin", True), ("maintain", True), ("write", True), ("triage", False), ("read", False), ("none", False)],
)
async def test_who_may_push_may_command(hub: MemoryGitHub, github: GitHub, permission: str, writes: bool) -> None:
    hub.repository(REPO).permissions["ann"] = permission
    hub.person("ann").comment(REPO, 1, "/why")
    (comment,) = await github.comments(REPO, SINCE)
    assert await github.may_write(comment) is writes


async def test_a_login_that_another_person_has_now_may_nothing(hub: MemoryGitHub, github: GitHub) -> None:
    hub.person("bob").comment(REPO, 1, "/why")
    (comment,) = await github.comments(REPO, SINCE)
    hub._store.people[:] = ["bob", "ann"]  # the login is given to another account
    assert await github.may_write(comment) is False


async def test_where_github_does_not_say_what_somebody_may_do_that_is_an_error_and_no_answer(
    hub: MemoryGitHub, github: GitHub
) -> None:
    hub.person("ann").comment(REPO, 1, "/why")
    (comment,) = await github.comments(REPO, SINCE)
    hub.fail("GET", "/permission", GithubFault(502), times=4)
    with pytest.raises(Later):
        await github.may_write(comment)


async def test_of_two_reactions_the_first_alone_is_new(hub: MemoryGitHub, github: GitHub) -> None:
    hub.person("ann").comment(REPO, 1, "/why")
    (comment,) = await github.comments(REPO, SINCE)
    assert [await github.react(comment), await github.react(comment)] == [True, False]


async def test_somebody_is_assigned_beside_others_or_github_does_not_take_them(
    hub: MemoryGitHub, github: GitHub
) -> None:
    hub.person("ann").assign(REPO, 1, "ann")
    assert [await github.assign(ISSUE, "bob"), await github.assign(ISSUE, "nobody")] == [True, False]
    assert hub.issues(REPO)[0].assignees == ("ann", "bob")
    assert await github.opened_by(ISSUE) == "remediator[bot]"


async def test_with_less_than_a_fifth_of_the_quota_left_comments_are_not_read_until_it_is_renewed(
    hub: MemoryGitHub, github: GitHub
) -> None:
    hub.limits.quota("core", hub.now()).used = 4100
    await github.comments(REPO, SINCE)
    with pytest.raises(Later, match="of 5000 requests are left"):
        await github.comments(REPO, SINCE)
    RateLimits(Clock(lambda: hub.now() + timedelta(hours=1), lambda: 0.0)).spare(
        GithubCall(""), 899, 5000, hub.now().timestamp()
    )
