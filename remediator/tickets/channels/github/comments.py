"""The comments of a repository and their authors' rights, through PyGithub's requester, for one thread."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from github.Requester import Requester

from remediator.core.ticket import IssueRef
from remediator.kube.wire.times import stamp
from remediator.tickets.channels.base import Later
from remediator.tickets.channels.github.answers import listed
from remediator.tickets.channels.github.errors import GithubCall
from remediator.tickets.channels.github.rate_limit import RateLimits
from remediator.tickets.channels.inbox import Comment

PER_PAGE, PAGES = 100, 5  # 500 comments in two hours: what is older than these is not looked at
WRITES = ("admin", "write")  # GitHub maps each other role, custom ones too, to one of admin, write, read and none


@dataclass(frozen=True, slots=True)
class _KnownComments:
    """The answer to one question as it was last, with its tag: asked again unchanged, it costs no quota."""

    path: str
    tag: str
    comments: list[Comment]


class Comments:
    """Reads comments, and asks about and reacts to single ones."""

    def __init__(self, requester: Requester, limits: RateLimits) -> None:
        self._requester, self._limits = requester, limits
        self._known: dict[str, _KnownComments] = {}

    def all(self, repository: str, since: datetime) -> list[Comment]:
        """The newest 500 comments since then, oldest first."""
        left, quota = self._requester.rate_limiting
        self._limits.spare(
            GithubCall(f"read the comments in {repository}"), left, quota, self._requester.rate_limiting_resettime
        )
        path = (
            f"/repos/{repository}/issues/comments?since={stamp(since)}&sort=created&direction=desc&per_page={PER_PAGE}"
        )
        known = self._known.get(repository)
        tag = known.tag if known is not None and known.path == path else ""
        status, headers, first = self._ask("GET", path, headers={"If-None-Match": tag} if tag else None)
        if status == 304 and known is not None:
            return known.comments
        items = list(listed(first))
        for number in range(2, PAGES + 1):
            if len(items) < PER_PAGE * (number - 1):
                break
            items += listed(self._ask("GET", f"{path}&page={number}")[2])
        newest = {comment.id: comment for comment in (_comment(repository, item) for item in items)}
        comments = sorted(newest.values(), key=lambda comment: comment.id)
        self._known[repository] = _KnownComments(path, headers.get("etag", ""), comments)
        return comments

    def may_write(self, comment: Comment) -> bool:
        """Whether the author may write there, who is still the one that wrote it."""
        path = f"/repos/{comment.repository}/collaborators/{comment.author}/permission"
        answer = self._ask("GET", path)[2]
        user, permission = answer.get("user"), answer.get("permission")
        if not isinstance(user, dict) or not isinstance(permission, str):
            raise Later(f"could not tell what {comment.author} may do in {comment.repository}", 60.0)
        return user.get("id") == comment.author_id and permission in WRITES

    def react(self, comment: Comment) -> bool:
        """Leave a pair of eyes at it; False where ours are there already."""
        path = f"/repos/{comment.repository}/issues/comments/{comment.id}/reactions"
        return self._ask("POST", path, body={"content": "eyes"})[0] == 201

    def assign(self, issue: IssueRef, login: str) -> bool:
        """Assign somebody, too. GitHub leaves out whom it does not take, and says nothing."""
        path = f"/repos/{issue.repository}/issues/{issue.number}/assignees"
        answer = self._ask("POST", path, body={"assignees": [login]})[2]
        return login.lower() in [str(user["login"]).lower() for user in answer["assignees"]]

    def _ask(
        self, method: str, path: str, *, headers: dict[str, Any] | None = None, body: Mapping[str, Any] | None = None
    ) -> tuple[int, Mapping[str, Any], Any]:
        """One request: status, headers, answer. PyGithub's own way hides the status."""
        status, answered, text = self._requester.requestJson(method, path, None, headers, body)
        answer = json.loads(text) if text else None
        if status >= 400:
            raise self._requester.createException(status, answered, answer or {})
        if status not in (200, 201, 304):
            raise ValueError("no answer of GitHub's")
        return status, {name.lower(): value for name, value in answered.items()}, answer


def _comment(repository: str, item: Mapping[str, Any]) -> Comment:
    user = item.get("user") or {}
    created = datetime.fromisoformat(item["created_at"]).astimezone(UTC)
    return Comment(
        repository=repository,
        issue=int(item["issue_url"].rsplit("/", 1)[1]),
        id=item["id"],
        url=item["html_url"],
        author=user.get("login", ""),
        author_id=user.get("id", 0),
        program=user.get("type") != "User" or bool(item.get("performed_via_github_app")),
        text=item.get("body") or "",
        created=created,
        edited=datetime.fromisoformat(item["updated_at"]).astimezone(UTC) != created,
    )
