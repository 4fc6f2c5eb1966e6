"""Boards on which issues are cards, for channels that have them."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, runtime_checkable

from remediator.core.ticket import IssueRef


class BoardPlace(StrEnum):
    """Where an issue stands, as the routes file names it."""

    WAITING = "waiting"
    REPAIRING = "repairing"
    PERSON = "person"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class ProjectBoard:
    """One project of an organization, the field that moves, and its value for each place."""

    owner: str
    number: int
    field: str = "Status"
    waiting: str = "Todo"
    repairing: str = "In Progress"
    person: str = "In Progress"
    done: str = "Done"

    def column(self, place: BoardPlace) -> str:
        """The value of the field that stands for a place."""
        column: str = getattr(self, place.value)
        return column


@dataclass(frozen=True, slots=True)
class Card:
    """One issue on a board. `column` is "" where the field has no value."""

    id: str
    column: str


@runtime_checkable
class Boards(Protocol):
    """Puts issues on boards and moves them. Every call raises Later or Refused, and nothing else."""

    async def card(self, board: ProjectBoard, issue: IssueRef) -> Card:
        """The card of an issue as it is now, put on the board unless it is there. Harmless to repeat."""
        ...

    async def move(self, board: ProjectBoard, card: Card, column: str) -> None:
        """Move a card that was read just now. Harmless to repeat."""
        ...
