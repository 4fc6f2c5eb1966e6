"""Project boards (Projects v2): which of GitHub's two APIs has them, and what both say alike."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlsplit

from github import GithubException

from remediator.tickets.channels.base import ChannelError, Refused
from remediator.tickets.channels.boards import Card, ProjectBoard


class CardIssue(NamedTuple):
    """The issue that a card stands for, by GitHub's own ids, and the repository where it is now."""

    id: int
    node_id: str
    repository: str


class Projects(Protocol):
    """Cards of boards; for one thread. Raises what PyGithub and requests raise, Refused and Later."""

    resource: str  # GitHub's name of the rate limit that its requests count against

    def card(self, board: ProjectBoard, issue: CardIssue) -> Card:
        """The card of an issue. One that is there already is not added again."""
        ...

    def move(self, board: ProjectBoard, card: Card, column: str) -> None:
        """Give its field another value. Raises Refused where the field has no such value."""
        ...


def has_rest_projects(base_url: str) -> bool:
    """Whether the GitHub of this URL has boards in its REST API: github.com, also with data residency (*.ghe.com).

    Enterprise Server has them in GraphQL, and so has whatever stands behind a name of your own.
    """
    host = urlsplit(base_url).hostname or ""
    return host == "api.github.com" or host.endswith(".ghe.com")


@contextmanager
def believed(known: dict[ProjectBoard, Any], board: ProjectBoard) -> Iterator[None]:
    """Where GitHub does not like it, or a value is not there, what is known of the board may be old."""
    try:
        yield
    except (GithubException, ChannelError):
        known.pop(board, None)
        raise


def named(board: ProjectBoard) -> str:
    """As a user writes it: org/7."""
    return f"{board.owner}/{board.number}"


def no_project(board: ProjectBoard) -> Refused:
    """Not there, or not to be seen, or without such a field."""
    remedy = "Correct board in the route, and let the token read and write projects of the organization"
    return Refused(f"no project {named(board)} with a field {board.field} of single values. {remedy}", "board")


def option(board: ProjectBoard, options: dict[str, str], column: str) -> str:
    """GitHub's id of a value of the field. Raises Refused where the field has no such value."""
    if column not in options:
        known = ", ".join(options)
        raise Refused(f"field {board.field} of project {named(board)} has no value {column}, only {known}", "board")
    return options[column]
