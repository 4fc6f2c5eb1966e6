"""What carries tickets to people: a channel with seven verbs, and its errors."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from types import MappingProxyType
from typing import Protocol

from remediator.core.ticket import IssueRef


class Visibility(Enum):
    """Who may read what is written in a repository; UNKNOWN where the channel does not say."""

    PRIVATE = "private"
    PUBLIC = "public"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Marker:
    """What tells our issues apart: `key` one subject of one cluster, `opened` one of its issues."""

    key: str
    opened: datetime

    @property
    def searched(self) -> str:
        """What every issue of the subject holds: plain words, since a search knows no others."""
        return f"remediator ticket {self.key}"

    @property
    def whole(self) -> str:
        """What only this issue holds."""
        return f"{self.searched} {self.opened:%Y%m%dT%H%M%SZ}"


@dataclass(frozen=True, slots=True)
class Issue:
    """One issue as the channel has it now. `created` is aware UTC, whole seconds."""

    repository: str  # where it is; for GitHub owner/name
    number: int
    url: str  # for a user's browser
    title: str
    body: str  # all of its text, with what users wrote
    room: int  # how many characters our part of the text may have
    open: bool
    reason: str  # "" | completed | not_planned | duplicate | reopened
    closed_by_user: bool  # closed, and by somebody else than us
    labels: tuple[str, ...]
    assignees: tuple[str, ...]
    created: datetime
    milestone: str = ""

    @property
    def ref(self) -> IssueRef:
        """What a Ticket remembers of it."""
        return IssueRef(self.repository, self.number, self.url)


@dataclass(frozen=True, slots=True)
class Draft:
    """An issue to be created. A title or a text that is too long for the channel is cut.

    `kept_up`: we change its text later, and it says so.
    """

    title: str
    text: str
    marker: Marker
    labels: tuple[str, ...] = ()
    assignees: tuple[str, ...] = ()
    milestone: str = ""  # its title
    kept_up: bool = True


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace our part of the text; what users wrote stays."""

    text: str
    marker: Marker


@dataclass(frozen=True, slots=True)
class Relabel:
    """Add and remove labels one by one, so that those of users stay."""

    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Complete:
    """Add labels and assignees, and set the milestone: what an issue could not have when it was created."""

    labels: tuple[str, ...] = ()
    assignees: tuple[str, ...] = ()
    milestone: str = ""


@dataclass(frozen=True, slots=True)
class Close:
    """Close as completed, or as a duplicate of the issue with this number in the same repository."""

    duplicate_of: int | None = None


@dataclass(frozen=True, slots=True)
class Reopen:
    """Open again what was closed."""


Change = Edit | Relabel | Complete | Close | Reopen
VERBS: Mapping[type, str] = MappingProxyType(
    {Edit: "edit", Relabel: "label", Complete: "complete", Close: "close", Reopen: "reopen"}
)


class ChannelError(Exception):
    """The channel did not do what was asked; `message` is for a user."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Later(ChannelError):
    """Not carried out for certain, or harmless to repeat: try again `after` seconds from now, not sooner."""

    def __init__(self, message: str, after: float) -> None:
        super().__init__(message)
        self.after = after


class Unsure(ChannelError):
    """A create or a comment may or may not have been carried out: look before you repeat it."""


class Refused(ChannelError):
    """Repeating is useless until a user corrects `field`: repository, assignees, labels, milestone, token ("" where
    nobody knows).

    Of an issue that was deleted the field is "issue".
    """

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class PublicRepository(Refused):
    """Everybody could read what was to be written, and no route confirms that."""


class VisibilityUnknown(Later):
    """Nobody could say who would read what was to be written, so nothing was."""


class Channel(Protocol):
    """Where issues live. Every call raises Later, Unsure (create and comment only) or Refused, and nothing else.

    `room` is how many characters our part of the text of a new issue may have. What every channel must do is tested by
    tests/remediator/tickets/test_channel.py.
    """

    room: int

    async def create(self, repository: str, draft: Draft) -> Issue:
        """Open one issue. Never sent twice."""
        ...

    async def get(self, ref: IssueRef) -> Issue:
        """One issue as it is now, and where: what was renamed or moved has another repository, maybe another number."""
        ...

    async def find(self, repository: str, marker: str, label: str, since: datetime) -> list[Issue]:
        """Issues in any state whose body holds `marker`, oldest first: by listing those with `label`, then by search.

        `since` is aware; issues not touched after it may be missing. So may be one made in the last minutes.
        """
        ...

    async def change(self, issue: Issue, change: Change) -> Issue:
        """Change an issue that was read just now; what the change does not name is left alone."""
        ...

    async def comment(self, issue: IssueRef, text: str) -> None:
        """Add a comment. Never sent twice."""
        ...

    async def visibility(self, repository: str) -> Visibility:
        """Who may read what is written there, as it is now."""
        ...

    async def aclose(self) -> None:
        """Let what is under way end, drop what waits, and give the connections back."""
        ...
