"""What a tracker of issues can do, and what it says no with. `github.py` is one."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Issue:
    """One issue as the tracker has it now. `created` is aware UTC, whole seconds."""

    repository: str  # owner/name
    number: int
    url: str  # for a person's browser
    title: str
    body: str
    open: bool
    reason: str  # "" | completed | not_planned | duplicate | reopened
    closed_by_user: bool  # closed, and by somebody else than us
    labels: tuple[str, ...]
    assignees: tuple[str, ...]
    created: datetime


@dataclass(frozen=True, slots=True)
class Draft:
    """An issue to be. Title and body may be longer than the tracker takes: they are cut."""

    title: str
    body: str
    labels: tuple[str, ...] = ()
    assignees: tuple[str, ...] = ()


class TrackerError(Exception):
    """The tracker did not do what was asked; `message` is for a person."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Later(TrackerError):
    """Not carried out for certain, or harmless to repeat: try again `after` seconds from now, not sooner."""

    def __init__(self, message: str, after: float) -> None:
        super().__init__(message)
        self.after = after


class Unsure(TrackerError):
    """A create or a comment may or may not have been carried out: look before you repeat it."""


class Refused(TrackerError):
    """Repeating is useless until a person corrects `field`: repository, assignees, labels, token ("" if not known).

    Of an issue that was deleted the field is "issue".
    """

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class Tracker(Protocol):
    """Where issues live. Every call raises Later, Unsure (create and comment only) or Refused, and nothing else.

    `repository` is owner/name.
    """

    async def create(self, repository: str, draft: Draft) -> Issue:
        """Open one issue. Never sent twice."""
        ...

    async def get(self, repository: str, number: int) -> Issue:
        """One issue as it is now, and where: what was renamed or moved has another repository, maybe another number."""
        ...

    async def find(self, repository: str, marker: str, label: str, since: datetime) -> list[Issue]:
        """Issues of any state whose body holds `marker`, oldest first: by listing those with `label`, then by search.

        `since` is aware; issues not touched after it may be missing. So may be one made in the last minutes.
        """
        ...

    async def edit(self, repository: str, number: int, *, title: str | None = None, body: str | None = None) -> Issue:
        """Replace the title, the body or both; the rest is left alone."""
        ...

    async def close(self, repository: str, number: int, reason: str, duplicate_of: int | None = None) -> Issue:
        """Close for `reason`: completed, not_planned, or duplicate of the issue `duplicate_of` beside it."""
        ...

    async def reopen(self, repository: str, number: int) -> Issue:
        """Open again what was closed."""
        ...

    async def comment(self, repository: str, number: int, text: str) -> str:
        """Add a comment and return its url. Never sent twice."""
        ...

    async def label(self, repository: str, number: int, add: tuple[str, ...], remove: tuple[str, ...]) -> None:
        """Add and remove labels one by one, so that those of people stay."""
        ...
