"""Each path of the fake is one of GitHub's, and its bodies and queries are those that GitHub describes there."""

import re
from urllib.parse import urlencode

import pytest

from remediator_sim.github import MemoryGitHub, operations
from remediator_sim.github.operations import NotDescribed, find
from remediator_sim.github.refusal import Refusal
from remediator_sim.github.routes import ROUTES, Route

ISSUES = "/repos/org/repo/issues"
DESCRIBED = [route for route in ROUTES if route.described]


def models(written: str) -> set[str]:
    """The names in a type, each as a list where it is one: those of `list[A | B]` are `list[A]` and `list[B]`."""
    if many := re.fullmatch(r"list\[(.*)\]", written):
        return {f"list[{name}]" for name in models(many[1])}
    bare = re.sub(r"^Union\[(.*)\]$", r"\1", written)
    return {name.strip() for name in re.split(r"[,|]", bare) if name.strip()}


@pytest.mark.parametrize("route", DESCRIBED, ids=lambda route: f"{route.method} {route.described}")
def test_a_path_asks_and_answers_with_the_models_that_github_has_there(route: Route) -> None:
    operation = find(route.method, route.described)
    for ours, theirs in ((route.asks, operation.asks), (route.answers, operation.answers)):
        assert models(ours) <= models(theirs), f"{ours} is not {theirs}"
        assert bool(ours) is bool(theirs)
    refusals = {status: model for status, model in operation.refusals.items() if status < 500}
    assert {status: Refusal(status, "no").model for status in refusals} == refusals


def test_all_paths_of_the_fake_but_graphql_are_described() -> None:
    assert len(DESCRIBED) == len(ROUTES) - 1
    with pytest.raises(NotDescribed, match="problems"):
        find("GET", "/repos/{}/{}/problems")
    with pytest.raises(NotDescribed, match="PUT"):
        find("PUT", "/repos/{}/{}/issues")


@pytest.mark.parametrize(
    ("query", "wrong"),
    [
        pytest.param({"state": "all", "sort": "created", "direction": "asc", "labels": "a,b"}, "", id="right"),
        pytest.param({"since": "2026-01-01T00:00:00Z", "per_page": "100", "page": "2"}, "", id="a time and numbers"),
        pytest.param({"state": "opened"}, "state=opened", id="a word that GitHub does not know"),
        pytest.param({"label": "gpu"}, "label=gpu", id="a name that GitHub would ignore, and so list all issues"),
        pytest.param({"since": "yesterday"}, "since=yesterday", id="no time"),
        pytest.param({"since": "2026-01-01T00:00:00"}, "since=2026-01-01T00:00:00", id="a time of no zone"),
        pytest.param({"per_page": "many"}, "per_page=many", id="no number"),
    ],
)
def test_a_query_is_noted_where_it_has_what_the_description_does_not_allow(query: dict[str, str], wrong: str) -> None:
    hub = MemoryGitHub(["org/repo"])
    sent = {"authorization": f"token {hub.token}", "x-github-api-version": "2022-11-28"}
    hub.serve("GET", f"/api/v3{ISSUES}?{urlencode(query)}", sent, b"")
    asked = f"GET {ISSUES}: {wrong} in the query, which the description does not allow"
    assert hub.violations == ([asked] if wrong else [])


def test_without_the_description_nothing_of_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "find", None)
    hub = MemoryGitHub(["org/repo"], described=False)
    sent = {"authorization": f"token {hub.token}", "x-github-api-version": "2022-11-28"}
    assert hub.serve("GET", f"/api/v3{ISSUES}?state=opened", sent, b"").status == 422
