"""What each operation does, as GitHub does it. Bodies that come here have passed GitHub's description."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from remediator_sim.github import search as index
from remediator_sim.github.bodies import Bodies
from remediator_sim.github.limits import TokenLimits
from remediator_sim.github.refusal import Refusal, invalid, not_found, too_long
from remediator_sim.github.request import GithubAnswer, GithubRequest, page
from remediator_sim.github.store import Access, GithubStore, Issue, Repository
from remediator_sim.github.tokens import Tokens

TITLE, BODY, LABEL, ASSIGNEES = 256, 65_536, 50, 10
NO_PERMISSION = "Resource not accessible by personal access token"


@dataclass(slots=True)
class GitHubState:
    """All that operations work on. The lags are in seconds, and may be changed at any time."""

    store: GithubStore
    bodies: Bodies
    tokens: Tokens
    limits: TokenLimits = field(default_factory=TokenLimits)
    search_lag: float = 0.0
    list_lag: float = 0.0
    search_gives_up: bool = False
    api: str = ""
    enterprise: bool = True  # Enterprise Server, which has boards in GraphQL only
    projects: dict[tuple[str, int], Any] = field(default_factory=dict)  # by organization and number

    def repo(self, request: GithubRequest) -> Repository:
        """The repository of a request, if the token may see it."""
        home = self.store.repositories.get(request.parts["repo"])
        if home is None or home.access is Access.NONE:
            raise not_found()
        return home

    def issues(self, request: GithubRequest, *, write: bool = False) -> Repository:
        """The same, if the token may see issues there, or change them."""
        home = self.repo(request)
        if home.access is Access.FORBIDDEN:
            raise Refusal(403, NO_PERMISSION)
        if not home.has_issues:
            raise Refusal(410, "Issues has been disabled in this repository.")
        if write and home.archived:
            raise Refusal(403, "Repository was archived so is read-only.")
        return home

    def issue(self, request: GithubRequest, *, write: bool = False) -> Issue:
        """The newest version of the issue of a request."""
        home = self.issues(request, write=write)
        version = self.store.issue(home.name, int(request.parts["number"]))
        if version is None:
            raise not_found()
        if version.deleted:
            raise Refusal(410, "This issue was deleted")
        return version

    def pushes(self, issue: Issue) -> bool:
        """True when the token may set labels and assignees."""
        return self.store.repositories[issue.repository].access is Access.WRITE

    def listed(self, request: GithubRequest, items: list[Any], body: Callable[[Any], Any]) -> GithubAnswer:
        """One page of a list."""
        shown, headers = page(request, items, self.api + request.path)
        return GithubAnswer(200, [body(item) for item in shown], headers)


def me(github: GitHubState, request: GithubRequest) -> GithubAnswer:
    return GithubAnswer(200, github.bodies.me(request.at))


def rate_limit(github: GitHubState, request: GithubRequest) -> GithubAnswer:
    return GithubAnswer(200, github.limits.overview(request.at))


def repository(github: GitHubState, request: GithubRequest) -> GithubAnswer:
    return GithubAnswer(200, github.bodies.full_repository(github.repo(request)))


def assignees(github: GitHubState, request: GithubRequest) -> GithubAnswer:
    github.repo(request)
    return github.listed(request, github.store.people, github.bodies.user)


def assignable(github: GitHubState, request: GithubRequest) -> GithubAnswer:
    github.repo(request)
    if request.parts["login"] not in github.store.people:
        raise not_found()
    return GithubAnswer(204)


def labels(github: GitHubState, request: GithubRequest) -> GithubAnswer:
    home = github.repo(request)
    return github.listed(request, list(home.labels), lambda name: github.bodies.own_label(home.name, name))


def make_label(github: GitHubState, request: GithubRequest) -> GithubAnswer:
    home, name = github.issues(request, write=True), request.body["name"]
    _check_labels([name])
    if name.lower() in map(str.lower, home.labels):
        raise invalid("name", "already_exists", resource="Label")
    return GithubAnswer(201, github.bodies.own_label(home.name, github.store.label(home.name, name)))


def milestones(github: GitHubState, request: GithubRequest) -> GithubAnswer:
    home = github.repo(request)
    return github.listed(request, list(home.milestones), lambda number: github.bodies.milestone(home.name, number))


def list_issues(github: GitHubState, request: GithubRequest) -> GithubAnswer:
    home = github.issues(request)
    state = request.choice("state", "open", "closed", "all")
    wanted = {name.strip().lower() for name in request.query.get("labels", "").split(",") if name.strip()}
    since, creator, assignee = request.moment("since"), request.query.get("creator"), request.query.get("assignee")
    tests: list[Callable[[Issue], bool]] = [
        lambda issue: state == "all" or issue.open is (state == "open"),
        lambda issue: wanted <= {name.lower() for name in issue.labels},
        lambda issue: since is None or issue.updated >= since,
        lambda issue: creator in (None, issue.author),
        lambda issue: assignee is None or assignee in issue.assignees,
    ]
    seen = home.as_of(request.at - timedelta(seconds=github.list_lag))
    issues = [issue for issue in seen if all(test(issue) for test in tests)]
    issues.sort(key=_ORDERS[request.choice("sort", "created", "updated", "comments")])
    if request.choice("direction", "desc", "asc") == "desc":
        issues.reverse()
    return github.listed(request, issues, lambda issue: github.bodies.issue(issue, listed=True))


def search(github: GitHubState, request: GithubRequest) -> GithubAnswer:
    homes = [home for home in github.store.repositories.values() if home.access in (Access.WRITE, Access.READ)]
    seen = [issue for home in homes for issue in home.as_of(request.at - timedelta(seconds=github.search_lag))]
    issues = index.matching(request.query.get("q", ""), seen)
    issues.sort(key=_ORDERS[request.choice("sort", "created", "updated", "comments")])
    if request.choice("order", "desc", "asc") == "desc":
        issues.reverse()
    hits = github.listed(request, issues, github.bodies.hit)
    body = {
        "total_count": len(issues),
        "incomplete_results": github.search_gives_up,
        "items": hits.body,
        "search_type": "lexical",
    }
    return GithubAnswer(200, body, hits.headers)


def create(github: GitHubState, request: GithubRequest) -> GithubAnswer:
    home, body = github.issues(request, write=True), request.body
    title, text = _title(body["title"]), body.get("body", "")
    _check_length("body", text)
    names, people, milestone = _names(body.get("labels", ())), _people(github, body), _milestone(home, body)
    if home.access is not Access.WRITE:
        names, people, milestone = (), (), 0
    made = github.store.create(
        home.name, github.store.bot, request.at, title=title, body=text, labels=names, assignees=people
    )
    made = github.store.plan(made, milestone, github.store.bot, request.at)
    url = f"{github.api}/repos/{home.name}/issues/{made.number}"
    return GithubAnswer(201, github.bodies.issue(made), {"location": url})


def get(github: GitHubState, request: GithubRequest) -> GithubAnswer:
    return GithubAnswer(200, github.bodies.issue(github.issue(request)))


def patch(github: GitHubState, request: GithubRequest) -> GithubAnswer:
    issue, body, now = github.issue(request, write=True), request.body, request.at
    actor, store = github.store.bot, github.store
    if not github.pushes(issue) and issue.author != actor:
        raise Refusal(403, "Must have admin rights to Repository.")
    title = None if body.get("title") is None else _title(body["title"])
    text = (body["body"] or "") if "body" in body else None
    _check_length("body", text or "")
    names, people = _names(body.get("labels", ())), _people(github, body)
    milestone, original = _milestone(store.repositories[issue.repository], body), _original(github, body)
    issue = store.edit(issue, actor, now, title=title, body=text)
    if github.pushes(issue):
        issue = store.relabel(issue, names, actor, now) if "labels" in body else issue
        issue = store.reassign(issue, people, actor, now) if "assignees" in body else issue
        issue = store.plan(issue, milestone, actor, now) if "milestone" in body else issue
    if body.get("state") == "closed":
        issue = store.close(issue, actor, now, body.get("state_reason") or "completed", original)
    if body.get("state") == "open":
        issue = store.reopen(issue, actor, now)
    return GithubAnswer(200, github.bodies.issue(issue))


def timeline(github: GitHubState, request: GithubRequest) -> GithubAnswer:
    return github.listed(request, github.bodies.timeline(github.issue(request)), lambda line: line)


def comments(github: GitHubState, request: GithubRequest) -> GithubAnswer:
    issue = github.issue(request)
    return github.listed(request, list(issue.comments), lambda written: github.bodies.comment(issue, written))


def comment(github: GitHubState, request: GithubRequest) -> GithubAnswer:
    issue, text = github.issue(request, write=True), request.body["body"]
    if not text.strip():
        raise invalid("body", "missing_field", resource="IssueComment")
    _check_length("body", text)
    made = github.store.comment(issue, github.store.bot, request.at, text)
    body = github.bodies.comment(issue, made)
    return GithubAnswer(201, body, {"location": body["url"]})


def issue_labels(github: GitHubState, request: GithubRequest) -> GithubAnswer:
    return _labels_of(github, request, github.issue(request))


def add_labels(github: GitHubState, request: GithubRequest) -> GithubAnswer:
    given = request.body if isinstance(request.body, list) else request.body.get("labels", [])
    issue = _pushable(github, request)
    added = (*issue.labels, *_names(given))
    return _labels_of(github, request, github.store.relabel(issue, added, github.store.bot, request.at))


def remove_label(github: GitHubState, request: GithubRequest) -> GithubAnswer:
    issue, name = _pushable(github, request), request.parts["name"].lower()
    kept = tuple(label for label in issue.labels if label.lower() != name)
    if kept == issue.labels:
        raise not_found("Label does not exist")
    return _labels_of(github, request, github.store.relabel(issue, kept, github.store.bot, request.at))


def assign(github: GitHubState, request: GithubRequest) -> GithubAnswer:
    issue, people = github.issue(request, write=True), _people(github, request.body, strict=False)
    return _reassigned(github, request, issue, (*issue.assignees, *people)[:ASSIGNEES], 201)


def unassign(github: GitHubState, request: GithubRequest) -> GithubAnswer:
    issue, gone = github.issue(request, write=True), request.body.get("assignees", [])
    return _reassigned(
        github, request, issue, tuple(assignee for assignee in issue.assignees if assignee not in gone), 200
    )


def installation_token(github: GitHubState, request: GithubRequest) -> GithubAnswer:
    token, until = github.tokens.issue(
        request.headers.get("authorization", ""), request.parts["installation"], request.at
    )
    return GithubAnswer(
        201, {"token": token, "expires_at": until, "permissions": (request.body or {}).get("permissions", {})}
    )


def _reassigned(
    github: GitHubState, request: GithubRequest, issue: Issue, people: tuple[str, ...], status: int
) -> GithubAnswer:
    if github.pushes(issue):
        issue = github.store.reassign(issue, people, github.store.bot, request.at)
    return GithubAnswer(status, github.bodies.issue(issue))


def _pushable(github: GitHubState, request: GithubRequest) -> Issue:
    issue = github.issue(request, write=True)
    if not github.pushes(issue):
        raise Refusal(403, "Must have admin rights to Repository.")
    return issue


def _labels_of(github: GitHubState, request: GithubRequest, issue: Issue) -> GithubAnswer:
    return GithubAnswer(200, [github.bodies.own_label(issue.repository, name) for name in issue.labels])


def _title(given: Any) -> str:
    title = str(given)
    if not title.strip():
        raise invalid("title", "missing_field")
    if len(title) > TITLE:
        raise too_long("title", TITLE)
    return title


def _check_length(name: str, text: str) -> None:
    if len(text) > BODY:
        raise too_long(name, BODY)


def _names(given: Any) -> tuple[str, ...]:
    names = [label if isinstance(label, str) else label.get("name", "") for label in given]
    _check_labels(names)
    return tuple(names)


def _check_labels(names: list[str]) -> None:
    for name in names:
        if not name.strip():
            raise invalid("name", "missing_field", resource="Label")
        if len(name) > LABEL:
            raise invalid(
                "name", "custom", message=f"name is too long (maximum is {LABEL} characters)", resource="Label"
            )


def _people(github: GitHubState, body: dict[str, Any], *, strict: bool = True) -> tuple[str, ...]:
    """The people to assign: GitHub takes ten and drops the rest without a word, and knows collaborators only."""
    given = [assignee if isinstance(assignee, str) else assignee["login"] for assignee in body.get("assignees") or ()]
    known = {login.lower(): login for login in github.store.people}
    unknown = [login for login in given if login.lower() not in known]
    if unknown and strict:
        raise invalid("assignees", "invalid", value=unknown[0])
    return tuple(dict.fromkeys(known[login.lower()] for login in given if login.lower() in known))[:ASSIGNEES]


def _milestone(home: Repository, body: dict[str, Any]) -> int:
    """The number of an open milestone; 0 for none."""
    number = body.get("milestone")
    if number is None:
        return 0
    if number not in home.milestones:
        raise invalid("milestone", "invalid", value=number)
    return int(number)


def _original(github: GitHubState, body: dict[str, Any]) -> int:
    """The number of the issue that this one repeats; 0 for none."""
    if body.get("state_reason") != "duplicate" or "duplicate_issue_id" not in body:
        return 0
    issue = github.store.by_id(body["duplicate_issue_id"])
    if issue is None:
        raise invalid("duplicate_issue_id", "invalid", value=body["duplicate_issue_id"])
    return issue.number


_ORDERS: dict[str, Callable[[Issue], Any]] = {
    "created": lambda one: (one.created, one.number),
    "updated": lambda one: (one.updated, one.number),
    "comments": lambda one: (len(one.comments), one.number),
}
