"""The fake GitHub itself: what it takes, what it refuses and how it lags, over plain HTTP."""

import asyncio
import subprocess
import sys
from contextlib import asynccontextmanager

import aiohttp
import pytest

from remediator_sim.github import Access, FakeGitHub, GithubFault
from remediator_sim.github.bodies import Bodies
from remediator_sim.github.search import matching
from remediator_sim.github.validate import all_errors, shape_errors
from tests.harness.waiting import until

REPO, ISSUES = "org/repo", "/repos/org/repo/issues"


class Client:
    """Asks the fake as any program would: `status, body, headers`."""

    def __init__(self, fake, session):
        self.fake, self._session = fake, session

    async def __call__(self, method, path, body=None, *, raw=None, headers=None):
        sent = {"authorization": f"token {self.fake.token}", "x-github-api-version": "2022-11-28", **(headers or {})}
        given = {"data": raw} if raw is not None else {"json": body} if body is not None else {}
        async with self._session.request(method, self.fake.url + path, headers=sent, **given) as answer:
            return answer.status, await answer.json() if await answer.read() else None, answer.headers


@asynccontextmanager
async def running(**how):
    async with FakeGitHub([REPO], ["alice", "bob"], **how) as fake, aiohttp.ClientSession() as session:
        yield fake, Client(fake, session)


@pytest.fixture
async def fake():
    async with running() as (_, client):
        yield client


@pytest.mark.parametrize(
    ("body", "status", "noted"),
    [
        pytest.param({"title": "t"}, 201, "", id="right"),
        pytest.param({}, 422, "title: Field required", id="no title"),
        pytest.param({"title": "t", "labels": "gpu"}, 422, "labels", id="labels are no list"),
        pytest.param({"title": "t", "labels": [5]}, 422, "labels.", id="a label that is a number"),
        pytest.param({"title": "t", "body": 5}, 422, "body", id="body is a number"),
        pytest.param(
            {"title": "t", "lables": ["gpu"]}, 201, "lables: Extra inputs", id="GitHub ignores a typo, we note it"
        ),
        pytest.param({"title": "t", "labels": None}, 422, "labels: null", id="labels are null"),
        pytest.param({"title": "t", "assignee": None}, 201, "", id="a field that may be null"),
        pytest.param([], 422, "an object", id="not an object"),
    ],
)
async def test_bodies_are_held_against_githubs_description(fake, body, status, noted):
    assert (await fake("POST", ISSUES, body))[0] == status

    assert bool(fake.fake.violations) == bool(noted)
    assert not noted or any(noted in one for one in fake.fake.violations)
    assert len(fake.fake.issues(REPO)) == (status == 201)


async def test_what_is_not_json_is_400(fake):
    status, body, _ = await fake("POST", ISSUES, raw="{")

    assert (status, body["message"]) == (400, "Problems parsing JSON")
    assert len(fake.fake.violations) == 1


@pytest.mark.parametrize("body", [{"state": "done"}, {"state_reason": "fixed"}, {"labels": None}])
async def test_an_edit_outside_the_description_changes_nothing(fake, body):
    await fake("POST", ISSUES, {"title": "t"})

    assert (await fake("PATCH", ISSUES + "/1", {"title": "new", **body}))[0] == 422
    assert fake.fake.issues(REPO)[0].title == "t"
    assert fake.fake.violations[0].startswith("PATCH /repos/org/repo/issues/1: ")


async def test_a_request_without_the_version_of_the_api_is_noted(fake):
    await fake("GET", "/rate_limit", headers={"x-github-api-version": "2026-03-10"})

    assert fake.fake.violations == ["GET /rate_limit: X-GitHub-Api-Version is 2026-03-10, not 2022-11-28"]


async def test_an_answer_outside_the_description_raises_at_the_end(monkeypatch):
    right = Bodies.comment
    monkeypatch.setattr(Bodies, "comment", lambda *given: right(*given) | {"body": 5, "colour": "red"})

    async def talk():
        async with running() as (_, client):
            await client("POST", ISSUES, {"title": "t"})
            await client("POST", ISSUES + "/1/comments", {"body": "b"})

    with pytest.raises(AssertionError, match=r"(?s)IssueComment body.*: Input .*IssueComment colour: Extra"):
        await talk()


def test_the_description_is_strict_about_types_and_names():
    right = b'{"message": "m", "documentation_url": "u"}'

    assert all_errors("ValidationError", right) == []
    assert len(shape_errors("ValidationError", b'{"message": 1, "documentation_url": "u"}')) == 1
    assert shape_errors("ValidationError", right[:-1] + b', "more": 1}') == []
    assert len(all_errors("ValidationError", right[:-1] + b', "more": 1}')) == 1


@pytest.mark.slow
def test_the_models_load_without_githubs_client():
    """And leave a whole githubkit to whoever wants one."""
    code = (
        "import sys; from remediator_sim.github.validate import adapter; adapter('Issue');"
        "assert 'githubkit' not in sys.modules and 'hishel' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("body", "field", "code"),
    [
        ({"title": " "}, "title", "missing_field"),
        ({"title": "t" * 257}, "title", "custom"),
        ({"title": "t", "body": "b" * 65_537}, "body", "custom"),
        ({"title": "t", "assignees": ["alice", "nobody"]}, "assignees", "invalid"),
        ({"title": "t", "labels": ["x" * 51]}, "name", "custom"),
    ],
)
async def test_what_github_refuses_by_field(fake, body, field, code):
    status, answer, _ = await fake("POST", ISSUES, body)

    assert (status, answer["message"]) == (422, "Validation Failed")
    assert [(one["field"], one["code"]) for one in answer["errors"]] == [(field, code)]
    assert fake.fake.violations == []


@pytest.mark.parametrize("body", [{"title": "t" * 256}, {"title": "t", "body": "b" * 65_536}, {"title": 5}])
async def test_what_is_just_within_the_limits_is_taken(fake, body):
    assert (await fake("POST", ISSUES, body))[0] == 201


@pytest.mark.parametrize(
    ("prepare", "method", "path", "status", "message"),
    [
        (lambda f: None, "GET", "/repos/org/none/issues", 404, "Not Found"),
        (lambda f: None, "GET", ISSUES + "/9", 404, "Not Found"),
        (lambda f: None, "GET", "/nowhere", 404, "Not Found"),
        (lambda f: f.restrict(REPO, Access.NONE), "GET", ISSUES, 404, "Not Found"),
        (lambda f: f.restrict(REPO, Access.FORBIDDEN), "GET", ISSUES, 403, "Resource not accessible"),
        (lambda f: setattr(f.repository(REPO), "has_issues", False), "GET", ISSUES, 410, "Issues has been disabled"),
        (lambda f: f.person("bob").delete(REPO, 1), "GET", ISSUES + "/1", 410, "This issue was deleted"),
        (lambda f: None, "DELETE", ISSUES + "/1/labels/none", 404, "Label does not exist"),
        (lambda f: f.restrict(REPO, Access.READ), "DELETE", ISSUES + "/1/labels/none", 403, "Must have admin rights"),
        (lambda f: f.fail("GET", "", GithubFault(502)), "GET", ISSUES, 502, "Server Error"),
    ],
)
async def test_refusals(fake, prepare, method, path, status, message):
    fake.fake.person("bob").open(REPO, "t")
    prepare(fake.fake)

    found, body, _ = await fake(method, path)

    assert found == status
    assert body["message"].startswith(message)


async def test_only_the_token_in_force_is_taken(fake):
    assert (await fake("GET", "/user"))[1]["login"] == "remediator[bot]"
    before = f"token {fake.fake.token}"
    fake.fake.rotate_token()

    assert (await fake("GET", "/user", headers={"authorization": before}))[0] == 401
    assert (await fake("GET", "/user"))[0] == 200


async def test_every_kind_of_answer_passes_githubs_description(fake):
    alice = fake.fake.person("alice")
    await fake("POST", ISSUES, {"title": "t", "body": "b", "labels": ["gpu", {"name": "x"}], "assignees": ["alice"]})
    await fake("POST", ISSUES, {"title": "u"})
    await fake("POST", ISSUES + "/1/comments", {"body": "c"})
    await fake("POST", ISSUES + "/1/labels", ["y"])
    await fake("POST", ISSUES + "/1/labels", {"labels": ["z"]})
    await fake("DELETE", ISSUES + "/1/labels/kind/none")
    await fake("POST", ISSUES + "/1/assignees", {"assignees": ["bob", "nobody"]})
    await fake("DELETE", ISSUES + "/1/assignees", {"assignees": ["alice"]})
    await fake("POST", "/repos/org/repo/labels", {"name": "new", "color": "ff0000"})
    number = (await fake("GET", ISSUES + "/1"))[1]["id"]
    duplicate = {"state": "closed", "state_reason": "duplicate", "duplicate_issue_id": number}
    await fake("PATCH", ISSUES + "/2", duplicate)
    await fake("PATCH", ISSUES + "/1", {"title": "v", "state": "closed"})
    alice.reopen(REPO, 1)
    alice.open(REPO, "a pull request", pull=True)
    for path in (*("", "/1", "/1/comments", "/1/timeline", "/1/labels", "?state=all"), "/2/timeline"):
        assert (await fake("GET", ISSUES + path))[0] == 200, path
    paths = ("", "/labels", "/assignees", "/assignees/alice")
    for path in (*("/repos/org/repo" + one for one in paths), "/rate_limit", "/user", "/search/issues?q=is:issue"):
        assert (await fake("GET", path))[0] in (200, 204), path

    assert fake.fake.violations == fake.fake.broken == []
    timeline = [one["event"] for one in (await fake("GET", ISSUES + "/1/timeline"))[1]]
    assert timeline == [
        *("labeled", "labeled", "assigned", "commented", "labeled", "labeled"),
        *("assigned", "unassigned", "renamed", "closed", "reopened"),
    ]


async def test_lists_filter_sort_and_turn_pages(fake):
    bob = fake.fake.person("bob")
    for number in range(1, 8):
        bob.open(REPO, f"{number}", labels=("gpu", "Odd") if number % 2 else ("gpu",))
        fake.fake.advance(60)
    bob.close(REPO, 3)
    since = fake.fake.issues(REPO)[4].created.strftime("%Y-%m-%dT%H:%M:%SZ")

    async def numbers(query):
        return [one["number"] for one in (await fake("GET", f"{ISSUES}?{query}"))[1]]

    assert await numbers("") == [7, 6, 5, 4, 2, 1]
    assert await numbers("state=closed") == [3]
    assert await numbers("state=all&direction=asc&labels=gpu,odd") == [1, 3, 5, 7]
    assert await numbers("state=all&sort=updated") == [3, 7, 6, 5, 4, 2, 1]
    assert await numbers(f"since={since}") == [7, 6, 5]
    assert await numbers("creator=alice") == []
    _, page, headers = await fake("GET", f"{ISSUES}?state=all&per_page=3&page=2")
    assert [one["number"] for one in page] == [4, 3, 2]
    at = f"{fake.fake.url}{ISSUES}?state=all&per_page=3&page="
    assert headers["link"] == (f'<{at}1>; rel="prev", <{at}3>; rel="next", <{at}1>; rel="first", <{at}3>; rel="last"')


async def test_lists_leave_out_who_closed_an_issue(fake):
    fake.fake.person("bob").open(REPO, "t")
    fake.fake.person("alice").close(REPO, 1)

    assert "closed_by" not in (await fake("GET", ISSUES + "?state=all"))[1][0]
    assert (await fake("GET", ISSUES + "/1"))[1]["closed_by"]["login"] == "alice"


async def test_lists_and_search_lag_but_the_issue_itself_does_not(fake):
    fake.fake.lag(search=600, listing=60)
    await fake("POST", ISSUES, {"title": "mark4711"})

    async def seen():
        listed, hits = await fake("GET", ISSUES), await fake("GET", "/search/issues?q=mark4711")
        return len(listed[1]), hits[1]["total_count"]

    assert (await fake("GET", ISSUES + "/1"))[0] == 200
    assert await seen() == (0, 0)
    fake.fake.advance(61)
    assert await seen() == (1, 0)
    fake.fake.person("bob").edit(REPO, 1, title="other")
    fake.fake.advance(540)
    assert await seen() == (1, 1)
    fake.fake.advance(61)
    assert await seen() == (1, 0)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ('"begin gpu-17"', [1]),
        ("gpu 17", [1, 2]),
        ('"gpu 18"', []),
        ("in:title GPU", [1, 2]),
        ("in:body is:issue repo:org/repo MARK4711", [1]),
        ("mark471", []),
        ("is:pr", [2]),
        ("label:gpu", [1]),
        ("author:bob state:closed", [2]),
        ("repo:org/none gpu", []),
    ],
)
async def test_search(fake, query, found):
    fake.fake.person("alice").open(REPO, "GPU 17", "<!-- begin gpu-17 mark4711 -->", labels=("gpu",))
    fake.fake.person("bob").open(REPO, "gpu-17", pull=True)
    fake.fake.person("bob").close(REPO, 2)

    assert [one.number for one in matching(query, fake.fake.issues(REPO))] == found


@pytest.mark.parametrize("query", ["", "x" * 257, "sort:created gpu"])
async def test_a_search_that_github_would_not_take_is_422(fake, query):
    assert (await fake("GET", f"/search/issues?q={query}"))[0] == 422


async def test_the_quotas_end_and_come_back(fake):
    fake.fake.limits.core.limit, fake.fake.limits.search.limit = 3, 1
    assert (await fake("GET", "/search/issues?q=x"))[2]["x-ratelimit-remaining"] == "0"
    assert (await fake("GET", "/search/issues?q=x"))[2]["x-ratelimit-resource"] == "search"

    statuses = [(await fake("GET", ISSUES))[0] for _ in range(4)]
    assert statuses == [200, 200, 200, 403]
    assert (await fake("GET", "/rate_limit"))[1]["resources"]["core"]["remaining"] == 0
    fake.fake.advance(3601)
    assert (await fake("GET", ISSUES))[0] == 200


async def test_too_many_creations_meet_the_secondary_limit(fake):
    fake.fake.limits.creations = ((2, 60.0), (3, 3600.0))
    await fake("POST", ISSUES, {"title": "t"})
    await fake("POST", ISSUES + "/1/comments", {"body": "b"})

    status, body, headers = await fake("POST", ISSUES, {"title": "t"})
    assert (status, len(fake.fake.issues(REPO))) == (403, 1)
    assert body["message"].startswith("You have exceeded a secondary rate limit")
    assert 55 <= int(headers["retry-after"]) <= 60
    fake.fake.advance(61)
    assert (await fake("POST", ISSUES, {"title": "t"}))[0] == 201
    fake.fake.advance(61)
    assert int((await fake("POST", ISSUES, {"title": "t"}))[2]["retry-after"]) > 3400


async def test_who_has_it_already_gets_304_for_nothing(fake):
    await fake("POST", ISSUES, {"title": "t"})
    tag = (await fake("GET", ISSUES + "/1"))[2]["etag"]
    used = fake.fake.limits.core.used

    assert (await fake("GET", ISSUES + "/1", headers={"if-none-match": tag}))[:2] == (304, None)
    assert fake.fake.limits.core.used == used
    fake.fake.person("bob").comment(REPO, 1, "news")
    assert (await fake("GET", ISSUES + "/1", headers={"if-none-match": tag}))[0] == 200


@pytest.mark.parametrize("carried_out", [True, False])
@pytest.mark.parametrize("how", [{"status": 502}, {"drop": True}])
async def test_ambiguous_failures_tell_the_caller_nothing(fake, how, carried_out):
    fake.fake.fail("POST", "/issues$", GithubFault(**how, carried_out=carried_out))

    if "drop" in how:
        with pytest.raises(aiohttp.ClientError):
            await fake("POST", ISSUES, {"title": "t"})
    else:
        assert (await fake("POST", ISSUES, {"title": "t"}))[0] == 502

    assert len(fake.fake.issues(REPO)) == carried_out
    assert [one.status for one in fake.fake.requests] == [how.get("status", 0)]
    assert (await fake("POST", ISSUES, {"title": "t"}))[0] == 201


async def test_silence_ends_with_the_fake():
    async with running() as (fake, client):
        fake.fail("GET", "", GithubFault(silent=True))
        waiting = asyncio.create_task(client("GET", "/user"))
        await until(lambda: fake.requests)
    with pytest.raises(aiohttp.ClientError):
        await waiting


async def test_labels_are_one_in_any_case_and_closing_twice_is_once(fake):
    await fake("POST", ISSUES, {"title": "t", "labels": ["GPU"]})
    await fake("POST", ISSUES + "/1/labels", {"labels": ["gpu"]})
    await fake("PATCH", ISSUES + "/1", {"state": "closed", "state_reason": "not_planned"})
    await fake("PATCH", ISSUES + "/1", {"state": "closed", "state_reason": "completed"})

    (issue,) = fake.fake.issues(REPO)
    assert (issue.labels, issue.reason) == (("GPU",), "not_planned")
    assert [one.kind for one in issue.events] == ["labeled", "closed"]


async def page(fake, path):
    async with aiohttp.ClientSession() as session, session.get(fake.fake.web_url + path) as answer:
        return answer.status, await answer.text(), answer.headers


async def test_a_person_reads_an_issue_in_a_browser(fake):
    body = "<!-- hidden -->\n## Timeline\n\n| when | what |\n|---|---|\n| 03:14 | XID 79 |\n\n- one\n"
    await fake("POST", ISSUES, {"title": "GPU lost", "body": body, "labels": ["gpu"]})
    fake.fake.person("alice").comment(REPO, 1, "looking at `gpu-17`")
    fake.fake.person("alice").close(REPO, 1, "not_planned")

    status, text, _ = await page(fake, "/org/repo/issues/1")

    assert status == 200
    for shown in (
        "<h2>Timeline</h2>",
        "<td>XID 79</td>",
        "<li>one</li>",
        "<code>gpu-17</code>",
        "Closed as not planned",
    ):
        assert shown in text
    assert "hidden" not in text
    assert '<a href="/org/repo/issues/1">GPU lost</a>' in (await page(fake, "/org/repo/issues"))[1]
    assert (await page(fake, "/org/repo/issues/2"))[0] == (await page(fake, "/elsewhere"))[0] == 404


async def test_a_person_sees_a_board_with_its_cards_in_columns_and_the_milestone_of_an_issue(fake):
    fake.fake.person("alice").open(REPO, "<GPU> lost")
    fake.fake.person("alice").plan(REPO, 1, fake.fake.person("alice").open_milestone(REPO, "2026-Q4"))
    project = fake.fake.project("org", 7, "Status", "Todo", "Done")
    issue = fake.fake.issues(REPO)[0]

    project.cards[f"I_{issue.id}"] = "Done"
    status, text, _ = await page(fake, "/orgs/org/projects/7")

    assert status == 200
    assert [text.count(f"<h2>{name} ") for name in ("Todo", "Done", "No Status")] == [1, 1, 0]
    assert text.index('<a href="/org/repo/issues/1">&lt;GPU&gt; lost</a>') > text.index("<h2>Done ")
    assert "milestone 2026-Q4" in (await page(fake, "/org/repo/issues/1"))[1]
    assert '<a href="/orgs/org/projects/7">' in (await page(fake, "/"))[1]
    assert (await page(fake, "/orgs/org/projects/8"))[0] == 404


async def test_pages_escape_everything_and_fold_what_folds(fake):
    hostile = "<script>alert(1)</script> [x](javascript:alert(2)) <img src=x onerror=alert(3)>"
    body = f"{hostile}\n\n<details><summary>more <b>bold</b></summary>\n\n| a |\n|---|\n| 1 |\n\n</details>\n"
    fake.fake.person("bob").open(REPO, hostile, body, labels=(hostile[:40],))
    fake.fake.person("bob").comment(REPO, 1, hostile)

    for path in ("/org/repo/issues/1", "/org/repo/issues"):
        _, text, headers = await page(fake, path)
        assert not any(tag in text for tag in ("<script", "<img", "<b>bold", 'href="javascript'))
        assert "default-src 'none'" in headers["content-security-policy"]
    text = (await page(fake, "/org/repo/issues/1"))[1]
    assert "<details>" in text
    assert "<summary>more &lt;b&gt;bold&lt;/b&gt;</summary>" in text
    assert "<td>1</td>" in text
