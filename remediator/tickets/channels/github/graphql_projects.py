"""Project boards (Projects v2) by GraphQL, which Enterprise Server has; for one thread."""

from typing import Any, NamedTuple

from github import GithubException, UnknownObjectException
from github.Requester import Requester

from remediator.tickets.channels.base import Later
from remediator.tickets.channels.boards import Card, ProjectBoard
from remediator.tickets.channels.github.errors import already_there
from remediator.tickets.channels.github.projects import CardIssue, believed, named, no_project, option

AGAIN = 10.0
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


class GraphqlProjects:
    """Cards of boards, as `Projects` has them."""

    resource = "graphql"

    def __init__(self, requester: Requester) -> None:
        self._requester = requester
        self._known: dict[ProjectBoard, _Project] = {}

    def card(self, board: ProjectBoard, issue: CardIssue) -> Card:
        """The card of an issue. GitHub gives the one that is there, and refuses one of two who add it at once."""
        with believed(self._known, board):
            project = self._project(board)
            variables = {"project": project.id, "issue": issue.node_id, "field": board.field}
            try:
                item = self._ask(_ADD, variables)["addProjectV2ItemById"]["item"]
            except GithubException as error:
                if already_there(error):
                    raise Later(f"somebody else puts the issue on project {named(board)} just now", AGAIN) from None
                raise
            return Card(item["id"], (item["fieldValueByName"] or {}).get("name", ""))

    def move(self, board: ProjectBoard, card: Card, column: str) -> None:
        """Give its field another value. Raises Refused where the field has no such value."""
        with believed(self._known, board):
            project = self._project(board)
            chosen = option(board, project.options, column)
            variables = {"project": project.id, "item": card.id, "field": project.field, "option": chosen}
            self._ask(_MOVE, variables)

    def _project(self, board: ProjectBoard) -> _Project:
        if board not in self._known:
            variables = {"owner": board.owner, "number": board.number, "field": board.field}
            try:
                project = self._ask(_PROJECT, variables)["organization"]["projectV2"]
            except UnknownObjectException:
                project = None
            field = project and project["field"]
            if not field:
                raise no_project(board)
            options = {choice["name"]: choice["id"] for choice in field["options"]}
            self._known[board] = _Project(project["id"], field["id"], options)
        return self._known[board]

    def _ask(self, query: str, variables: dict[str, Any]) -> Any:
        return self._requester.graphql_query(query, variables)[1]["data"]
