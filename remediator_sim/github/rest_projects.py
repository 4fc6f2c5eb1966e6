"""Project boards by REST, as github.com has them; Enterprise Server answers 404."""

from typing import Any

from remediator_sim.github.bodies import stamp
from remediator_sim.github.handlers import NO_PERMISSION, GitHubState
from remediator_sim.github.projects import Project
from remediator_sim.github.refusal import Refusal, invalid, not_found
from remediator_sim.github.request import GithubAnswer, GithubRequest, cursor_page
from remediator_sim.github.store import Access, Issue

TITLE, SELECT = 1, 2  # the ids of the two fields that a board has
ALREADY = "Content already exists in this project"  # as people get it for what is on the board; no document says so


def fields(github: GitHubState, request: GithubRequest) -> GithubAnswer:
    project = _project(github, request)
    selected = {"options": [_option(project, name) for name in project.options]}
    every = [_field(github, request, TITLE, "Title", "title")]
    every.append(_field(github, request, SELECT, project.field, "single_select") | selected)
    return _listed(github, request, every)


def items(github: GitHubState, request: GithubRequest) -> GithubAnswer:
    """The cards of a board. Of the filters only those by repository and kind are known, and words of the title."""
    project, wanted = _project(github, request), request.query.get("q", "").split()
    listed = (issue for issue in _issues(github, project) if f"I_{issue.id}" not in project.unlisted)
    shown = [issue for issue in listed if all(_fits(issue, word) for word in wanted)]
    return _listed(github, request, [_item(github, request, project, issue) for issue in shown])


def add(github: GitHubState, request: GithubRequest) -> GithubAnswer:
    project, body = _project(github, request, write=True), request.body
    issue = github.store.by_id(body["id"]) if "id" in body else None
    if "number" in body and (home := f"{body['owner']}/{body['repo']}") in github.store.repositories:
        issue = github.store.issue(home, body["number"])
    if issue is None:
        raise not_found()
    if (node := f"I_{issue.id}") in project.cards:
        raise Refusal(422, ALREADY)
    project.cards[node] = ""
    return GithubAnswer(201, _bare(github, request, issue) | {"content": github.bodies.issue(issue)})


def item(github: GitHubState, request: GithubRequest) -> GithubAnswer:
    project = _project(github, request)
    return GithubAnswer(200, _item(github, request, project, _card(github, request, project)))


def move(github: GitHubState, request: GithubRequest) -> GithubAnswer:
    project = _project(github, request, write=True)
    issue = _card(github, request, project)
    for change in request.body["fields"]:
        if change["id"] != SELECT:
            raise invalid("fields", "invalid", value=change["id"], resource="ProjectV2Item")
        if not project.put(f"I_{issue.id}", change["value"]):
            raise invalid("value", "invalid", value=change["value"], resource="ProjectV2Item")
    return GithubAnswer(200, _item(github, request, project, issue))


def _project(github: GitHubState, request: GithubRequest, *, write: bool = False) -> Project:
    key = request.parts["org"], int(request.parts["project"])
    project: Project | None = github.projects.get(key)
    if project is None or project.access is Access.NONE or github.enterprise:
        raise not_found()
    if project.access is Access.FORBIDDEN or (write and project.access is Access.READ):
        raise Refusal(403, NO_PERMISSION)
    return project


def _card(github: GitHubState, request: GithubRequest, project: Project) -> Issue:
    """The issue of the card that a request names."""
    issue = next((issue for issue in _issues(github, project) if _number(issue) == int(request.parts["item"])), None)
    if issue is None:
        raise not_found()
    return issue


def _issues(github: GitHubState, project: Project) -> list[Issue]:
    """The issues that have a card; that of a deleted one is gone."""
    known = (github.store.by_id(int(node.removeprefix("I_"))) for node in project.cards)
    return [issue for issue in known if issue is not None]


def _number(issue: Issue) -> int:
    """The id of its card."""
    return issue.id * 10 + 3


def _fits(issue: Issue, word: str) -> bool:
    kind, _, value = word.partition(":")
    known = {"repo": value.lower() == issue.repository.lower(), "is": value == "issue"}
    return known.get(kind, word.lower() in issue.title.lower())


def _listed(github: GitHubState, request: GithubRequest, every: list[Any]) -> GithubAnswer:
    shown, headers = cursor_page(request, every, github.api + request.path)
    return GithubAnswer(200, shown, headers)


def _url(github: GitHubState, request: GithubRequest) -> str:
    return f"{github.api}/orgs/{request.parts['org']}/projectsV2/{request.parts['project']}"


def _field(github: GitHubState, request: GithubRequest, number: int, name: str, kind: str) -> dict[str, Any]:
    known = {"id": number, "node_id": f"F_{number}", "name": name, "data_type": kind}
    return known | {"project_url": _url(github, request), "created_at": _BEGAN, "updated_at": _BEGAN}


def _option(project: Project, name: str) -> dict[str, Any]:
    return {"id": project.ids[name], "name": _text(name), "description": _text(""), "color": "GRAY"}


def _text(raw: str) -> dict[str, str]:
    return {"raw": raw, "html": raw}


def _bare(github: GitHubState, request: GithubRequest, issue: Issue) -> dict[str, Any]:
    number, url = _number(issue), _url(github, request)
    return {
        "id": number,
        "node_id": f"PVTI_{number}",
        "project_url": url,
        "item_url": f"{url}/items/{number}",
        "content_type": "Issue",
        "creator": github.bodies.user(github.store.bot),
        "created_at": stamp(issue.created),
        "updated_at": stamp(issue.updated),
        "archived_at": None,
    }


def _item(github: GitHubState, request: GithubRequest, project: Project, issue: Issue) -> dict[str, Any]:
    """A card with the fields that are asked for; with its title, where none are."""
    column = project.cards[f"I_{issue.id}"]
    title = {"id": TITLE, "name": "Title", "data_type": "title", "value": _text(issue.title)}
    select = {"id": SELECT, "name": project.field, "data_type": "single_select"}
    select |= {"value": _option(project, column) if column else None}
    asked = request.query.get("fields", str(TITLE)).split(",")
    shown = [field for field in (title, select) if str(field["id"]) in asked]
    return _bare(github, request, issue) | {"content": github.bodies.issue(issue), "fields": shown}


_BEGAN = "2026-01-01T00:00:00Z"
