"""Project boards by GraphQL: three operations, told apart by what they name. Tests hold them to GitHub's schema."""

import dataclasses
from dataclasses import dataclass
from typing import Any

from remediator_sim.github.handlers import GitHubState
from remediator_sim.github.request import GithubAnswer, GithubRequest


@dataclass(slots=True)
class Project:
    """One board of an organization: its field, the values of that, and the column of each issue on it, by node id."""

    id: str
    field: str
    options: list[str]
    cards: dict[str, str] = dataclasses.field(default_factory=dict)


def graphql(github: GitHubState, request: GithubRequest) -> GithubAnswer:
    """Answers 200 always, as GitHub does; what is wrong stands in `errors`."""
    query, variables = request.body["query"], request.body["variables"]
    if "addProjectV2ItemById" in query:
        return _answer({"addProjectV2ItemById": {"item": _added(github, variables)}})
    if "updateProjectV2ItemFieldValue" in query:
        return _answer({"updateProjectV2ItemFieldValue": {"projectV2Item": _moved(github, variables)}})
    project = github.projects.get((variables["owner"], variables["number"]))
    if project is None:
        message = f"Could not resolve to a ProjectV2 with the number {variables['number']}."
        none, path = {"organization": {"projectV2": None}}, ["organization", "projectV2"]
        return GithubAnswer(200, {"data": none, "errors": [{"type": "NOT_FOUND", "path": path, "message": message}]})
    options = [{"id": f"O_{name}", "name": name} for name in project.options]
    known = {"id": f"F_{project.id}", "options": options} if variables["field"] == project.field else None
    return _answer({"organization": {"projectV2": {"id": project.id, "field": known}}})


def _answer(data: dict[str, Any]) -> GithubAnswer:
    return GithubAnswer(200, {"data": data})


def _added(github: GitHubState, variables: dict[str, str]) -> dict[str, Any]:
    project = _by_id(github, variables["project"])
    column = project.cards.setdefault(variables["issue"], "")
    return {"id": f"ITEM_{variables['issue']}", "fieldValueByName": {"name": column} if column else None}


def _moved(github: GitHubState, variables: dict[str, str]) -> dict[str, Any]:
    project = _by_id(github, variables["project"])
    project.cards[variables["item"].removeprefix("ITEM_")] = variables["option"].removeprefix("O_")
    return {"id": variables["item"]}


def _by_id(github: GitHubState, number: str) -> Project:
    projects: dict[tuple[str, int], Project] = github.projects
    return next(project for project in projects.values() if project.id == number)
