"""What may be asked, with the models of GitHub's description for the question and the answer. One row per operation."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from remediator_sim.github import conversations, projects, rest_projects
from remediator_sim.github import handlers as do
from remediator_sim.github.request import GithubAnswer, GithubRequest

if TYPE_CHECKING:
    from remediator_sim.github.handlers import GitHubState

Handler = Callable[["GitHubState", GithubRequest], GithubAnswer]


@dataclass(frozen=True, slots=True)
class Route:
    """One operation. `asks` and `answers` are names of models, "" without a body; `creates` counts as content.

    `described`: its path in GitHub's description, with {} for each part that changes; "" for GraphQL.
    """

    method: str
    described: str
    pattern: re.Pattern[str]
    handler: Handler
    asks: str = ""
    answers: str = ""
    creates: bool = False
    resource: str = "core"


def find(request: GithubRequest) -> tuple[Route, GithubRequest] | None:
    """The row of a request, and the request with the parts of its path."""
    for route in ROUTES:
        if route.method == request.method and (match := route.pattern.fullmatch(request.path)):
            return route, replace(request, parts=match.groupdict())
    return None


def _row(
    method: str,
    path: str,
    handler: Handler,
    asks: str = "",
    answers: str = "",
    *,
    creates: bool = False,
    resource: str = "core",
) -> Route:
    pattern = re.compile(_PART.sub(_part, path))
    described = "" if path == GRAPHQL else _PART.sub("{}", path.replace(_REPO, "/repos/{}/{}"))
    return Route(method, described, pattern, handler, asks, answers, creates, resource)


def _part(match: re.Match[str]) -> str:
    return f"(?P<{match[1]}>{match[2] or '[^/]+'})"


GRAPHQL = "(?:/api)?/graphql"  # of Enterprise Server and of github.com
_PART = re.compile(r"\{(\w+)(?::([^}]+))?\}")
_REPO = "/repos/{repo:[^/]+/[^/]+}"
_ISSUE = _REPO + "/issues/{number:[0-9]+}"
_BOARD = "/orgs/{org}/projectsV2/{project:[0-9]+}"
_CARDS = "OrgsOrgProjectsV2ProjectNumberItems"
_P = "ReposOwnerRepoIssuesIssueNumber"
_REACTION = "ReposOwnerRepoIssuesCommentsCommentIdReactionsPostBody"
_EVENTS = (
    "list[LabeledIssueEvent | UnlabeledIssueEvent | RenamedIssueEvent | TimelineAssignedIssueEvent"
    " | TimelineUnassignedIssueEvent | MilestonedIssueEvent | DemilestonedIssueEvent"
    " | TimelineCommentEvent | StateChangeIssueEvent]"
)
_LABELS = f"{_P}LabelsPostBodyOneof0 | list[str]"

ROUTES = (
    _row("POST", GRAPHQL, projects.graphql, resource="graphql"),
    _row("GET", "/user", do.me, answers="PublicUser"),
    _row("GET", "/rate_limit", do.rate_limit, answers="RateLimitOverview", resource=""),
    _row("GET", "/search/issues", do.search, answers="SearchIssuesGetResponse200", resource="search"),
    _row("GET", _REPO, do.repository, answers="FullRepository"),
    _row("GET", _REPO + "/assignees", do.assignees, answers="list[SimpleUser]"),
    _row("GET", _REPO + "/assignees/{login}", do.assignable),
    _row(
        "GET",
        _REPO + "/collaborators/{login}/permission",
        conversations.permission,
        answers="RepositoryCollaboratorPermission",
    ),
    _row("GET", _REPO + "/labels", do.labels, answers="list[Label]"),
    _row("POST", _REPO + "/labels", do.make_label, "ReposOwnerRepoLabelsPostBody", "Label"),
    _row("GET", _REPO + "/milestones", do.milestones, answers="list[Milestone]"),
    _row("GET", _REPO + "/issues", do.list_issues, answers="list[Issue]"),
    _row("POST", _REPO + "/issues", do.create, "ReposOwnerRepoIssuesPostBody", "Issue", creates=True),
    _row("GET", _REPO + "/issues/comments", conversations.all_comments, answers="list[IssueComment]"),
    _row("POST", _REPO + "/issues/comments/{comment:[0-9]+}/reactions", conversations.react, _REACTION, "Reaction"),
    _row("GET", _ISSUE, do.get, answers="Issue"),
    _row("PATCH", _ISSUE, do.patch, f"{_P}PatchBody", f"{_P}PatchResponse200"),
    _row("GET", _ISSUE + "/timeline", do.timeline, answers=_EVENTS),
    _row("GET", _ISSUE + "/comments", do.comments, answers="list[IssueComment]"),
    _row("POST", _ISSUE + "/comments", do.comment, f"{_P}CommentsPostBody", "IssueComment", creates=True),
    _row("GET", _ISSUE + "/labels", do.issue_labels, answers="list[Label]"),
    _row("POST", _ISSUE + "/labels", do.add_labels, _LABELS, "list[Label]"),
    _row("DELETE", _ISSUE + "/labels/{name:.+}", do.remove_label, answers="list[Label]"),
    _row("POST", _ISSUE + "/assignees", do.assign, f"{_P}AssigneesPostBody", "Issue"),
    _row("DELETE", _ISSUE + "/assignees", do.unassign, f"{_P}AssigneesDeleteBody", "Issue"),
    _row("GET", _BOARD + "/fields", rest_projects.fields, answers="list[ProjectsV2Field]"),
    _row("GET", _BOARD + "/items", rest_projects.items, answers="list[ProjectsV2ItemWithContent]"),
    _row(
        "POST",
        _BOARD + "/items",
        rest_projects.add,
        f"{_CARDS}PostBodyOneof0 | {_CARDS}PostBodyOneof1",
        "ProjectsV2ItemSimple",
    ),
    _row("GET", _BOARD + "/items/{item:[0-9]+}", rest_projects.item, answers="ProjectsV2ItemWithContent"),
    _row(
        "PATCH",
        _BOARD + "/items/{item:[0-9]+}",
        rest_projects.move,
        f"{_CARDS}ItemIdPatchBody",
        "ProjectsV2ItemWithContent",
    ),
    _row(
        "POST",
        "/app/installations/{installation:[0-9]+}/access_tokens",
        do.installation_token,
        "AppInstallationsInstallationIdAccessTokensPostBody",
        "InstallationToken",
        resource="",
    ),
)
