"""The channel to GitHub: PyGithub in one thread of its own, because PyGithub is not thread-safe.

Only reads are repeated automatically, and nothing sleeps until a rate limit ends: the caller gets the time to try
again.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

import github

from remediator.clock import Clock
from remediator.core.ticket import IssueRef
from remediator.tickets.channels.base import (
    VERBS,
    Change,
    ChannelError,
    Close,
    Complete,
    Draft,
    Edit,
    Issue,
    Later,
    Refused,
    Relabel,
    Reopen,
    Visibility,
)
from remediator.tickets.channels.boards import Card, ProjectBoard
from remediator.tickets.channels.github import logs, text
from remediator.tickets.channels.github.api import Api
from remediator.tickets.channels.github.credentials import Credentials
from remediator.tickets.channels.github.errors import GithubCall
from remediator.tickets.channels.github.projects import named
from remediator.tickets.channels.github.rate_limit import CREATIONS, RateLimits
from remediator.tickets.channels.inbox import Comment

T = TypeVar("T")


class GitHub:
    """A `Channel` to GitHub.

    Args:
        base_url: https://api.github.com, or https://HOST/api/v3 for GitHub Enterprise Server.
        credentials: a token in a file, or an App.
        clock: what the limits are measured by.
        timeout: whole seconds for one request to connect, and between two pieces of its answer.
        spacing: seconds between two writes; GitHub asks for at least one. The pauses before a failed read is repeated
            grow from half of it.
        creations: how many issues and comments may be made, as (count, seconds) windows.
        worker: what runs PyGithub, one call after the other; a thread of its own where none is given.
    """

    room = text.ROOM

    def __init__(
        self,
        base_url: str,
        credentials: Credentials,
        clock: Clock,
        *,
        timeout: int = 15,
        spacing: float = 1.0,
        creations: tuple[tuple[int, float], ...] = CREATIONS,
        worker: Executor | None = None,
    ) -> None:
        logs.relay()
        self._worker = worker or ThreadPoolExecutor(max_workers=1, thread_name_prefix="github")
        self._credentials, self._limits = credentials, RateLimits(clock, creations)
        self._api = Api(base_url, credentials, self._limits, timeout=timeout, spacing=spacing)

    async def create(self, repository: str, draft: Draft) -> Issue:
        """Open one issue. Whom GitHub does not take as an assignee is left out, and the body says so.

        Labels and assignees are dropped by GitHub without a word where we may not push: compare what comes back.
        """
        call = GithubCall(f"create an issue in {repository}", once=True)
        return await self._ask(call, lambda: self._api.create(repository, draft))

    async def get(self, ref: IssueRef) -> Issue:
        """One issue as it is now."""
        return await self._ask(_about("read", ref), lambda: self._api.get(ref))

    async def find(self, repository: str, marker: str, label: str, since: datetime) -> list[Issue]:
        """Issues in any state whose body holds `marker`, oldest first: by listing `label`; without any, by search.

        `marker` should be a few plain words: search knows no punctuation, and takes 256 characters.
        """
        call = GithubCall(f"look for the issue of {marker} in {repository}")
        return await self._ask(call, lambda: self._api.find(repository, marker, label, since))

    async def change(self, issue: Issue, change: Change) -> Issue:
        """Change an issue that was read just now. A text that says the same already is not sent."""
        call = _about(VERBS[type(change)], issue.ref)
        return await self._ask(call, lambda: self._changed(issue, change))

    async def comment(self, issue: IssueRef, text: str) -> None:
        """Add a comment; a long one is cut."""
        call = _about("comment on", issue, once=True)
        await self._ask(call, lambda: self._api.comment(issue, text))

    async def visibility(self, repository: str) -> Visibility:
        """Who may read what is written there, as GitHub has it now."""
        call = GithubCall(f"ask whether {repository} is private")
        return await self._ask(call, lambda: self._api.visibility(repository))

    async def comments(self, repository: str, since: datetime) -> list[Comment]:
        """All comments in a repository since then, oldest first; nothing new costs no quota."""
        call = GithubCall(f"read the comments in {repository}")
        return await self._ask(call, lambda: self._api.comments.all(repository, since))

    async def may_write(self, comment: Comment) -> bool:
        """Whether the author of a comment has write access to its repository, as GitHub has it now."""
        call = GithubCall(f"ask what {comment.author} may do in {comment.repository}")
        return await self._ask(call, lambda: self._api.comments.may_write(comment))

    async def opened_by(self, issue: IssueRef) -> str:
        """The login of whoever opened an issue."""
        return await self._ask(_about("read", issue), lambda: self._api.opened_by(issue))

    async def react(self, comment: Comment) -> bool:
        """Leave a pair of eyes at a comment; False where ours are there already."""
        call = GithubCall(f"react to comment {comment.id} in {comment.repository}")
        return await self._ask(call, lambda: self._api.comments.react(comment))

    async def assign(self, issue: IssueRef, login: str) -> bool:
        """Assign somebody, too; False where GitHub does not take them."""
        return await self._ask(_about("assign", issue), lambda: self._api.comments.assign(issue, login))

    async def card(self, board: ProjectBoard, issue: IssueRef) -> Card:
        """The card of an issue on a board, put there unless it is there."""
        there = await self._ask(_about("read", issue), lambda: self._api.card_issue(issue))
        call = self._on(board, f"find the card of {issue.repository}#{issue.number}")
        return await self._ask(call, lambda: self._api.projects.card(board, there))

    async def move(self, board: ProjectBoard, card: Card, column: str) -> None:
        """Move a card."""
        call = self._on(board, f"move a card of project {named(board)} to {column}")
        await self._ask(call, lambda: self._api.projects.move(board, card, column))

    def _on(self, board: ProjectBoard, what: str) -> GithubCall:
        return GithubCall(what, board=named(board), resource=self._api.projects.resource)

    async def aclose(self) -> None:
        """Let what is under way end, drop what waits, and give the connections back."""
        await asyncio.to_thread(self._worker.shutdown, cancel_futures=True)
        self._api.close()

    async def _ask(self, call: GithubCall, work: Callable[[], T]) -> T:
        """`work` in the worker, its failures in our words."""
        return await asyncio.get_running_loop().run_in_executor(self._worker, self._guard, call, work)

    # From here on everything runs in the worker.

    def _guard(self, call: GithubCall, work: Callable[[], T]) -> T:
        self._limits.admit(call)
        try:
            answer = self._with_fresh_token(work)
        except (Later, Refused):
            raise
        except Exception as error:
            # What it was made of may quote the token, and would be logged with it: it is left out.
            failure = self._limits.failed(error, replace(call, hidden=self._credentials.hidden))
            raise self._without_secrets(failure) from None
        self._limits.answered()
        return answer

    def _without_secrets(self, failure: ChannelError) -> ChannelError:
        failure.message = self._credentials.hidden(failure.message)
        failure.args = (failure.message,)
        return failure

    def _with_fresh_token(self, work: Callable[[], T]) -> T:
        """A 401 may only mean that the token was rotated just now: then once more. Nothing was carried out before."""
        try:
            return work()
        except github.BadCredentialsException:
            if not self._credentials.renew():
                raise
        return work()

    def _changed(self, issue: Issue, change: Change) -> Issue:
        match change:
            case Edit():
                body = text.edited(issue.body, change)
                return issue if body == issue.body else self._api.patch(issue.ref, {"body": body})
            case Relabel():
                return self._api.relabel(issue, change)
            case Complete():
                return self._api.complete(issue, change)
            case Close():
                return self._api.close_issue(issue.ref, change.duplicate_of)
            case Reopen():
                return self._api.patch(issue.ref, {"state": "open"})


def _about(verb: str, ref: IssueRef, *, once: bool = False) -> GithubCall:
    return GithubCall(f"{verb} {ref.repository}#{ref.number}", once=once, issue=True)
