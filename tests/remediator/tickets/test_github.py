"""The writer to GitHub, with the real PyGithub over HTTP, against the fake."""

import asyncio
import itertools
import os
import time
import traceback
from datetime import UTC, datetime, timedelta, timezone

import pytest
import requests
from github import GithubException

from remediator.tickets.channels.base import Draft, Later, Refused, TrackerError, Unsure
from remediator.tickets.channels.github import App, GitHub, TokenFile
from remediator.tickets.channels.github.budget import Budget
from remediator.tickets.channels.github.errors import Call, When, translate
from remediator.tickets.render.markdown import BEGIN, END
from remediator_sim.github import Access, FakeGitHub, Fault

REPO, ISSUES = "org/repo", "/repos/org/repo/issues$"
DRAFT = Draft("gpu-17: GPU lost", "text mark4711", ("gpu", "remediator/ticket"), ("alice",))
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.fixture
async def fake():
    """A fake that at the end has seen only what GitHub's description allows."""
    async with FakeGitHub([REPO], ["alice", "bob", *(f"p{n}" for n in range(12))]) as fake:
        yield fake
        assert fake.violations == []


@pytest.fixture
async def hub(fake, tmp_path):
    hub = tracker(fake, tmp_path)
    yield hub
    await hub.aclose()


def tracker(fake, tmp_path, **how):
    (tmp_path / "token").write_text(fake.token + "\n")
    return GitHub(fake.url, TokenFile(tmp_path / "token"), **({"spacing": 0.0, "timeout": 1} | how))


def asked(fake, *methods):
    return [one for one in fake.requests if one.method in methods]


async def refusal(awaitable):
    with pytest.raises(TrackerError) as caught:
        await awaitable
    return caught.value


async def test_an_issue_is_made_and_read_back(fake, hub):
    made = await hub.create(REPO, DRAFT)

    assert made == await hub.get(REPO, 1)
    assert (made.number, made.title, made.body, made.open, made.reason) == (1, DRAFT.title, DRAFT.body, True, "")
    assert (made.labels, made.assignees, made.closed_by_user) == (DRAFT.labels, DRAFT.assignees, False)
    assert made.url == f"{fake.web_url}/org/repo/issues/1"
    assert made.created == fake.issues(REPO)[0].created.replace(microsecond=0)


async def test_every_request_pins_the_version_of_the_api(fake, hub):
    await hub.create(REPO, DRAFT)
    await hub.find(REPO, "mark4711", "gpu", LONG_AGO)

    assert {one.headers["x-github-api-version"] for one in fake.requests} == {"2022-11-28"}


AMBIGUOUS = [
    pytest.param(Fault(502), False, id="502, not carried out"),
    pytest.param(Fault(502, carried_out=True), True, id="created but 502"),
    pytest.param(Fault(drop=True), False, id="connection dropped before"),
    pytest.param(Fault(drop=True, carried_out=True), True, id="created but connection dropped"),
    pytest.param(Fault(silent=True, carried_out=True), True, id="created but no answer in time"),
    pytest.param(Fault(200, text="<html>Please log in</html>", carried_out=True), True, id="a proxy's page"),
    pytest.param(Fault(201, text='{"number": 1,', carried_out=True), True, id="half an answer"),
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

    assert isinstance(await refusal(hub.comment(REPO, 1, "still broken")), Unsure)

    assert len(asked(fake, "POST")) == 2
    assert len(fake.issues(REPO)[0].comments) == done


async def test_a_read_is_repeated_after_5xx(fake, hub):
    await hub.create(REPO, DRAFT)
    fake.fail("GET", "/issues/1$", Fault(502), times=2)

    assert (await hub.get(REPO, 1)).number == 1
    assert [one.status for one in asked(fake, "GET")] == [502, 502, 200]


@pytest.mark.parametrize("fault", [Fault(502), Fault(503, headers={"retry-after": "30"}), Fault(drop=True)])
async def test_a_read_that_fails_for_ever_ends_soon_and_may_be_asked_again_later(fake, hub, fault):
    fake.fail("GET", "/issues/1$", fault, times=20)

    error = await refusal(hub.get(REPO, 1))

    assert isinstance(error, Later)
    assert error.after == (30 if fault.headers else 10)
    assert len(asked(fake, "GET")) == 4


@pytest.mark.parametrize("fault", [Fault(502), Fault(502, carried_out=True), Fault(drop=True), Fault(silent=True)])
async def test_an_edit_that_ends_ambiguously_is_harmless_to_repeat(fake, hub, fault):
    await hub.create(REPO, DRAFT)
    fake.fail("PATCH", "/issues/1$", fault)

    assert isinstance(await refusal(hub.edit(REPO, 1, body="new")), Later)
    assert len(asked(fake, "PATCH")) == 1
    assert (await hub.edit(REPO, 1, body="new")).body == "new"


async def test_a_page_of_a_proxy_is_not_taken_for_the_issue_as_it_was(fake, hub):
    await hub.create(REPO, DRAFT)
    await hub.get(REPO, 1)
    fake.fail("GET", "/issues/1$", Fault(200, text="<html>Please log in</html>"))

    assert isinstance(await refusal(hub.get(REPO, 1)), Later)
    assert (await hub.get(REPO, 1)).body == DRAFT.body


async def test_a_label_that_ends_ambiguously_is_harmless_to_repeat(fake, hub):
    await hub.create(REPO, DRAFT)
    fake.fail("POST", "/labels$", Fault(502, carried_out=True))

    assert isinstance(await refusal(hub.label(REPO, 1, ("flapping",), ())), Later)
    await hub.label(REPO, 1, ("flapping",), ())
    assert fake.issues(REPO)[0].labels == (*DRAFT.labels, "flapping")


CALLS = {
    "POST": lambda hub: hub.create(REPO, DRAFT),
    "PATCH": lambda hub: hub.edit(REPO, 1, body="new"),
    "GET": lambda hub: hub.get(REPO, 1),
}


@pytest.mark.parametrize("method", CALLS)
@pytest.mark.parametrize(
    ("fault", "after"),
    [
        pytest.param(Fault.secondary(retry_after=7), 7, id="403 with Retry-After"),
        pytest.param(Fault.secondary(), 60, id="403 that only says so"),
        pytest.param(Fault.secondary(status=429, retry_after=7), 7, id="429 with Retry-After"),
        pytest.param(Fault.secondary(status=429), 60, id="429 without"),
    ],
)
async def test_a_rate_limit_is_later_at_once_and_then_nothing_is_sent(fake, hub, method, fault, after):
    fake.fail(method, "/issues", fault)
    begun = time.monotonic()

    error = await refusal(CALLS[method](hub))

    assert isinstance(error, Later)
    assert error.after == after
    again = await refusal(hub.get(REPO, 1))
    assert isinstance(again, Later)
    assert after - 2 < again.after <= after
    assert len(fake.requests) == 1
    assert time.monotonic() - begun < 2


@pytest.mark.parametrize("status", [403, 429])
async def test_a_spent_quota_is_later_until_its_reset(fake, hub, status):
    fake.fail("GET", "/issues/1$", Fault.primary(reset=int(time.time()) + 3600, status=status))

    error = await refusal(hub.get(REPO, 1))

    assert isinstance(error, Later)
    assert 3590 < error.after < 3602


async def test_a_spent_search_does_not_hold_up_the_rest(fake, hub):
    await hub.create(REPO, DRAFT)
    fake.limits.search.limit = 0

    error = await refusal(hub.find(REPO, "mark4711", "other", LONG_AGO))

    assert isinstance(error, Later)
    assert 55 < error.after < 62
    assert (await hub.get(REPO, 1)).number == 1
    assert isinstance(await refusal(hub.find(REPO, "mark4711", "other", LONG_AGO)), Later)
    assert len([one for one in fake.requests if one.path == "/search/issues"]) == 1


def test_limits_without_a_time_wait_longer_each_time():
    error = GithubException(429, {"message": "slow down"}, {})

    waits = [translate(error, Call("read"), When(0.0, limits)).after for limits in (0, 1, 2, 50)]

    assert waits == [60, 120, 240, 3600]


async def test_eight_writers_at_once_write_one_after_the_other(fake, tmp_path):
    hub = tracker(fake, tmp_path, spacing=0.05)

    await asyncio.gather(*(hub.create(REPO, Draft(f"{n}", "")) for n in range(8)))

    times = [one.at.timestamp() for one in asked(fake, "POST")]
    assert len(fake.issues(REPO)) == 8
    assert min(after - before for before, after in itertools.pairwise(times)) >= 0.05
    await hub.aclose()


async def test_more_creations_than_github_allows_are_later_without_a_request(fake, tmp_path):
    hub = tracker(fake, tmp_path, creations=((2, 60.0), (500, 3600.0)))
    await hub.create(REPO, DRAFT)
    await hub.comment(REPO, 1, "a comment counts too")

    error = await refusal(hub.create(REPO, DRAFT))

    assert isinstance(error, Later)
    assert 55 < error.after <= 60
    assert len(asked(fake, "POST")) == 2
    assert (await hub.get(REPO, 1)).number == 1
    await hub.aclose()


def test_the_budget_holds_in_every_window():
    budget, now, made = Budget(((80, 60.0), (500, 3600.0))), 0.0, []
    while now < 7200:
        if not budget.wait(now):
            budget.take(now)
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
    pytest.param(lambda f: None, lambda h: h.create(REPO, Draft(" ", "")), "title", id="422 empty title"),
    pytest.param(lambda f: None, lambda h: h.create(REPO, Draft("t", "", ("x" * 51,))), "labels", id="422 long label"),
    pytest.param(lambda f: f.person("bob").delete(REPO, 1), CALLS["GET"], "issue", id="410 deleted issue"),
    pytest.param(lambda f: f.person("bob").delete(REPO, 1), CALLS["PATCH"], "issue", id="410 deleted issue, edit"),
    pytest.param(lambda f: None, lambda h: h.get(REPO, 99), "repository", id="404 issue"),
    pytest.param(lambda f: f.fail("POST", "", Fault(451, "Blocked")), CALLS["POST"], "repository", id="451"),
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
    made = await hub.create(REPO, Draft("t", "text", ("gpu",), ("alice", "nobody")))

    assert [one.status for one in asked(fake, "POST")] == [422, 201]
    assert (made.assignees, made.labels) == ((), ("gpu",))
    assert made.body.startswith("text\n\n> **Not assigned:** `alice`, `nobody`: ")
    assert len(fake.issues(REPO)) == 1


async def test_of_twelve_assignees_the_two_that_github_would_drop_are_named(hub):
    people = tuple(f"p{n}" for n in range(12))

    made = await hub.create(REPO, Draft("t", "text", (), people))

    assert made.assignees == people[:10]
    assert "**Not assigned:** `p10`, `p11`: GitHub takes 10 people" in made.body


async def test_labels_that_github_drops_without_a_word_are_seen_in_the_answer(fake, hub):
    fake.restrict(REPO, Access.READ)

    made = await hub.create(REPO, DRAFT)

    assert (made.labels, made.assignees) == ((), ())


@pytest.mark.parametrize("before", [0, 10, 70_000])
@pytest.mark.parametrize("after", [0, 70_000])
async def test_a_long_body_is_cut_around_the_fenced_part(hub, before, after):
    fence = f"{BEGIN}\n" + "f" * 40_000 + f"\n{END}"

    made = await hub.create(REPO, Draft("t" * 300, "b" * before + fence + "a" * after))

    assert len(made.title) == 256
    assert fence in made.body
    assert len(made.body) <= 65_536
    assert made.body.count("b") >= min(before, 25_000)


async def test_a_fenced_part_that_is_too_long_itself_keeps_its_marks(hub):
    made = await hub.create(REPO, Draft("t", BEGIN + "f" * 70_000 + END))

    assert made.body.startswith(BEGIN + "fff")
    assert made.body.endswith(END)
    assert 65_000 < len(made.body) <= 65_536


async def test_a_long_text_without_our_part_is_cut_at_its_end(hub):
    made = await hub.create(REPO, Draft("t", "b" * 70_000 + BEGIN))

    assert made.body.endswith("_(Cut here: GitHub takes no longer text.)_\n\n")
    assert 65_000 < len(made.body) <= 65_536


async def test_a_note_about_assignees_survives_the_longest_body(hub):
    made = await hub.create(REPO, Draft("t", "b" * 70_000, (), ("nobody",)))

    assert made.body.endswith("Please correct the assignees of the route.\n")
    assert len(made.body) <= 65_536


async def test_a_long_comment_is_cut(fake, hub):
    await hub.create(REPO, DRAFT)

    url = await hub.comment(REPO, 1, "c" * 70_000)

    (comment,) = fake.issues(REPO)[0].comments
    assert 65_000 < len(comment.body) <= 65_536
    assert url == f"{fake.web_url}/org/repo/issues/1#issuecomment-{comment.id}"


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

    assert (await hub.get(REPO, 1)).number == 1


@pytest.mark.parametrize("content", [None, "", " \n"])
async def test_no_token_is_refused_without_a_request(fake, tmp_path, content):
    if content is not None:
        (tmp_path / "none").write_text(content)
    hub = GitHub(fake.url, TokenFile(tmp_path / "none"))

    error = await refusal(hub.create(REPO, DRAFT))

    assert isinstance(error, Refused)
    assert error.field == "token"
    assert str(tmp_path / "none") in error.message
    assert fake.requests == []
    await hub.aclose()


@pytest.mark.parametrize("content", [b"ghp_secret\nghp_more", b"ghp_s\xc3\xa9cret", b"ghp_\xffsecret", b"a ghp_secret"])
async def test_more_than_a_token_is_refused_without_a_request_or_a_word_of_it(fake, hub, tmp_path, content):
    await hub.create(REPO, DRAFT)
    (tmp_path / "token").write_bytes(content)
    os.utime(tmp_path / "token", (1, 1))

    error = await refusal(hub.create(REPO, DRAFT))

    assert isinstance(error, Refused)
    assert error.field == "token"
    assert f"{tmp_path / 'token'} holds more than one word of ASCII" in error.message
    assert "cret" not in told(error)
    assert len(fake.requests) == 1


def told(error):
    """All that a log could show of an error."""
    return "".join(traceback.format_exception(error)) + error.message


class Unchecked(TokenFile):
    """A token that no header can hold."""

    token = "ghp_secret\nghp_more"


async def test_an_error_that_quotes_the_token_is_not_quoted(fake, tmp_path):
    hub = GitHub(fake.url, Unchecked(tmp_path / "none"), spacing=0)

    error = await refusal(hub.get(REPO, 1))

    assert "InvalidHeader" in error.message
    assert "secret" not in told(error)
    await hub.aclose()


async def test_an_app_asks_for_one_token_and_acts_with_it(fake, tmp_path):
    app_id, installation, key = fake.app
    (tmp_path / "key.pem").write_text(key)
    hub = GitHub(fake.url, App(app_id, installation, tmp_path / "key.pem"), spacing=0)

    await hub.create(REPO, DRAFT)
    await hub.get(REPO, 1)

    assert [one.path for one in fake.requests] == [
        f"/app/installations/{installation}/access_tokens",
        "/repos/org/repo/issues",
        "/repos/org/repo/issues/1",
    ]
    assert fake.requests[0].body == {"permissions": {"issues": "write", "metadata": "read"}}
    await hub.aclose()


async def test_no_connection_is_later_even_for_a_creation(tmp_path):
    (tmp_path / "token").write_text("t")
    hub = GitHub("http://127.0.0.1:1/api/v3", TokenFile(tmp_path / "token"), spacing=0)

    assert isinstance(await refusal(hub.create(REPO, DRAFT)), Later)
    await hub.aclose()


def test_a_base_url_that_is_none_is_named_at_the_start(tmp_path):
    with pytest.raises(ValueError, match=r"https://, not 'api\.github\.com'"):
        GitHub("api.github.com", TokenFile(tmp_path / "token"))


async def test_addresses_of_another_host_are_refused_by_name(fake, hub):
    for number in range(101):
        fake.person("bob").open(REPO, f"{number}", labels=("gpu",))
    fake.fail("GET", ISSUES, Fault(foreign=True))

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


async def test_what_people_did_survives_our_writes(fake, hub):
    await hub.create(REPO, DRAFT)
    alice = fake.person("alice")
    alice.edit(REPO, 1, title="GPU 3 of gpu-17")
    alice.label(REPO, 1, "rack-a")
    alice.assign(REPO, 1, "bob")

    await hub.edit(REPO, 1, body="new text")
    await hub.label(REPO, 1, ("flapping",), ("gpu", "never-there"))
    issue = await hub.close(REPO, 1, "completed")

    assert (issue.title, issue.body, issue.assignees) == ("GPU 3 of gpu-17", "new text", ("bob",))
    assert set(issue.labels) == {"remediator/ticket", "rack-a", "flapping"}


async def test_an_edit_of_the_title_alone_leaves_the_body(fake, hub):
    await hub.create(REPO, DRAFT)

    assert (await hub.edit(REPO, 1, title="other")).body == DRAFT.body
    assert asked(fake, "PATCH")[0].body == {"title": "other"}


@pytest.mark.parametrize("reason", ["completed", "not_planned", "duplicate"])
async def test_who_closed_it_is_told_apart(fake, hub, reason):
    await hub.create(REPO, DRAFT)

    ours = await hub.close(REPO, 1, reason)
    again = await hub.reopen(REPO, 1)
    fake.person("alice").close(REPO, 1, reason)
    theirs = await hub.get(REPO, 1)

    assert (ours.open, ours.reason, ours.closed_by_user) == (False, reason, False)
    assert (again.open, again.reason, again.closed_by_user) == (True, "reopened", False)
    assert (theirs.open, theirs.reason, theirs.closed_by_user) == (False, reason, True)
    assert await hub.find(REPO, "mark4711", "gpu", LONG_AGO) == [theirs]


async def test_a_duplicate_names_its_original(fake, hub):
    await hub.create(REPO, DRAFT)
    await hub.create(REPO, DRAFT)

    assert (await hub.close(REPO, 2, "duplicate", 1)).reason == "duplicate"
    assert fake.issues(REPO)[1].duplicate_of == 1


async def test_an_unchanged_issue_is_read_without_cost(fake, hub):
    await hub.create(REPO, DRAFT)
    first = await hub.get(REPO, 1)
    used = fake.limits.core.used

    assert await hub.get(REPO, 1) == first
    assert asked(fake, "GET")[-1].status == 304
    assert fake.limits.core.used == used
    fake.person("alice").edit(REPO, 1, body="news")
    assert (await hub.get(REPO, 1)).body == "news"


async def test_a_repository_that_was_renamed_is_found_under_its_new_name(fake, hub):
    await hub.create(REPO, DRAFT)
    fake.person("bob").open(REPO, "of another label")
    fake.person("bob").close(REPO, 1)
    fake.person("bob").rename(REPO, "org/new")

    issue = await hub.get(REPO, 1)
    made = await hub.create(REPO, DRAFT)
    found = await hub.find(REPO, "mark4711", "gpu", LONG_AGO)

    assert (issue.repository, issue.number, issue.url) == ("org/new", 1, f"{fake.web_url}/org/new/issues/1")
    assert (made.repository, made.number) == ("org/new", 3)
    assert [(one.repository, one.number) for one in found] == [("org/new", 1), ("org/new", 3)]
    assert (await hub.edit(issue.repository, 1, body="new")).body == "new"


async def test_a_list_on_the_way_to_a_renamed_repository_would_lose_its_filters(fake, hub):
    for number in range(101):
        fake.person("bob").open(REPO, f"{number}", "mark4711" if number == 0 else "")
    fake.person("bob").rename(REPO, "org/new")

    assert [one.number for one in await hub.find(REPO, "mark4711", "gpu", LONG_AGO)] == [1]
    searched = next(one for one in fake.requests if one.path == "/search/issues")
    assert searched.query["q"].startswith("repo:org/new ")


WRITES = {
    "edit": lambda hub: hub.edit(REPO, 1, body="new"),
    "close": lambda hub: hub.close(REPO, 1, "completed"),
    "comment": lambda hub: hub.comment(REPO, 1, "still broken"),
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


async def test_an_issue_that_was_transferred_is_read_where_it_is_now(fake, hub):
    await hub.create(REPO, DRAFT)
    fake.add("org/other")
    fake.person("bob").open("org/other", "was there before")
    await hub.get(REPO, 1)
    fake.person("bob").transfer(REPO, 1, "org/other")

    issue = await hub.get(REPO, 1)

    assert (issue.repository, issue.number, issue.body) == ("org/other", 2, DRAFT.body)
    assert (await hub.close(issue.repository, issue.number, "completed")).open is False


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
    said = translate(error, Call("do it", once=once), When(100.0))

    assert type(said) is kind
    assert getattr(said, "after", None) == after
