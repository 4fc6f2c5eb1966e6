"""Project boards, and their GraphQL: three operations, told apart by what they name. Tests hold them to its schema."""

import dataclasses
from dataclasses import dataclass
from typing import Any

from remediator_sim.github.handlers import NO_PERMISSION, GitHubState
from remediator_sim.github.request import GithubAnswer, GithubRequest
from remediator_sim.github.store import Access


@dataclass(slots=True)
class Project:
    """One board of an organization: its field, the values of that, and the column of each issue on it, by node id.

    `access`: what the token may do there; `unlisted`: node ids that REST's list does not show yet.
    """

    id: str
    field: str
    options: list[str]
    cards: dict[str, str] = dataclasses.field(default_factory=dict)
    access: Access = Access.WRITE
    unlisted: set[str] = dataclasses.field(default_factory=set)


def graphql(github: GitHubState, request: GithubRequest) -> GithubAnswer:
    """Answers 200 always, as GitHub does; what is wrong stands in `errors`."""
    query, variables = request.body["query"], request.body["variables"]
    for name, change in (("addProjectV2ItemById", _added), ("updateProjectV2ItemFieldValue", _moved)):
        if name in query:
            project = _by_id(github, variables["project"])
            if project.access is not Access.WRITE:
                return _refused({name: None}, "FORBIDDEN", NO_PERMISSION)
            return GithubAnswer(200, {"data": {name: change(project, variables)}})
    return _shown(github.projects.get((variables["owner"], variables["number"])), variables)


def _shown(project: Project | None, variables: dict[str, Any]) -> GithubAnswer:
    none = {"organization": {"projectV2": None}}
    if project is None or project.access is Access.NONE:
        message = f"Could not resolve to a ProjectV2 with the number {variables['number']}."
        return _refused(none, "NOT_FOUND", message)
    if project.access is Access.FORBIDDEN:
        return _refused(none, "FORBIDDEN", NO_PERMISSION)
    options = [{"id": f"O_{name}", "name": name} for name in project.options]
    known = {"id": f"F_{project.id}", "options": options} if variables["field"] == project.field else None
    return GithubAnswer(200, {"data": {"organization": {"projectV2": {"id": project.id, "field": known}}}})


def _refused(data: dict[str, Any], kind: str, message: str) -> GithubAnswer:
    errors = [{"type": kind, "path": list(data), "message": message}]
    return GithubAnswer(200, {"data": data, "errors": errors})


def _added(project: Project, variables: dict[str, str]) -> dict[str, Any]:
    column = project.cards.setdefault(variables["issue"], "")
    shown = {"id": f"ITEM_{variables['issue']}", "fieldValueByName": {"name": column} if column else None}
    return {"item": shown}


def _moved(project: Project, variables: dict[str, str]) -> dict[str, Any]:
    project.cards[variables["item"].removeprefix("ITEM_")] = variables["option"].removeprefix("O_")
    return {"projectV2Item": {"id": variables["item"]}}


def _by_id(github: GitHubState, number: str) -> Project:
    projects: dict[tuple[str, int], Project] = github.projects
    return next(project for project in projects.values() if project.id == number)
