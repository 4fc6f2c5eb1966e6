"""Project boards (Projects v2) by GraphQL, which github.com and Enterprise Server share; for one thread."""

from typing import Any, NamedTuple

from github import GithubException, UnknownObjectException
from github.Requester import Requester

from remediator.tickets.channels.base import Refused
from remediator.tickets.channels.boards import Card, ProjectBoard

_PROJECT = """query($owner: String!, $number: Int!, $field: String!) {
  organization(login: $owner) { projectV2(number: $number) {
    id field(name: $field) { ... on ProjectV2SingleSelectField { id options { id name } } } } } }"""
_ADD = """mutation($project: ID!, $issue: ID!, $field: String!) {
  addProjectV2ItemById(input: {projectId: $project, contentId: $issue}) { item {
    id fieldValueByName(name: $field) { ... on ProjectV2ItemFieldSingleSelectValue { name } } } } }"""
_MOVE = """mutation($project: ID!, $item: ID!, $field: ID!, $option: String!) {
  updateProjectV2ItemFieldValue(input: {projectId: $project, itemId: $item, fieldId: $field,
    value: {singleSelectOptionId: $option}}) { projectV2Item { id } } }"""


class _Project(NamedTuple):
    """GitHub's own ids: of a project, of its field, and of each value of that."""

    id: str
    field: str
    options: dict[str, str]


class Projects:
    """Cards of boards."""

    def __init__(self, requester: Requester) -> None:
        self._requester = requester
        self._known: dict[ProjectBoard, _Project] = {}

    def card(self, board: ProjectBoard, issue: str) -> Card:
        """The card of the issue with this node id. One that is there already is not added again."""
        project = self._project(board)
        variables = {"project": project.id, "issue": issue, "field": board.field}
        item = self._ask(board, _ADD, variables)["addProjectV2ItemById"]["item"]
        return Card(item["id"], (item["fieldValueByName"] or {}).get("name", ""))

    def move(self, board: ProjectBoard, card: Card, column: str) -> None:
        """Give its field another value. Raises Refused where the field has no such value."""
        project = self._project(board)
        if column not in project.options:
            self._known.pop(board, None)  # a user may add it
            values = ", ".join(project.options)
            raise Refused(
                f"field {board.field} of project {_named(board)} has no value {column}, only {values}", "board"
            )
        option = project.options[column]
        variables = {"project": project.id, "item": card.id, "field": project.field, "option": option}
        self._ask(board, _MOVE, variables)

    def _project(self, board: ProjectBoard) -> _Project:
        if board not in self._known:
            variables = {"owner": board.owner, "number": board.number, "field": board.field}
            try:
                project = self._ask(board, _PROJECT, variables)["organization"]["projectV2"]
            except UnknownObjectException:
                project = None
            field = project and project["field"]
            if not field:
                remedy = "Correct board in the route, and let the token read and write projects of the organization"
                raise Refused(
                    f"no project {_named(board)} with a field {board.field} of single values. {remedy}", "board"
                )
            options = {option["name"]: option["id"] for option in field["options"]}
            self._known[board] = _Project(project["id"], field["id"], options)
        return self._known[board]

    def _ask(self, board: ProjectBoard, query: str, variables: dict[str, Any]) -> Any:
        """One question; where GitHub does not like it, the ids that we know may be old."""
        try:
            return self._requester.graphql_query(query, variables)[1]["data"]
        except GithubException:
            self._known.pop(board, None)
            raise


def _named(board: ProjectBoard) -> str:
    return f"{board.owner}/{board.number}"
