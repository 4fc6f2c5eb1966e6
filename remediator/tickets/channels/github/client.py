"""The writer to GitHub: PyGithub in one thread of its own, because it is not made for several.

Nothing but a read is sent twice by itself, and nothing sleeps out a rate limit: who asked is told when to come back.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any, TypeVar

import github
from github.Issue import Issue as Theirs
from github.Repository import Repository
from urllib3.util import Retry

from remediator.tickets.channels.base import Draft, Issue, Later
from remediator.tickets.channels.github import text
from remediator.tickets.channels.github.budget import CREATIONS, Budget, Quiet
from remediator.tickets.channels.github.credentials import App, TokenFile
from remediator.tickets.channels.github.errors import Call, Moved, When, field_of, limited, translate
from remediator.tickets.channels.github.issues import is_pull_request, ours

API_VERSION = "2022-11-28"
PER_PAGE = 100
KEPT = 512  # issues whose ETag is remembered: one read again unchanged costs no quota
T = TypeVar("T")


class GitHub:
    """A `Tracker` on GitHub.

    Args:
        base_url: https://api.github.com, or https://HOST/api/v3 for GitHub Enterprise Server.
        credentials: a token in a file, or a GitHub App.
        timeout: whole seconds for one request to connect, and between two pieces of its answer.
        spacing: seconds between two writes; GitHub asks for at least one. The pauses before a failed read is repeated
            grow from half of it.
        creations: how many issues and comments may be made, as (count, seconds) windows.
    """

    def __init__(
        self,
        base_url: str,
        credentials: TokenFile | App,
        *,
        timeout: int = 15,
        spacing: float = 1.0,
        creations: tuple[tuple[int, float], ...] = CREATIONS,
    ) -> None:
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="github")
        self._api = _connect(base_url, credentials, timeout=timeout, spacing=spacing)
        self._credentials = credentials
        self._budget, self._quiet, self._limits = Budget(creations), Quiet(), 0
        self._known: OrderedDict[tuple[str, int], Theirs] = OrderedDict()

    async def create(self, repository: str, draft: Draft) -> Issue:
        """Open one issue. Whom GitHub does not take as an assignee is left out, and the body says so.

        Labels and assignees are dropped by GitHub without a word where we may not push: compare what comes back.
        """
        call = Call(f"create an issue in {repository}", once=True)
        return await self._ask(call, lambda: ours(self._create(repository, draft)))

    async def get(self, repository: str, number: int) -> Issue:
        """One issue as it is now."""
        call = Call(f"read {repository}#{number}", issue=True)
        return await self._ask(call, lambda: self._get(repository, number))

    async def find(self, repository: str, marker: str, label: str, since: datetime) -> list[Issue]:
        """Issues of any state whose body holds `marker`, oldest first: by listing `label`; without any, by search.

        `marker` should be a few plain words: search knows no punctuation, and takes 256 characters.
        """
        call = Call(f"look for the issue of {marker} in {repository}")
        return await self._ask(call, lambda: self._find(repository, marker, label, since))

    async def edit(self, repository: str, number: int, *, title: str | None = None, body: str | None = None) -> Issue:
        """Replace the title, the body or both."""
        wanted: dict[str, str | int] = {} if title is None else {"title": text.title(title)}
        wanted |= {} if body is None else {"body": text.body(body)}
        return await self._patch(f"edit {repository}#{number}", repository, number, wanted)

    async def close(self, repository: str, number: int, reason: str, duplicate_of: int | None = None) -> Issue:
        """Close for `reason`: completed, not_planned or duplicate."""
        call = Call(f"close {repository}#{number}", issue=True)
        return await self._ask(call, lambda: self._close(repository, number, reason, duplicate_of))

    async def reopen(self, repository: str, number: int) -> Issue:
        """Open again what was closed."""
        return await self._patch(f"reopen {repository}#{number}", repository, number, {"state": "open"})

    async def comment(self, repository: str, number: int, text: str) -> str:
        """Add a comment and return its url."""
        call = Call(f"comment on {repository}#{number}", once=True, issue=True)
        return await self._ask(call, lambda: self._comment(repository, number, text))

    async def label(self, repository: str, number: int, add: tuple[str, ...], remove: tuple[str, ...]) -> None:
        """Add and remove labels one by one; one to be removed that is not there is fine."""
        call = Call(f"label {repository}#{number}", issue=True)
        await self._ask(call, lambda: self._label(repository, number, add, remove))

    async def aclose(self) -> None:
        """Let what is under way end, drop what waits, and give the connections back."""
        await asyncio.to_thread(self._worker.shutdown, cancel_futures=True)
        self._api.close()

    async def _patch(self, what: str, repository: str, number: int, wanted: dict[str, str | int]) -> Issue:
        call = Call(what, issue=True)
        return await self._ask(call, lambda: self._edit(repository, number, wanted))

    async def _ask(self, call: Call, work: Callable[[], T]) -> T:
        """`work` in the one thread, its failures in our words."""
        return await asyncio.get_running_loop().run_in_executor(self._worker, self._guard, call, work)

    # From here on everything runs in the worker thread.

    def _guard(self, call: Call, work: Callable[[], T]) -> T:
        self._admit(call)
        try:
            answer = self._with_fresh_token(work)
        except Later:
            raise
        except Exception as error:
            said = translate(error, call, When(time.time(), self._limits))
            if (resource := limited(error)) and isinstance(said, Later):
                self._limits += 1
                self._quiet.keep(resource, said.after, time.monotonic())
            raise said from None  # what it was made of may quote the token, and would be logged with it
        self._limits = 0
        return answer

    def _admit(self, call: Call, resource: str = "core") -> None:
        """Later, without a word to GitHub, while it asked for silence or when a creation would be over the budget."""
        now = time.monotonic()
        if wait := self._quiet.wait(resource, now):
            raise Later(f"could not {call.what}: GitHub's rate limit ({resource}) is spent for {wait:.0f} s more", wait)
        if call.once and (wait := self._budget.wait(now)):
            raise Later(f"could not {call.what}: enough issues and comments were made; more in {wait:.0f} s", wait)

    def _with_fresh_token(self, work: Callable[[], T]) -> T:
        """A 401 may only mean that the token was rotated just now: then once more. Nothing was carried out before."""
        try:
            return work()
        except github.BadCredentialsException:
            if not (isinstance(self._credentials, TokenFile) and self._credentials.renew()):
                raise
        return work()

    def _repo(self, repository: str) -> Repository:
        return self._api.get_repo(repository)

    def _issue(self, repository: str, number: int) -> Theirs:
        """The issue, unread, or as it was when it was read last."""
        key = repository, number
        if key not in self._known:
            self._known[key] = self._repo(repository).get_issue(number)
        self._known.move_to_end(key)
        if len(self._known) > KEPT:
            self._known.popitem(last=False)
        return self._known[key]

    def _get(self, repository: str, number: int) -> Issue:
        theirs = self._issue(repository, number)
        theirs.update()
        _checked(theirs.raw_data, "state")  # a proxy's page leaves PyGithub with what it knew before
        return ours(theirs)

    def _create(self, repository: str, draft: Draft) -> Theirs:
        try:
            return self._create_in(repository, draft)
        except Moved:  # not carried out, so this one is not a repetition either
            return self._create_in(self._present(repository), draft)

    def _present(self, repository: str) -> str:
        """The name that a repository has now: on the way to it, a write goes nowhere and a list loses its filters."""
        return self._repo(repository).complete().full_name

    def _create_in(self, repository: str, draft: Draft) -> Theirs:
        asked, more = draft.assignees[: text.ASSIGNEES], draft.assignees[text.ASSIGNEES :]
        note = text.unassigned(more, f"GitHub takes {text.ASSIGNEES} people")
        try:
            return self._post(repository, draft, asked, note)
        except github.GithubException as error:
            if error.status != 422 or field_of(error) != "assignees":
                raise
        # Refused with 422 is not carried out, so this one is not a repetition.
        return self._post(repository, draft, (), text.unassigned(draft.assignees, "GitHub did not take one of them"))

    def _post(self, repository: str, draft: Draft, assignees: tuple[str, ...], note: str) -> Theirs:
        self._budget.take(time.monotonic())
        wanted = {
            "title": text.title(draft.title),
            "body": text.body(draft.body, note),
            "labels": list(draft.labels),
            "assignees": list(assignees),
        }
        return self._send("POST", f"/repos/{repository}/issues", wanted)

    def _edit(self, repository: str, number: int, wanted: Mapping[str, Any]) -> Issue:
        return ours(self._send("PATCH", f"/repos/{repository}/issues/{number}", wanted))

    def _send(self, method: str, path: str, wanted: Mapping[str, Any]) -> Theirs:
        """PyGithub's own edit does not know duplicate_issue_id, and it takes a redirect for an issue."""
        headers, data = self._api.requester.requestJsonAndCheck(method, path, input=wanted)
        return Theirs(self._api.requester, headers, _checked(data, "number"), completed=True)

    def _close(self, repository: str, number: int, reason: str, duplicate_of: int | None) -> Issue:
        wanted: dict[str, str | int] = {"state": "closed", "state_reason": reason}
        if duplicate_of is not None:  # GitHub wants its own id here, not the number
            wanted["duplicate_issue_id"] = self._repo(repository).get_issue(duplicate_of).id
        return self._edit(repository, number, wanted)

    def _comment(self, repository: str, number: int, words: str) -> str:
        self._budget.take(time.monotonic())
        made = self._issue(repository, number).create_comment(text.body(words))
        return str(_checked(made.raw_data, "html_url")["html_url"])

    def _label(self, repository: str, number: int, add: tuple[str, ...], remove: tuple[str, ...]) -> None:
        theirs = self._issue(repository, number)
        if add:
            theirs.add_to_labels(*add)
        for name in remove:
            try:
                theirs.remove_from_labels(name)
            except github.GithubException as error:
                if error.status != 404 or "Label" not in str(error.data):  # it is the issue that is not there
                    raise

    def _find(self, repository: str, marker: str, label: str, since: datetime) -> list[Issue]:
        present = self._present(repository)
        listed = self._repo(present).get_issues(
            state="all", labels=[label], since=since.astimezone(UTC), sort="created", direction="asc"
        )
        found = [one for one in listed if _bears(one, marker)] or self._search(present, marker)
        return sorted((ours(one) for one in found), key=lambda one: (one.created, one.number))

    def _search(self, repository: str, marker: str) -> list[Theirs]:
        """Issues by their text. Search lags behind by minutes, and does not count into the ordinary quota."""
        call = Call(f"search {repository}")
        self._admit(call, "search")
        phrase = marker.replace('"', " ").strip()
        hits = self._api.search_issues(f'repo:{repository} is:issue in:body "{phrase}"', sort="created", order="asc")
        found: list[Theirs] = [one for one in hits if _bears(one, marker)]
        if hits.incomplete_results and not found:
            raise Later(f"could not {call.what}: GitHub gave up searching half way", 60.0)
        return found


def _checked(answer: Any, field: str) -> Any:
    """An answer that must hold a field. PyGithub takes a redirect of GitHub's for an answer, and any page."""
    if not isinstance(answer, dict) or field not in answer:
        raise Moved if isinstance(answer, dict) and "message" in answer else ValueError("no answer of GitHub's")
    return answer


def _bears(theirs: Theirs, marker: str) -> bool:
    return marker in (theirs.body or "") and not is_pull_request(theirs)


def _connect(base_url: str, credentials: TokenFile | App, *, timeout: int, spacing: float) -> github.Github:
    """PyGithub's entry. Asks nothing yet.

    Raises:
        ValueError: the URL is not one of http or https.
    """
    if not base_url.startswith(("https://", "http://")):
        raise ValueError(f"the URL of GitHub's API must begin with https://, not {base_url!r}: https://api.github.com")
    return github.Github(
        base_url=base_url,
        auth=credentials.auth() if isinstance(credentials, App) else credentials,
        timeout=timeout,
        per_page=PER_PAGE,
        # Only reads are repeated, and only after 5xx or a broken connection. PyGithub's own rule repeats POST, which
        # makes duplicates, and sleeps out rate limits inside the call, which would stop everyone behind it.
        retry=Retry(
            total=3,
            connect=0,
            backoff_factor=spacing / 2,
            allowed_methods={"GET"},
            status_forcelist=[500, 502, 503, 504],
            respect_retry_after_header=False,
            raise_on_status=False,
        ),
        seconds_between_requests=spacing / 4,
        seconds_between_writes=spacing,
        lazy=True,
        api_version=API_VERSION,
    )
