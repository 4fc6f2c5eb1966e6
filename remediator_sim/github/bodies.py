"""The store's nouns as GitHub's JSON."""

from datetime import datetime
from typing import Any

from remediator_sim.github.store import COLOR, Access, Comment, GithubStore, Issue, Repository, TimelineEvent

Json = dict[str, Any]


class Bodies:
    """Bodies with the addresses of one server: `api` for programs, `web` for browsers."""

    def __init__(self, store: GithubStore, api: str, web: str) -> None:
        self._store, self._api, self._web = store, api, web

    def user(self, login: str) -> Json:
        """SimpleUser."""
        url, number = f"{self._api}/users/{login}", self._store.user_id(login)
        links = ("followers", "following", "gists", "starred", "subscriptions", "repos", "events", "received_events")
        return {
            "login": login,
            "id": number,
            "node_id": f"U_{number}",
            "avatar_url": f"{self._web}/avatars/{number}",
            "gravatar_id": "",
            "url": url,
            "html_url": f"{self._web}/{login}",
            "organizations_url": f"{url}/orgs",
            **{f"{name}_url": f"{url}/{name}" for name in links},
            "type": "Bot" if login.endswith("[bot]") else "User",
            "site_admin": False,
        }

    def me(self, since: datetime) -> Json:
        """PublicUser: the token's own."""
        empty = ("name", "company", "blog", "location", "email", "hireable", "bio")
        counts = ("public_repos", "public_gists", "followers", "following")
        stamps = {"created_at": stamp(since), "updated_at": stamp(since)}
        return self.user(self._store.bot) | dict.fromkeys(empty) | dict.fromkeys(counts, 0) | stamps

    def label(self, repository: str, name: str) -> Json:
        """A label as it stands in an issue."""
        number = self._store.repositories[repository].labels[name]
        return {
            "id": number,
            "node_id": f"LA_{number}",
            "url": f"{self._repo(repository)}/labels/{name}",
            "name": name,
            "description": None,
            "color": COLOR,
            "default": False,
        }

    def own_label(self, repository: str, name: str) -> Json:
        """Label: as it stands by itself."""
        return self.label(repository, name) | {"archived_at": None, "archived_by": None}

    def milestone(self, repository: str, number: int) -> Json:
        """Milestone."""
        home, url = self._store.repositories[repository], f"{self._repo(repository)}/milestones/{number}"
        return {
            "id": home.id * 100 + number,
            "node_id": f"MI_{home.id}_{number}",
            "url": url,
            "html_url": f"{self._web}/{repository}/milestone/{number}",
            "labels_url": f"{url}/labels",
            "number": number,
            "state": "open",
            "title": home.milestones[number],
            **dict.fromkeys(("description", "creator", "closed_at", "due_on"), None),
            **dict.fromkeys(("open_issues", "closed_issues"), 0),
            **dict.fromkeys(("created_at", "updated_at"), stamp(home.created)),
        }

    def issue(self, issue: Issue, *, listed: bool = False) -> Json:
        """Issue; `listed` as a list gives it, without who closed it."""
        url, path = self._issue(issue), "pull" if issue.pull_request else "issues"
        body = {
            "id": issue.id,
            "node_id": f"I_{issue.id}",
            "url": url,
            "repository_url": self._repo(issue.repository),
            **{f"{name}_url": f"{url}/{name}" for name in ("comments", "events", "timeline")},
            "labels_url": f"{url}/labels{{/name}}",
            "html_url": f"{self._web}/{issue.repository}/{path}/{issue.number}",
            "number": issue.number,
            "state": "open" if issue.open else "closed",
            "state_reason": issue.reason or None,
            "title": issue.title,
            "body": issue.body or None,
            "user": self.user(issue.author),
            "labels": [self.label(issue.repository, name) for name in issue.labels],
            "assignee": self.user(issue.assignees[0]) if issue.assignees else None,
            "assignees": [self.user(login) for login in issue.assignees],
            "milestone": self.milestone(issue.repository, issue.milestone) if issue.milestone else None,
            "locked": False,
            "active_lock_reason": None,
            "comments": len(issue.comments),
            "closed_at": stamp(issue.closed) if issue.closed else None,
            "created_at": stamp(issue.created),
            "updated_at": stamp(issue.updated),
            "author_association": self._association(issue.author),
        }
        if issue.pull_request:
            body["pull_request"] = dict.fromkeys(("url", "html_url", "diff_url", "patch_url"), body["html_url"])
        return body if listed else body | {"closed_by": self.user(issue.closed_by) if issue.closed_by else None}

    def hit(self, issue: Issue) -> Json:
        """IssueSearchResultItem."""
        return self.issue(issue, listed=True) | {"body": issue.body, "score": 1.0}

    def comment(self, issue: Issue, comment: Comment) -> Json:
        """IssueComment."""
        return {
            "id": comment.id,
            "node_id": f"IC_{comment.id}",
            "url": f"{self._repo(issue.repository)}/issues/comments/{comment.id}",
            "html_url": f"{self._web}/{issue.repository}/issues/{issue.number}#issuecomment-{comment.id}",
            "issue_url": self._issue(issue),
            "body": comment.body,
            "user": self.user(comment.author),
            "created_at": stamp(comment.at),
            "updated_at": stamp(comment.edited or comment.at),
            "author_association": self._association(comment.author),
        }

    def reaction(self, comment: Comment, login: str, content: str) -> Json:
        """Reaction."""
        number = comment.id * 10 + 1
        made = {"id": number, "node_id": f"REA_{number}", "user": self.user(login), "content": content}
        return made | {"created_at": stamp(comment.at)}

    def permission(self, repository: str, login: str) -> Json:
        """RepositoryCollaboratorPermission."""
        word = self._store.permission(repository, login)
        basic = {"maintain": "write", "triage": "read"}.get(word, word)
        return {"permission": basic, "role_name": word, "user": self.user(login) | {"role_name": word}}

    def timeline(self, issue: Issue) -> list[Json]:
        """Events and comments in the order they came."""
        lines = [(event.id, self._event(issue, event)) for event in issue.events]
        lines += [(comment.id, self._said(issue, comment)) for comment in issue.comments]
        return [line for _, line in sorted(lines, key=lambda line: line[0])]

    def _said(self, issue: Issue, comment: Comment) -> Json:
        return self.comment(issue, comment) | {"event": "commented", "actor": self.user(comment.author)}

    def _event(self, issue: Issue, event: TimelineEvent) -> Json:
        body: Json = {
            "id": event.id,
            "node_id": f"E_{event.id}",
            "url": f"{self._repo(issue.repository)}/issues/events/{event.id}",
            "actor": self.user(event.actor),
            "event": event.kind,
            "commit_id": None,
            "commit_url": None,
            "created_at": stamp(event.at),
            "performed_via_github_app": None,
        }
        match event.detail:
            case {"label": str(name)}:
                return body | {"label": {"name": name, "color": COLOR}}
            case {"assignee": str(login)}:
                return body | {"assignee": self.user(login)}
            case {"milestone": str(title)}:
                return body | {"milestone": {"title": title}}
            case {"from": before, "to": after}:
                return body | {"rename": {"from": before, "to": after}}
        return body | dict(event.detail)

    def repository(self, home: Repository) -> Json:
        """Repository: the short form."""
        owner, name = home.name.split("/")
        url, made = self._repo(home.name), stamp(home.created)
        counts = ("forks", "forks_count", "stargazers_count", "watchers", "watchers_count", "size")
        is_open = sum(issue.open for issue in home.as_of(datetime.max.replace(tzinfo=home.created.tzinfo)))
        writes = home.access is Access.WRITE
        return {
            "id": home.id,
            "node_id": f"R_{home.id}",
            "name": name,
            "full_name": home.name,
            "owner": self.user(owner),
            "private": home.private,
            "html_url": f"{self._web}/{home.name}",
            "url": url,
            **{f"{part}_url": f"{url}/{part}" for part in _PARTS},
            **{f"{part}_url": f"{self._web}/{home.name}.git" for part in ("git", "ssh", "clone", "svn")},
            **dict.fromkeys(("description", "mirror_url", "homepage", "language", "license"), None),
            **dict.fromkeys(counts, 0),
            **dict.fromkeys(("open_issues", "open_issues_count"), is_open),
            **dict.fromkeys(("fork", "has_projects", "has_wiki", "has_pages", "has_downloads", "disabled"), False),
            "has_discussions": False,
            "has_issues": home.has_issues,
            "archived": home.archived,
            "default_branch": "main",
            **dict.fromkeys(("created_at", "updated_at", "pushed_at"), made),
            "permissions": {"admin": False, "push": writes, "pull": True},
        }

    def full_repository(self, home: Repository) -> Json:
        """FullRepository."""
        return self.repository(home) | {"subscribers_count": 0, "network_count": 0}

    def _association(self, login: str) -> str:
        return "COLLABORATOR" if login in self._store.people else "NONE"

    def _repo(self, name: str) -> str:
        return f"{self._api}/repos/{name}"

    def _issue(self, issue: Issue) -> str:
        return f"{self._repo(issue.repository)}/issues/{issue.number}"


_PARTS = (
    *("archive", "assignees", "blobs", "branches", "collaborators", "comments", "commits", "compare", "contents"),
    *("contributors", "deployments", "downloads", "events", "forks", "git_commits", "git_refs", "git_tags"),
    *("issue_comment", "issue_events", "issues", "keys", "labels", "languages", "merges", "milestones"),
    *("notifications", "pulls", "releases", "stargazers", "statuses", "subscribers", "subscription", "tags"),
    *("teams", "trees", "hooks"),
)


def stamp(at: datetime) -> str:
    """A time as GitHub writes it."""
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")
