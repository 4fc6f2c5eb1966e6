"""Project boards (Projects v2) by REST, which github.com has; for one thread.

GitHub refuses to add what is on the board, and does not say which card that is; its list may show a card late. So the
ids of cards are remembered, and the list is read only for a card that somebody else has put there.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode

from github import GithubException, UnknownObjectException
from github.Requester import Requester

from remediator.tickets.channels.base import ChannelError, Later, Refused
from remediator.tickets.channels.boards import Card, ProjectBoard
from remediator.tickets.channels.github.answers import checked, listed
from remediator.tickets.channels.github.errors import already_there
from remediator.tickets.channels.github.projects import CardIssue, believed, named, no_project, option

PER_PAGE, PAGES = 100, 30  # of the cards of one repository; a board with more is read no further
KEPT = 10_000  # cards whose ids are remembered
LATE, TRIES = 30.0, 3  # GitHub's list may be behind: so long, and so often, before a user hears of it
_NEXT = re.compile(r'<([^>]+)>;\s*rel="next"')
_Key = tuple[str, int, int]  # owner, number, issue


class _SelectField(NamedTuple):
    """GitHub's own ids: of the field that moves, and of each value of that."""

    id: int
    options: dict[str, str]


class RestProjects:
    """Cards of boards, as `Projects` has them."""

    resource = "core"

    def __init__(self, requester: Requester) -> None:
        self._requester = requester
        self._known: dict[ProjectBoard, _SelectField] = {}
        self._cards: dict[_Key, int] = {}
        self._unseen: Counter[_Key] = Counter()

    def card(self, board: ProjectBoard, issue: CardIssue) -> Card:
        """The card of an issue; it is put there unless it is there. Raises Later where GitHub does not show it yet."""
        with believed(self._known, board):
            field, key = self._field(board), (board.owner, board.number, issue.id)
            item = self._read(board, field, key)
            if item is None:
                self._put(board, issue, key)
                item = self._read(board, field, key)
            if item is None:
                raise self._not_shown(board, key)
            self._unseen.pop(key, None)
            return Card(str(self._cards[key]), value_of(item, field.id))

    def move(self, board: ProjectBoard, card: Card, column: str) -> None:
        """Give its field another value. Raises Refused where the field has no such value."""
        with believed(self._known, board):
            field = self._field(board)
            wanted = {"fields": [{"id": field.id, "value": option(board, field.options, column)}]}
            checked(self._ask("PATCH", f"{_path(board)}/items/{card.id}", wanted), "id")

    def _field(self, board: ProjectBoard) -> _SelectField:
        if board not in self._known:
            try:
                fields = list(self._pages(f"{_path(board)}/fields?per_page={PER_PAGE}"))
            except UnknownObjectException:
                fields = []
            known = [field for field in fields if (field["name"], field["data_type"]) == (board.field, "single_select")]
            if not known:
                raise no_project(board)
            options = {choice["name"]["raw"]: choice["id"] for choice in known[0]["options"]}
            self._known[board] = _SelectField(known[0]["id"], options)
        return self._known[board]

    def _read(self, board: ProjectBoard, field: _SelectField, key: _Key) -> Any:
        """The card as it is now; None where we know none, or it is there no more."""
        if key not in self._cards:
            return None
        try:
            path = f"{_path(board)}/items/{self._cards[key]}?fields={field.id}"
            return checked(self._ask("GET", path), "id")
        except UnknownObjectException:
            return None

    def _put(self, board: ProjectBoard, issue: CardIssue, key: _Key) -> None:
        """Add the card, and learn its id. Two who do this at once get one card: GitHub refuses the second."""
        try:
            made = self._ask("POST", f"{_path(board)}/items", {"type": "Issue", "id": issue.id})
        except GithubException as error:
            if not already_there(error):
                raise
            self._look(board, issue.repository)
        else:
            self._learn({key: int(checked(made, "id")["id"])})

    def _look(self, board: ProjectBoard, repository: str) -> None:
        """Learn the ids of all cards of a repository."""
        query = urlencode({"q": f"repo:{repository} is:issue", "per_page": PER_PAGE})
        for item in self._pages(f"{_path(board)}/items?{query}"):
            if issue := (item.get("content") or {}).get("id"):
                self._learn({(board.owner, board.number, issue): int(item["id"])})

    def _learn(self, cards: Mapping[_Key, int]) -> None:
        self._cards |= cards
        while len(self._cards) > KEPT:
            del self._cards[next(iter(self._cards))]

    def _not_shown(self, board: ProjectBoard, key: _Key) -> ChannelError:
        self._unseen[key] += 1
        text = f"GitHub says that the issue is on project {named(board)}, and does not show its card"
        if self._unseen[key] <= TRIES:
            return Later(text, LATE)
        return Refused(f"{text}. If it is archived there, restore it", "board")

    def _pages(self, path: str) -> Iterator[Any]:
        for _ in range(PAGES):
            headers, answer = self._requester.requestJsonAndCheck("GET", path)
            yield from listed(answer)
            following = _NEXT.search({name.lower(): value for name, value in headers.items()}.get("link", ""))
            if following is None:
                return
            path = following[1]

    def _ask(self, method: str, path: str, wanted: Mapping[str, Any] | None = None) -> Any:
        return self._requester.requestJsonAndCheck(method, path, input=wanted)[1]


def value_of(item: Mapping[str, Any], wanted: int) -> str:
    """The value that a card has in a field of single values; "" for none."""
    chosen = next((field.get("value") for field in item.get("fields") or () if field["id"] == wanted), None)
    return str(chosen["name"]["raw"]) if chosen else ""


def _path(board: ProjectBoard) -> str:
    return f"/orgs/{board.owner}/projectsV2/{board.number}"
