"""Repositories, issues and what became of them. Every change is a new version, so that indexes can lag."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import Enum
from itertools import count
from typing import Any

REMEMBERED = timedelta(hours=1)  # how far back a lagging index may look
COLOR = "ededed"


class Access(Enum):
    """What the token may do in a repository."""

    WRITE = "write"
    READ = "read"  # may open issues; its labels and assignees are dropped without a word
    FORBIDDEN = "forbidden"  # sees the repository, has no permission for issues
    NONE = "none"  # not even that: 404


@dataclass(frozen=True, slots=True)
class Comment:
    """One comment."""

    id: int
    author: str
    body: str
    at: datetime
    edited: datetime | None = None
    reactions: tuple[tuple[str, str], ...] = ()  # (login, GitHub's word)


@dataclass(frozen=True, slots=True)
class TimelineEvent:
    """One line of the timeline: `kind` is GitHub's word, `detail` what belongs to it (label, from, ...)."""

    id: int
    kind: str
    actor: str
    at: datetime
    detail: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Issue:
    """One issue at one moment."""

    repository: str
    number: int
    id: int
    title: str
    body: str
    author: str
    created: datetime
    updated: datetime
    open: bool = True
    reason: str = ""
    closed: datetime | None = None
    closed_by: str = ""
    duplicate_of: int = 0  # a number in the same repository
    labels: tuple[str, ...] = ()
    assignees: tuple[str, ...] = ()
    milestone: int = 0  # its number, 0 for none
    comments: tuple[Comment, ...] = ()
    events: tuple[TimelineEvent, ...] = ()
    pull_request: bool = False
    deleted: bool = False


@dataclass(slots=True)
class Repository:
    """One repository. `issues` holds every version, oldest first, by number."""

    name: str
    id: int
    created: datetime
    access: Access = Access.WRITE
    has_issues: bool = True
    archived: bool = False
    private: bool | None = True  # None: it does not say
    labels: dict[str, int] = field(default_factory=dict)  # name to id
    milestones: dict[int, str] = field(default_factory=dict)  # the open ones: number to title
    permissions: dict[str, str] = field(default_factory=dict)  # login → GitHub's word, where it is not that of its kind
    issues: dict[int, list[Issue]] = field(default_factory=dict)

    def as_of(self, at: datetime) -> list[Issue]:
        """The issues as they were at that moment, by number; those made later are not there."""
        newest = (
            next((version for version in reversed(versions) if version.updated <= at), None)
            for versions in self.issues.values()
        )
        return [issue for issue in newest if issue is not None and not issue.deleted]


@dataclass(slots=True)
class GithubStore:
    """All repositories and people. Who acts and when is told; nothing is checked here."""

    bot: str
    people: list[str]
    repositories: dict[str, Repository] = field(default_factory=dict)
    moved: dict[str, str] = field(default_factory=dict)  # paths that are no more → where they lead, by ids
    _ids: count = field(default_factory=lambda: count(1001))  # type: ignore[type-arg]

    def add(self, name: str, now: datetime) -> Repository:
        """A new, empty repository."""
        made = Repository(name, next(self._ids), now)
        self.repositories[name] = made
        return made

    def rename(self, name: str, to: str) -> None:
        """Give a repository another name; the one before leads to it."""
        home = self.repositories.pop(name)
        home.name = to
        home.issues = {key: [replace(issue, repository=to) for issue in kept] for key, kept in home.issues.items()}
        self.repositories[to] = home
        self.moved[f"/repos/{name}"] = f"/repositories/{home.id}"

    def transfer(self, issue: Issue, to: str, now: datetime) -> Issue:
        """Move an issue into another repository, where it has another number; its old address leads there."""
        home = self.repositories[to]
        made = replace(issue, repository=to, number=len(home.issues) + 1, labels=(), updated=now)
        home.issues[made.number] = [made]
        self.delete(issue, now)
        path = f"/repositories/{home.id}/issues/{made.number}"
        self.moved[f"/repos/{issue.repository}/issues/{issue.number}"] = path
        return self.relabel(made, issue.labels, issue.author, now)

    def leads(self, path: str) -> str:
        """Where a path that is no more leads to; "" for one that is."""
        return next((to + path[len(old) :] for old, to in self.moved.items() if f"{path}/".startswith(f"{old}/")), "")

    def spelled(self, path: str) -> str:
        """A path with the id of a repository, with its name."""
        ids = {str(home.id): home.name for home in self.repositories.values()}
        kind, _, rest = path.removeprefix("/").partition("/")
        number, slash, more = rest.partition("/")
        return f"/repos/{ids[number]}{slash}{more}" if kind == "repositories" and number in ids else path

    def user_id(self, login: str) -> int:
        """A number that stays the same for a person; the bot's is 1."""
        return 1 if login == self.bot else 2 + self.people.index(login) if login in self.people else 999

    def issue(self, repository: str, number: int) -> Issue | None:
        """The newest version, also of a deleted one."""
        versions = self.repositories[repository].issues.get(number)
        return versions[-1] if versions else None

    def by_id(self, wanted: int) -> Issue | None:
        """An issue by GitHub's own id."""
        newest = (versions[-1] for repository in self.repositories.values() for versions in repository.issues.values())
        return next((issue for issue in newest if issue.id == wanted and not issue.deleted), None)

    def create(
        self,
        repository: str,
        actor: str,
        now: datetime,
        *,
        title: str,
        body: str = "",
        labels: tuple[str, ...] = (),
        assignees: tuple[str, ...] = (),
        pull_request: bool = False,
    ) -> Issue:
        """Open an issue with the next number."""
        home = self.repositories[repository]
        number = len(home.issues) + 1
        made = Issue(repository, number, next(self._ids), title, body, actor, now, now, pull_request=pull_request)
        home.issues[number] = [made]
        made = self.relabel(made, labels, actor, now)
        return self.reassign(made, assignees, actor, now)

    def edit(
        self, issue: Issue, actor: str, now: datetime, *, title: str | None = None, body: str | None = None
    ) -> Issue:
        """Another title, another body, or both."""
        if title is not None and title != issue.title:
            issue = self._happen(issue, "renamed", actor, now, {"from": issue.title, "to": title}, title=title)
        if body is not None and body != issue.body:
            issue = self._keep(replace(issue, body=body, updated=now))
        return issue

    def close(self, issue: Issue, actor: str, now: datetime, reason: str = "completed", duplicate_of: int = 0) -> Issue:
        """Close an open one; a closed one stays as it is."""
        if not issue.open:
            return issue
        if duplicate_of:
            issue = self._happen(issue, "marked_as_duplicate", actor, now, {}, duplicate_of=duplicate_of)
        changes: dict[str, Any] = {"open": False, "reason": reason, "closed": now, "closed_by": actor}
        return self._happen(issue, "closed", actor, now, {"state_reason": reason}, **changes)

    def reopen(self, issue: Issue, actor: str, now: datetime) -> Issue:
        """Open a closed one again."""
        if issue.open:
            return issue
        changes: dict[str, Any] = {
            "open": True,
            "reason": "reopened",
            "closed": None,
            "closed_by": "",
            "duplicate_of": 0,
        }
        return self._happen(issue, "reopened", actor, now, {"state_reason": "reopened"}, **changes)

    def relabel(self, issue: Issue, labels: tuple[str, ...], actor: str, now: datetime) -> Issue:
        """Give it exactly these labels. Unknown ones are made; names are the same in any case of letters."""
        wanted = tuple(dict.fromkeys(self.label(issue.repository, name) for name in labels))
        for name in [name for name in issue.labels if name not in wanted]:
            kept = tuple(label for label in issue.labels if label != name)
            issue = self._happen(issue, "unlabeled", actor, now, {"label": name}, labels=kept)
        for name in [name for name in wanted if name not in issue.labels]:
            issue = self._happen(issue, "labeled", actor, now, {"label": name}, labels=(*issue.labels, name))
        return issue

    def label(self, repository: str, name: str) -> str:
        """The label's name as the repository spells it, made if it is new."""
        labels = self.repositories[repository].labels
        known = next((label for label in labels if label.lower() == name.lower()), None)
        if known is None:
            labels[name] = next(self._ids)
        return known or name

    def reassign(self, issue: Issue, people: tuple[str, ...], actor: str, now: datetime) -> Issue:
        """Assign it to exactly these."""
        for login in [login for login in issue.assignees if login not in people]:
            kept = tuple(assignee for assignee in issue.assignees if assignee != login)
            issue = self._happen(issue, "unassigned", actor, now, {"assignee": login}, assignees=kept)
        for login in [login for login in people if login not in issue.assignees]:
            issue = self._happen(
                issue, "assigned", actor, now, {"assignee": login}, assignees=(*issue.assignees, login)
            )
        return issue

    def plan(self, issue: Issue, milestone: int, actor: str, now: datetime) -> Issue:
        """Give it this milestone, 0 for none."""
        titles = self.repositories[issue.repository].milestones
        if issue.milestone and issue.milestone != milestone:
            detail = {"milestone": titles[issue.milestone]}
            issue = self._happen(issue, "demilestoned", actor, now, detail, milestone=0)
        if milestone and issue.milestone != milestone:
            detail = {"milestone": titles[milestone]}
            issue = self._happen(issue, "milestoned", actor, now, detail, milestone=milestone)
        return issue

    def comment(self, issue: Issue, actor: str, now: datetime, body: str) -> Comment:
        """Add a comment."""
        made = Comment(next(self._ids), actor, body, now)
        self._keep(replace(issue, comments=(*issue.comments, made), updated=now))
        return made

    def commented(self, repository: str, number: int) -> tuple[Issue, Comment] | None:
        """A comment by its id, with the newest version of its issue."""
        newest = (versions[-1] for versions in self.repositories[repository].issues.values())
        pairs = ((issue, comment) for issue in newest if not issue.deleted for comment in issue.comments)
        return next((pair for pair in pairs if pair[1].id == number), None)

    def rewrite(self, issue: Issue, comment: Comment, **changes: Any) -> Comment:
        """Replace a comment by one with these changes."""
        made = replace(comment, **changes)
        comments = tuple(made if other.id == made.id else other for other in issue.comments)
        self._keep(replace(issue, comments=comments))
        return made

    def permission(self, repository: str, login: str) -> str:
        """What somebody may do there: people write unless told otherwise, others do not."""
        return self.repositories[repository].permissions.get(login, "write" if login in self.people else "none")

    def delete(self, issue: Issue, now: datetime) -> None:
        """Only a person can, in the browser."""
        self._keep(replace(issue, deleted=True, updated=now))

    def _happen(
        self, issue: Issue, kind: str, actor: str, now: datetime, detail: Mapping[str, Any], **changes: Any
    ) -> Issue:
        event = TimelineEvent(next(self._ids), kind, actor, now, detail)
        return self._keep(replace(issue, events=(*issue.events, event), updated=now, **changes))

    def _keep(self, issue: Issue) -> Issue:
        """The newest version; older ones go when no index can lag that far behind."""
        versions = self.repositories[issue.repository].issues[issue.number]
        versions.append(issue)
        while len(versions) > 1 and versions[1].updated < issue.updated - REMEMBERED:
            del versions[0]
        return issue
