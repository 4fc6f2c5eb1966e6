"""The channel to GitHub, with the real PyGithub over HTTP, against the fake."""

import asyncio
import itertools
import logging
import os
import time
import traceback
from datetime import UTC, datetime, timedelta, timezone

import pytest
import requests
from github import GithubException
from structlog.testing import capture_logs

from remediator.clock import SYSTEM
from remediator.core.ticket import IssueRef
from remediator.tickets.channels.base import (
    ChannelError,
    Close,
    Draft,
    Edit,
    Issue,
    Later,
    Marker,
    Refused,
    Relabel,
    Reopen,
    Unsure,
)
from remediator.tickets.channels.github import GitHub, GithubTokenFile
from remediator.tickets.channels.github.errors import FailureTime, GithubCall, translate
from remediator.tickets.channels.github.rate_limit import RateLimit, RateLimits
from remediator.tickets.channels.section import END, fenced
from remediator_sim.github import Access, FakeGitHub, GithubFault

pytestmark = pytest.mark.sampled("github")

REPO, ISSUES = "org/repo", "/repos/org/repo/issues$"
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
MARKER = Marker("mark4711", LONG_AGO)
DRAFT = Draft("gpu-17: GPU lost", "text mark4711", MARKER, ("gpu", "remediator/ticket"), ("alice",))
FIRST = IssueRef(REPO, 1, "")
# An issue as it was read before; only what a change needs to know of it is true.
READ = Issue(REPO, 1, "", "", fenced(DRAFT.text, MARKER), 64_000, True, "", False, DRAFT.labels, (), LONG_AGO)
NEW = Edit("new", MARKER)


@pytest.fixture(scope="module", autouse=True)
def _warm(tmp_path_factory):
    """The models of GitHub's description are loaded, which takes seconds on a busy machine, before a timeout counts."""

    async def once():
        async with FakeGitHub([REPO], ["alice"]) as fake:
            hub = channel(fake, tmp_path_factory.mktemp("warm"), timeout=60)
            await hub.create(REPO, DRAFT)
            await hub.aclose()

    asyncio.run(once())


@pytest.fixture
async def fake():
    """A fake that at the end has seen only what GitHub's description allows."""
    async with FakeGitHub([REPO], ["alice", "bob", *(f"p{n}" for n in range(12))]) as fake:
        yield fake
        assert fake.violations == []


@pytest.fixture
async def hub(fake, tmp_path):
    hub = channel(fake, tmp_path)
    yield hub
    await hub.aclose()


def channel(fake, tmp_path, **how):
    (tmp_path / "token").write_text(fake.token + "\n")
    return GitHub(fake.url, GithubTokenFile(tmp_path / "token"), SYSTEM, **({"spacing": 0.0, "timeout": 3} | how))


def asked(fake, *methods):
    return [one for one in fake.requests if one.method in methods]


async def refusal(awaitable):
    with pytest.raises(ChannelError) as caught:
        await awaitable
    return caught.value


async def test_an_issue_is_made_and_read_back(fake, hub):
    made = await hub.create(REPO, DRAFT)

    assert made == await hub.get(FIRST)
    assert (made.number, made.title, made.body, made.open, made.reason) == (1, DRAFT.title, READ.body, True, "")
    assert (made.labels, made.assignees, made.closed_by_user) == (DRAFT.labels, DRAFT.assignees, False)
    assert made.url == f"{fake.web_url}/org/repo/issues/1"
    assert made.created == fake.issues(REPO)[0].created.replace(microsecond=0)


async def test_every_request_pins_the_version_of_the_api(fake, hub):
    await hub.create(REPO, DRAFT)
    await hub.find(REPO, "mark4711", "gpu", LONG_AGO)

    assert {one.headers["x-github-api-version"] for one in fake.requests} == {"2022-11-28"}


AMBIGUOUS = [
    pytest.param(GithubFault(502), False, id="502, not carried out"),
    pytest.param(GithubFault(502, carried_out=True), True, id="created but 502"),
    pytest.param(GithubFault(drop=True), False, id="connection dropped before"),
    pytest.param(GithubFault(drop=True, carried_out=True), True, id="created but connection dropped"),
    pytest.param(GithubFault(silent=True, carried_out=True), True, id="created but no answer in time"),
    pytest.param(GithubFault(200, text="<html>Please log in</html>", carried_out=True), True, id="a proxy's page"),
    pytest.param(GithubFault(201, text='{"number": 1,', carried_out=True), True, id="half an answer"),
]


@pytest.mark.parametrize(("fault", "done"), AMBIGUOUS)
async def test_a_creation_that_ends_ambiguously_is_never_sent_twice(fake, hub, fault, done):
    fake.fail("POST", ISSUES, fault, times=20)

    assert isinstance(await refusal(hub.create(REPO, DRAFT)), Unsure)

    assert len(asked(fake, "POST")) == 1
    fake.heal()
    assert len(await hub.find(REPO, "mark4711", "gpu", LONG_AGO)) == done


@pytest.mark.parametrize(("fault", "done"), AMBIGUOUS)
async def test_a_comment_that_ends_ambiguously_is_never_sent_twice(fake, hub, fault, done):
    await hub.create(REPO, DRAFT)
    fake.fail("POST", "/comments$", fault, times=20)

    assert isinstance(await refusal(hub.comment(FIRST, "still broken")), Unsure)

    assert len(asked(fake, "POST")) == 2
    assert len(fake.issues(REPO)[0].comments) == done


async def test_a_read_is_repeated_after_5xx(fake, hub):
    await hub.create(REPO, DRAFT)
    fake.fail("GET", "/issues/1$", GithubFault(502), times=2)

    assert (await hub.get(FIRST)).number == 1
    assert [one.status for one in asked(fake, "GET")] == [502, 502, 200]


@pytest.mark.parametrize(
    "fault", [GithubFault(502), GithubFault(503, headers={"retry-after": "30"}), GithubFault(drop=True)]
)
async def test_a_read_that_fails_for_ever_ends_soon_and_may_be_asked_again_later(fake, hub, fault):
    fake.fail("GET", "/issues/1$", fault, times=20)

    error = await refusal(hub.get(FIRST))

    assert isinstance(error, Later)
    assert error.after == (30 if fault.headers else 10)
    assert len(asked(fake, "GET")) == 4


@pytest.mark.parametrize(
    "fault", [GithubFault(502), GithubFault(502, carried_out=True), GithubFault(drop=True), GithubFault(silent=True)]
)
async def test_an_edit_that_ends_ambiguously_is_harmless_to_repeat(fake, hub, fault):
    await hub.create(REPO, DRAFT)
    fake.fail("PATCH", "/issues/1$", fault)

    assert isinstance(await refusal(hub.change(READ, NEW)), Later)
    assert len(asked(fake, "PATCH")) == 1
    assert (await hub.change(READ, NEW)).body == fenced("new", MARKER)


async def test_a_page_of_a_proxy_is_not_taken_for_the_issue_as_it_was(fake, hub):
    await hub.create(REPO, DRAFT)
    await hub.get(FIRST)
    fake.fail("GET", "/issues/1$", GithubFault(200, text="<html>Please log in</html>"))

    assert isinstance(await refusal(hub.get(FIRST)), Later)
    assert (await hub.get(FIRST)).body == READ.body


async def test_a_label_that_ends_ambiguously_is_harmless_to_repeat(fake, hub):
    await hub.create(REPO, DRAFT)
    fake.fail("POST", "/labels$", GithubFault(502, carried_out=True))

    assert isinstance(await refusal(hub.change(READ, Relabel(("flapping",), ()))), Later)
    await hub.change(READ, Relabel(("flapping",), ()))
    assert fake.issues(REPO)[0].labels == (*DRAFT.labels, "flapping")


CALLS = {
    "POST": lambda hub: hub.create(REPO, DRAFT),
    "PATCH": lambda hub: hub.change(READ, NEW),
    "GET": lambda hub: hub.get(FIRST),
}


@pytest.mark.parametrize("method", CALLS)
@pytest.mark.parametrize(
    ("fault", "after"),
    [
        pytest.param(GithubFault.secondary(retry_after=7), 7, id="403 with Retry-After"),
        pytest.param(GithubFault.secondary(), 60, id="403 that only says so"),
        pytest.param(GithubFault.secondary(status=429, retry_after=7), 7, id="429 with Retry-After"),
        pytest.param(GithubFault.secondary(status=429), 60, id="429 without"),
    ],
)
async def test_a_rate_limit_is_later_at_once_and_then_nothing_is_sent(fake, hub, method, fault, after):
    fake.fail(method, "/issues", fault)
    begun = time.monotonic()

    error = await refusal(CALLS[method](hub))

    assert isinstance(error, Later)
    assert error.after == after
    again = await refusal(hub.get(FIRST))
    assert isinstance(again, Later)
    assert after - 2 < again.after <= after
    assert len(fake.requests) == 1
    assert time.monotonic() - begun < 2


@pytest.mark.parametrize("status", [403, 429])
async def test_a_spent_quota_is_later_until_its_reset(fake, hub, status):
    fake.fail("GET", "/issues/1$", GithubFault.primary(reset=int(time.time()) + 3600, status=status))

    error = await refusal(hub.get(FIRST))

    assert isinstance(error, Later)
    assert 3590 < error.after < 3602


async def test_a_spent_search_does_not_hold_up_the_rest(fake, hub):
    await hub.create(REPO, DRAFT)
    fake.limits.search.limit = 0

    error = await refusal(hub.find(REPO, "mark4711", "other", LONG_AGO))

    assert isinstance(error, Later)
    assert 55 < error.after < 62
    assert (await hub.get(FIRST)).number == 1
    assert isinstance(await refusal(hub.find(REPO, "mark4711", "other", LONG_AGO)), Later)
    assert len([one for one in fake.requests if one.path == "/search/issues"]) == 1


@pytest.mark.parametrize("error", [requests.ConnectTimeout(), GithubException(502, {}, {}), requests.ReadTimeout()])
def test_a_github_that_is_away_is_tried_again_after_10_seconds_then_twice_as_long_a_minute_at_most(
    error: Exception,
) -> None:
    limits, call = RateLimits(SYSTEM), GithubCall("read")
    assert [limits.failed(error, call).after for _ in range(5)] == [10, 20, 40, 60, 60]
    limits.answered()
    assert limits.failed(error, call).after == 10
    limits.failed(GithubException(404, {}, {}), call)  # it is there, and refuses
    assert limits.failed(error, call).after == 10


def test_limits_without_a_time_wait_longer_each_time():
    error = GithubException(429, {"message": "slow down"}, {})

    waits = [translate(error, GithubCall("read"), FailureTime(0.0, limits)).after for limits in (0, 1, 2, 3, 4, 50)]

    assert waits == [60, 120, 240, 480, 900, 900]


async def test_eight_writers_at_once_write_one_after_the_other(fake, tmp_path):
    hub = channel(fake, tmp_path, spacing=0.05)

    await asyncio.gather(*(hub.create(REPO, Draft(f"{n}", "", MARKER)) for n in range(8)))

    times = [one.at.timestamp() for one in asked(fake, "POST")]
    assert len(fake.issues(REPO)) == 8
    assert min(after - before for before, after in itertools.pairwise(times)) >= 0.05
    await hub.aclose()


async def test_more_creations_than_github_allows_are_later_without_a_request(fake, tmp_path):
    hub = channel(fake, tmp_path, creations=((2, 60.0), (500, 3600.0)))
    await hub.create(REPO, DRAFT)
    await hub.comment(FIRST, "a comment counts too")

    error = await refusal(hub.create(REPO, DRAFT))

    assert isinstance(error, Later)
    assert 55 < error.after <= 60
    assert len(asked(fake, "POST")) == 2
    assert (await hub.get(FIRST)).number == 1
    await hub.aclose()


def test_the_rate_limit_holds_in_every_window():
    limit, now, made = RateLimit(((80, 60.0), (500, 3600.0))), 0.0, []
    while now < 7200:
        if not limit.wait(now):
            limit.take(now)
            made.append(now)
        now += 0.5

    assert max(sum(1 for one in made if start <= one < start + 60) for start in made) == 80
    assert max(sum(1 for one in made if start <= one < start + 3600) for start in made) == 500


REFUSED = [
    pytest.param(lambda f: None, lambda h: h.create("org/none", DRAFT), "repository", id="no such repository"),
    pytest.param(lambda f: f.restrict(REPO, Access.NONE), CALLS["POST"], "repository", id="404"),
    pytest.param(lambda f: f.restrict(REPO, Access.FORBIDDEN), CALLS["POST"], "token", id="403"),
    pytest.param(lambda f: setattr(f.repository(REPO), "has_issues", False), CALLS["POST"], "repository", id="410"),
    pytest.param(lambda f: setattr(f.repository(REPO), "archived", True), CALLS["POST"], "repository", id="archived"),
    pytest.param(lambda f: f.rotate_token(), CALLS["POST"], "token", id="401"),
    pytest.param(lambda f: None, lambda h: h.create(REPO, Draft(" ", "", MARKER)), "title", id="422 empty title"),
    pytest.param(
        lambda f: None,
        lambda h: h.create(REPO, Draft("t", "", MARKER, ("x" * 51,))),
        "labels",
        id="422 long label",
    ),
    pytest.param(lambda f: f.person("bob").delete(REPO, 1), CALLS["GET"], "issue", id="410 deleted issue"),
    pytest.param(lambda f: f.person("bob").delete(REPO, 1), CALLS["PATCH"], "issue", id="410 deleted issue, edit"),
    pytest.param(lambda f: None, lambda h: h.get(IssueRef(REPO, 99, "")), "repository", id="404 issue"),
    pytest.param(lambda f: f.fail("POST", "", GithubFault(451, "Blocked")), CALLS["POST"], "repository", id="451"),
]


@pytest.mark.parametrize(("prepare", "call", "field"), REFUSED)
async def test_what_a_person_must_correct_is_refused_and_named(fake, hub, prepare, call, field):
    fake.person("bob").open(REPO, "an issue")
    token = fake.token
    prepare(fake)

    error = await refusal(call(hub))

    assert isinstance(error, Refused)
    assert error.field == field
    assert token not in error.message
    assert len(fake.requests) == 1
    assert len(fake.issues(REPO)) <= 1


async def test_an_unknown_assignee_is_left_out_and_the_body_says_so(fake, hub):
    made = await hub.create(REPO, Draft("t", "text", MARKER, ("gpu",), ("alice", "nobody")))

    assert [one.status for one in asked(fake, "POST")] == [422, 201]
    assert (made.assignees, made.labels) == ((), ("gpu",))
    assert made.body.removeprefix(fenced("text", MARKER)).startswith("\n\n> **Not assigned:** `alice`, `nobody`: ")
    assert len(fake.issues(REPO)) == 1


async def test_of_twelve_assignees_the_two_that_github_would_drop_are_named(hub):
    people = tuple(f"p{n}" for n in range(12))

    made = await hub.create(REPO, Draft("t", "text", MARKER, (), people))

    assert made.assignees == people[:10]
    assert "**Not assigned:** `p10`, `p11`: GitHub takes 10 people" in made.body


async def test_labels_that_github_drops_without_a_word_are_seen_in_the_answer(fake, hub):
    fake.restrict(REPO, Access.READ)

    made = await hub.create(REPO, DRAFT)

    assert (made.labels, made.assignees) == ((), ())


async def test_a_text_that_is_too_long_keeps_its_fence(hub):
    made = await hub.create(REPO, Draft("t" * 300, "f" * 70_000, MARKER))

    assert len(made.title) == 256
    assert made.body.startswith(fenced("fff", MARKER).partition("fff")[0] + "fff")
    assert made.body.endswith(END)
    assert 65_000 < len(made.body) <= 65_536


@pytest.mark.parametrize(("theirs", "room"), [(0, 64_000), (10_000, 55_000), (66_000, 0)])
async def test_an_issue_tells_how_much_room_users_left(hub, fake, theirs, room):
    made = await hub.create(REPO, DRAFT)
    fake.person("alice").edit(REPO, 1, body=made.body + "x" * theirs)

    issue = await hub.get(FIRST)

    assert room <= issue.room <= max(room, min(hub.room, 65_536 - theirs - 200))
    if issue.room:
        body = (await hub.change(issue, Edit("f" * issue.room, MARKER))).body
        assert len(body) <= 65_536
        assert body.endswith("x" * theirs)


async def test_a_note_about_assignees_survives_the_longest_body(hub):
    made = await hub.create(REPO, Draft("t", "b" * 70_000, MARKER, (), ("nobody",)))

    assert made.body.endswith("Please correct the assignees of the route.\n")
    assert len(made.body) <= 65_536


async def test_a_long_comment_is_cut(fake, hub):
    await hub.create(REPO, DRAFT)

    await hub.comment(FIRST, "c" * 70_000)

    (comment,) = fake.issues(REPO)[0].comments
    assert 65_000 < len(comment.body) <= 65_536
    assert comment.body.endswith("_(Cut here: GitHub takes no longer text.)_\n\n")


async def test_a_token_is_read_again_when_its_file_changes(fake, hub, tmp_path):
    await hub.create(REPO, DRAFT)
    (tmp_path / "token").write_text(fake.rotate_token())
    os.utime(tmp_path / "token", (1, 1))

    await hub.create(REPO, DRAFT)

    assert [one.status for one in fake.requests] == [201, 201]


async def test_a_token_that_changed_unseen_is_read_again_after_401(fake, hub, tmp_path):
    await hub.create(REPO, DRAFT)
    seen = (tmp_path / "token").stat()
    (tmp_path / "token").write_text(fake.rotate_token() + "\n")
    os.utime(tmp_path / "token", ns=(seen.st_atime_ns, seen.st_mtime_ns))

    await hub.create(REPO, DRAFT)

    assert [one.status for one in fake.requests] == [201, 401, 201]
    assert len(fake.issues(REPO)) == 2


async def test_a_token_file_that_is_away_for_a_moment_changes_nothing(hub, tmp_path):
    await hub.create(REPO, DRAFT)
    (tmp_path / "token").unlink()

    assert (await hub.get(FIRST)).number == 1


@pytest.mark.parametrize("content", [None, "", " \n"])
async def test_no_token_is_refused_without_a_request(fake, tmp_path, content):
    if content is not None:
        (tmp_path / "none").write_text(content)
    hub = GitHub(fake.url, GithubTokenFile(tmp_path / "none"), SYSTEM)

    error = await refusal(hub.create(REPO, DRAFT))

    assert isinstance(error, Refused)
    assert error.field == "token"
    assert str(tmp_path / "none") in error.message
    assert fake.requests == []
    await hub.aclose()


@pytest.mark.parametrize(
    "content", [b"ghp_hunter2\nghp_more", b"ghp_h\xc3\xa9unter2", b"ghp_\xffhunter2", b"a ghp_hunter2"]
)
async def test_more_than_a_token_is_refused_without_a_request_or_a_word_of_it(fake, hub, tmp_path, content):
    await hub.create(REPO, DRAFT)
    (tmp_path / "token").write_bytes(content)
    os.utime(tmp_path / "token", (1, 1))

    error = await refusal(hub.create(REPO, DRAFT))

    assert isinstance(error, Refused)
    assert error.field == "token"
    assert f"{tmp_path / 'token'} holds more than one word of ASCII" in error.message
    assert "unter2" not in told(error)
    assert len(fake.requests) == 1


def told(error):
    """All that a log could show of an error."""
    return "".join(traceback.format_exception(error)) + error.message


class Unchecked(GithubTokenFile):
    """A token that no header can hold."""

    token = "ghp_hunter2\nghp_more"


async def test_an_error_that_quotes_the_token_is_not_quoted(fake, tmp_path):
    hub = GitHub(fake.url, Unchecked(tmp_path / "none"), SYSTEM, spacing=0)

    error = await refusal(hub.get(FIRST))

    assert "InvalidHeader" in error.message
    assert "hunter2" not in told(error)
    await hub.aclose()


async def test_no_connection_is_later_even_for_a_creation(tmp_path):
    (tmp_path / "token").write_text("t")
    hub = GitHub("http://127.0.0.1:1/api/v3", GithubTokenFile(tmp_path / "token"), SYSTEM, spacing=0)

    assert isinstance(await refusal(hub.create(REPO, DRAFT)), Later)
    await hub.aclose()


def test_a_base_url_that_is_none_is_named_at_the_start(tmp_path):
    with pytest.raises(ValueError, match=r"https://, not 'api\.github\.com'"):
        GitHub("api.github.com", GithubTokenFile(tmp_path / "token"), SYSTEM)


async def test_addresses_of_another_host_are_refused_by_name(fake, hub):
    for number in range(101):
        fake.person("bob").open(REPO, f"{number}", labels=("gpu",))
    fake.fail("GET", ISSUES, GithubFault(foreign=True))

    error = await refusal(hub.find(REPO, "mark", "gpu", LONG_AGO))

    assert isinstance(error, Refused)
    assert error.field == "url"


async def test_find_lists_every_page_in_any_state_and_skips_pull_requests(fake, hub):
    bob = fake.person("bob")
    for number in range(1, 131):
        bob.open(REPO, f"{number}", "mark4711" if number in (3, 130) else "", labels=("gpu",))
    bob.open(REPO, "a pull request", "mark4711", labels=("gpu",), pull=True)
    bob.close(REPO, 3)

    found = await hub.find(REPO, "mark4711", "gpu", LONG_AGO)

    assert [(one.number, one.open) for one in found] == [(3, False), (130, True)]
    assert [one.query["per_page"] for one in fake.requests if "per_page" in one.query] == ["100", "100"]
    assert "/search/issues" not in {one.path for one in fake.requests}


async def test_find_searches_when_the_label_is_gone_and_sees_through_the_lag(fake, hub):
    await hub.create(REPO, DRAFT)
    fake.person("bob").unlabel(REPO, 1, "gpu")
    fake.lag(search=600)

    assert await hub.find(REPO, "mark4711", "gpu", LONG_AGO) == []
    fake.advance(601)
    assert [one.number for one in await hub.find(REPO, "mark4711", "gpu", LONG_AGO)] == [1]


async def test_a_search_that_gave_up_half_way_cannot_tell(fake, hub):
    fake.lag(gives_up=True)

    assert isinstance(await refusal(hub.find(REPO, "mark4711", "gpu", LONG_AGO)), Later)
    fake.person("bob").open(REPO, "t", "mark4711")
    assert len(await hub.find(REPO, "mark4711", "gpu", LONG_AGO)) == 1


async def test_find_takes_only_bodies_that_hold_the_marker_to_the_letter(fake, hub):
    fake.person("bob").open(REPO, "t", "some-mark here")

    assert await hub.find(REPO, "some-mark", "gpu", LONG_AGO) != []
    assert await hub.find(REPO, "some mark", "gpu", LONG_AGO) == []


async def test_since_means_the_same_in_every_time_zone(fake, hub):
    await hub.create(REPO, DRAFT)
    tokyo = (fake.now() - timedelta(minutes=1)).astimezone(timezone(timedelta(hours=9)))

    assert len(await hub.find(REPO, "mark4711", "gpu", tokyo)) == 1
    assert asked(fake, "GET")[1].query["since"].endswith("Z")
    assert "/search/issues" not in {one.path for one in fake.requests}


async def test_what_users_did_survives_our_writes(fake, hub):
    made = await hub.create(REPO, DRAFT)
    alice = fake.person("alice")
    alice.edit(REPO, 1, title="GPU 3 of gpu-17", body=f"before\n\n{made.body}\n\nafter")
    alice.label(REPO, 1, "rack-a")
    alice.assign(REPO, 1, "bob")

    issue = await hub.change(await hub.get(FIRST), Edit("new text", MARKER))
    labelled = await hub.change(issue, Relabel(("flapping",), ("gpu", "never-there")))
    issue = await hub.change(labelled, Close())

    assert (issue.title, issue.assignees) == ("GPU 3 of gpu-17", ("bob",))
    assert issue.body == f"before\n\n{fenced('new text', MARKER)}\n\nafter"
    assert set(issue.labels) == set(labelled.labels) == {"remediator/ticket", "rack-a", "flapping"}


async def test_a_text_that_the_issue_has_already_is_not_sent(fake, hub):
    made = await hub.create(REPO, DRAFT)

    assert await hub.change(made, Edit(DRAFT.text, MARKER)) == made
    assert asked(fake, "PATCH") == []


@pytest.mark.parametrize("reason", ["completed", "not_planned", "duplicate"])
async def test_who_closed_it_is_told_apart(fake, hub, reason):
    made = await hub.create(REPO, DRAFT)

    ours = await hub.change(made, Close())
    again = await hub.change(ours, Reopen())
    fake.person("alice").close(REPO, 1, reason)
    theirs = await hub.get(FIRST)

    assert (ours.open, ours.reason, ours.closed_by_user) == (False, "completed", False)
    assert (again.open, again.reason, again.closed_by_user) == (True, "reopened", False)
    assert (theirs.open, theirs.reason, theirs.closed_by_user) == (False, reason, True)
    assert await hub.find(REPO, "mark4711", "gpu", LONG_AGO) == [theirs]


async def test_a_duplicate_names_its_original(fake, hub):
    await hub.create(REPO, DRAFT)
    second = await hub.create(REPO, DRAFT)

    assert (await hub.change(second, Close(duplicate_of=1))).reason == "duplicate"
    assert fake.issues(REPO)[1].duplicate_of == 1


async def test_an_unchanged_issue_is_read_without_cost(fake, hub):
    await hub.create(REPO, DRAFT)
    first = await hub.get(FIRST)
    used = fake.limits.core.used

    assert await hub.get(FIRST) == first
    assert asked(fake, "GET")[-1].status == 304
    assert fake.limits.core.used == used
    fake.person("alice").edit(REPO, 1, body="news")
    assert (await hub.get(FIRST)).body == "news"


async def test_a_repository_that_was_renamed_is_found_under_its_new_name(fake, hub):
    await hub.create(REPO, DRAFT)
    fake.person("bob").open(REPO, "of another label")
    fake.person("bob").close(REPO, 1)
    fake.person("bob").rename(REPO, "org/new")

    issue = await hub.get(FIRST)
    made = await hub.create(REPO, DRAFT)
    found = await hub.find(REPO, "mark4711", "gpu", LONG_AGO)

    assert (issue.repository, issue.number, issue.url) == ("org/new", 1, f"{fake.web_url}/org/new/issues/1")
    assert (made.repository, made.number) == ("org/new", 3)
    assert [(one.repository, one.number) for one in found] == [("org/new", 1), ("org/new", 3)]
    assert "new" in (await hub.change(issue, NEW)).body


async def test_a_list_on_the_way_to_a_renamed_repository_would_lose_its_filters(fake, hub):
    for number in range(101):
        fake.person("bob").open(REPO, f"{number}", "mark4711" if number == 0 else "")
    fake.person("bob").rename(REPO, "org/new")

    assert [one.number for one in await hub.find(REPO, "mark4711", "gpu", LONG_AGO)] == [1]
    searched = next(one for one in fake.requests if one.path == "/search/issues")
    assert searched.query["q"].startswith("repo:org/new ")


WRITES = {
    "edit": lambda hub: hub.change(READ, NEW),
    "close": lambda hub: hub.change(READ, Close()),
    "comment": lambda hub: hub.comment(FIRST, "still broken"),
}


@pytest.mark.parametrize("write", WRITES)
async def test_a_write_to_the_former_name_of_a_repository_is_refused_not_unsure(fake, hub, write):
    await hub.create(REPO, DRAFT)
    fake.person("bob").rename(REPO, "org/new")

    error = await refusal(WRITES[write](hub))

    assert isinstance(error, Refused)
    assert error.field == "repository"
    assert error.message.endswith("org/repo#1: it was renamed or moved. Correct the routes")
    assert fake.issues("org/new")[0].comments == ()


async def test_what_pygithub_logs_is_a_line_of_ours_and_is_written_nowhere_else(fake, hub):
    await hub.create(REPO, DRAFT)
    fake.add("org/other")
    fake.person("bob").transfer(REPO, 1, "org/other")

    with capture_logs() as lines:
        await hub.get(FIRST)

    assert [(line["log_level"], line["logger"]) for line in lines] == [("info", "github.Requester")]
    assert lines[0]["event"].startswith("Following Github server redirection from /api/v3/repos/org/repo/issues/1 to ")
    theirs = logging.getLogger("github")
    assert logging.StreamHandler not in map(type, theirs.handlers)
    assert not theirs.propagate


async def test_an_issue_that_was_transferred_is_read_where_it_is_now(fake, hub):
    await hub.create(REPO, DRAFT)
    fake.add("org/other")
    fake.person("bob").open("org/other", "was there before")
    await hub.get(FIRST)
    fake.person("bob").transfer(REPO, 1, "org/other")

    issue = await hub.get(FIRST)

    assert (issue.repository, issue.number, issue.body) == ("org/other", 2, READ.body)
    assert (await hub.change(issue, Close())).open is False


@pytest.mark.parametrize(
    ("error", "once", "kind", "after"),
    [
        pytest.param(GithubException(403, {"message": "x"}, {"Retry-After": "9"}), True, Later, 9, id="seconds"),
        pytest.param(
            GithubException(429, {}, {"retry-after": "Thu, 01 Jan 1970 00:02:00 GMT"}), True, Later, 20, id="a date"
        ),
        pytest.param(GithubException(408, {}, {}), True, Unsure, None, id="408, creation"),
        pytest.param(GithubException(408, {}, {}), False, Later, 10, id="408, read"),
        pytest.param(GithubException(400, None, None), True, Refused, None, id="no body, no headers"),
        pytest.param(requests.ConnectTimeout(), True, Later, 10, id="never connected"),
        pytest.param(requests.ReadTimeout(), True, Unsure, None, id="no answer"),
        pytest.param(requests.exceptions.SSLError("bad"), True, Unsure, None, id="TLS broke"),
        pytest.param(AssertionError("other.host"), True, Unsure, None, id="another host, creation"),
        pytest.param(RuntimeError("redirected"), True, Refused, None, id="moved to another host"),
        pytest.param(KeyError("state"), False, Later, 10, id="an answer nobody understands"),
    ],
)
def test_errors_by_what_may_have_happened(error, once, kind, after):
    said = translate(error, GithubCall("do it", once=once), FailureTime(100.0))

    assert type(said) is kind
    assert getattr(said, "after", None) == after
