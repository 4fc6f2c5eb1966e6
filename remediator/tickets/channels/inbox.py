"""What users write below issues, for channels from which commands are taken."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, runtime_checkable

from remediator.core.ticket import IssueRef


@dataclass(frozen=True, slots=True)
class Comment:
    """One comment below an issue. `author_id` stays a person's own when a login is given to another one."""

    repository: str
    issue: int  # its number
    id: int
    url: str
    author: str  # "" where the account is gone
    author_id: int
    program: bool  # written by an App or a bot
    text: str
    created: datetime
    edited: bool


@runtime_checkable
class Inbox(Protocol):
    """Reads comments and answers who wrote them. Every call raises Later, Unsure or Refused, and nothing else."""

    async def comments(self, repository: str, since: datetime) -> list[Comment]:
        """All comments in a repository that were made or changed since, oldest first. New ones may be missing."""
        ...

    async def may_write(self, comment: Comment) -> bool:
        """Whether its author has write access to the repository now. Raises Later where nobody can tell."""
        ...

    async def opened_by(self, issue: IssueRef) -> str:
        """Who opened an issue: of our issues, we ourselves."""
        ...

    async def react(self, comment: Comment) -> bool:
        """Show at the comment that it was read; False where that was shown already. Harmless to repeat."""
        ...

    async def assign(self, issue: IssueRef, login: str) -> bool:
        """Assign somebody, too; False where the tracker does not take them. Harmless to repeat."""
        ...
