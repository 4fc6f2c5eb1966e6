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

    `access`: what the token may do there; `unlisted`: node ids that REST's list does not show yet; `edition`: another
    one gives each value another id, as if all were made anew.
    """

    id: str
    field: str
    options: list[str]
    cards: dict[str, str] = dataclasses.field(default_factory=dict)
    access: Access = Access.WRITE
    unlisted: set[str] = dataclasses.field(default_factory=set)
    edition: int = 1

    @property
    def ids(self) -> dict[str, str]:
        """The id of each value."""
        return {name: f"O{self.edition}_{name}" for name in self.options}

    def put(self, node: str, value: str | None) -> bool:
        """Give a card the value with this id, None for none; False where there is no such value."""
        names = {number: name for name, number in self.ids.items()}
        if value is not None and value not in names:
            return False
        self.cards[node] = names[value] if value is not None else ""
        return True


def graphql(github: GitHubState, request: GithubRequest) -> GithubAnswer:
    """Answers 200 always, as GitHub does; what is wrong stands in `errors`."""
    query, variables = request.body["query"], request.body["variables"]
    for name, change in (("addProjectV2ItemById", _added), ("updateProjectV2ItemFieldValue", _moved)):
        if name in query:
            project = _by_id(github, variables["project"])
            if project.access is not Access.WRITE:
                return _refused({name: None}, "FORBIDDEN", NO_PERMISSION)
            data = change(project, variables)
            if data is None:
                return _refused({name: None}, "VALIDATION", "The single select option Id does not belong to the field")
            return GithubAnswer(200, {"data": {name: data}})
    return _shown(github.projects.get((variables["owner"], variables["number"])), variables)


def _shown(project: Project | None, variables: dict[str, Any]) -> GithubAnswer:
    none = {"organization": {"projectV2": None}}
    if project is None or project.access is Access.NONE:
        message = f"Could not resolve to a ProjectV2 with the number {variables['number']}."
        return _refused(none, "NOT_FOUND", message)
    if project.access is Access.FORBIDDEN:
        return _refused(none, "FORBIDDEN", NO_PERMISSION)
    options = [{"id": number, "name": name} for name, number in project.ids.items()]
    known = {"id": f"F_{project.id}", "options": options} if variables["field"] == project.field else None
    return GithubAnswer(200, {"data": {"organization": {"projectV2": {"id": project.id, "field": known}}}})


def _refused(data: dict[str, Any], kind: str, message: str) -> GithubAnswer:
    errors = [{"type": kind, "path": list(data), "message": message}]
    return GithubAnswer(200, {"data": data, "errors": errors})


def _added(project: Project, variables: dict[str, str]) -> dict[str, Any]:
    column = project.cards.setdefault(variables["issue"], "")
    shown = {"id": f"ITEM_{variables['issue']}", "fieldValueByName": {"name": column} if column else None}
    return {"item": shown}


def _moved(project: Project, variables: dict[str, str]) -> dict[str, Any] | None:
    put = project.put(variables["item"].removeprefix("ITEM_"), variables["option"])
    return {"projectV2Item": {"id": variables["item"]}} if put else None


def _by_id(github: GitHubState, number: str) -> Project:
    projects: dict[tuple[str, int], Project] = github.projects
    return next(project for project in projects.values() if project.id == number)
