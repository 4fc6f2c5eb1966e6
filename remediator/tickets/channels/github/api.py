"""Requests to GitHub's REST API through PyGithub, for one thread. Raises what PyGithub and requests raise."""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import github
from github.Issue import Issue as Theirs
from github.Repository import Repository
from urllib3.util import Retry

from remediator.core.ticket import IssueRef
from remediator.tickets.channels.base import Complete, Draft, Issue, Later, Refused, Relabel, Visibility
from remediator.tickets.channels.github import text
from remediator.tickets.channels.github.answers import checked
from remediator.tickets.channels.github.comments import Comments
from remediator.tickets.channels.github.credentials import Credentials
from remediator.tickets.channels.github.errors import GithubCall, Redirected, field_of
from remediator.tickets.channels.github.graphql_projects import GraphqlProjects
from remediator.tickets.channels.github.issues import is_pull_request, ours, where
from remediator.tickets.channels.github.projects import CardIssue, Projects, has_rest_projects
from remediator.tickets.channels.github.rate_limit import RateLimits
from remediator.tickets.channels.github.rest_projects import RestProjects

API_VERSION = "2022-11-28"
PER_PAGE = 100
KEPT = 512  # issues whose ETag is remembered: one read again unchanged costs no quota


class Api:
    """Issues of one GitHub. Every issue or comment that is sent is counted in `limits`."""

    def __init__(
        self, base_url: str, credentials: Credentials, limits: RateLimits, *, timeout: int, spacing: float
    ) -> None:
        """Asks nothing yet. Raises ValueError where the URL is not one of http or https."""
        self._github = _connect(base_url, credentials, timeout=timeout, spacing=spacing)
        self._limits = limits
        self.comments = Comments(self._github.requester, limits)
        by = RestProjects if has_rest_projects(base_url) else GraphqlProjects
        self.projects: Projects = by(self._github.requester)
        self._known: OrderedDict[tuple[str, int], Theirs] = OrderedDict()

    def close(self) -> None:
        """Give the connections back."""
        self._github.close()

    def get(self, ref: IssueRef) -> Issue:
        """One issue as it is now."""
        theirs = self._issue(ref)
        theirs.update()
        checked(theirs.raw_data, "state")  # a proxy's page leaves PyGithub with what it knew before
        return ours(theirs)

    def opened_by(self, ref: IssueRef) -> str:
        """Who opened an issue."""
        return self._issue(ref).user.login

    def card_issue(self, ref: IssueRef) -> CardIssue:
        """An issue as boards know it."""
        theirs = self._issue(ref)
        return CardIssue(theirs.id, theirs.node_id, where(theirs))

    def create(self, repository: str, draft: Draft) -> Issue:
        """Open an issue, also where the repository has another name now."""
        try:
            return self._create_in(repository, draft)
        except Redirected:  # not carried out, so this one is not a repetition either
            return self._create_in(self._present(repository), draft)

    def _create_in(self, repository: str, draft: Draft) -> Issue:
        asked, more = draft.assignees[: text.ASSIGNEES], draft.assignees[text.ASSIGNEES :]
        note = text.unassigned(more, f"GitHub takes {text.ASSIGNEES} people")
        try:
            return self._post(repository, draft, asked, note)
        except github.GithubException as error:
            if error.status != 422 or field_of(error) != "assignees":
                raise
        # Refused with 422 is not carried out, so this one is not a repetition.
        return self._post(repository, draft, (), text.unassigned(draft.assignees, "GitHub did not take one of them"))

    def _post(self, repository: str, draft: Draft, assignees: tuple[str, ...], note: str) -> Issue:
        wanted: dict[str, Any] = {
            "title": text.title(draft.title),
            "body": text.new(draft, note),
            "labels": list(draft.labels),
            "assignees": list(assignees),
        }
        if draft.milestone:
            wanted["milestone"] = self._milestone(repository, draft.milestone)
        self._limits.count_creation()
        return ours(self._send("POST", f"/repos/{repository}/issues", wanted))

    def _milestone(self, repository: str, title: str) -> int:
        """The number of an open milestone; GitHub takes nothing else. Raises Refused where there is none."""
        known = self._repository(self._present(repository)).get_milestones(state="open")
        number = next((milestone.number for milestone in known if milestone.title == title), None)
        if number is None:
            remedy = "Open it there, or correct milestone in the route"
            raise Refused(f"{repository} has no open milestone {title!r}. {remedy}", "milestone")
        return number

    def complete(self, issue: Issue, change: Complete) -> Issue:
        """Add what could not be there from the beginning. Whom GitHub does not take it leaves out."""
        if change.labels:
            self._issue(issue.ref).add_to_labels(*change.labels)
        if change.assignees:
            self._issue(issue.ref).add_to_assignees(*change.assignees)
        if change.milestone:
            return self.patch(issue.ref, {"milestone": self._milestone(issue.repository, change.milestone)})
        return self.get(issue.ref)

    def patch(self, ref: IssueRef, wanted: Mapping[str, Any]) -> Issue:
        """Replace the fields that are named."""
        return ours(self._send("PATCH", f"/repos/{ref.repository}/issues/{ref.number}", wanted))

    def _send(self, method: str, path: str, wanted: Mapping[str, Any]) -> Theirs:
        """PyGithub's own edit does not know duplicate_issue_id, and it takes a redirect for an issue."""
        headers, data = self._github.requester.requestJsonAndCheck(method, path, input=wanted)
        return Theirs(self._github.requester, headers, checked(data, "number"), completed=True)

    def close_issue(self, ref: IssueRef, duplicate_of: int | None) -> Issue:
        """Close as completed, or as a duplicate of the issue with this number."""
        if duplicate_of is None:
            return self.patch(ref, {"state": "closed", "state_reason": "completed"})
        original = self._repository(ref.repository).get_issue(duplicate_of).id  # its own id, not the number
        return self.patch(ref, {"state": "closed", "state_reason": "duplicate", "duplicate_issue_id": original})

    def comment(self, ref: IssueRef, words: str) -> None:
        """Add a comment."""
        self._limits.count_creation()
        made = self._issue(ref).create_comment(text.cut(words))
        checked(made.raw_data, "html_url")

    def relabel(self, issue: Issue, change: Relabel) -> Issue:
        """Add and remove labels one by one; one to be removed that is not there is fine."""
        theirs = self._issue(issue.ref)
        if change.add:
            theirs.add_to_labels(*change.add)
        for name in change.remove:
            try:
                theirs.remove_from_labels(name)
            except github.GithubException as error:
                if error.status != 404 or "Label" not in str(error.data):  # it is the issue that is not there
                    raise
        kept = (label for label in issue.labels if label not in change.remove)
        return replace(issue, labels=tuple(dict.fromkeys((*kept, *change.add))))

    def find(self, repository: str, marker: str, label: str, since: datetime) -> list[Issue]:
        """Issues whose body holds `marker`, oldest first."""
        present = self._present(repository)
        listed = self._repository(present).get_issues(
            state="all", labels=[label], since=since.astimezone(UTC), sort="created", direction="asc"
        )
        marked = [theirs for theirs in listed if _bears(theirs, marker)] or self._search(present, marker)
        return sorted((ours(theirs) for theirs in marked), key=lambda issue: (issue.created, issue.number))

    def _search(self, repository: str, marker: str) -> list[Theirs]:
        """Issues by their text. Search lags behind by minutes, and does not count into the ordinary quota."""
        call = GithubCall(f"search {repository}")
        self._limits.admit(call, "search")
        phrase = marker.replace('"', " ").strip()
        hits = self._github.search_issues(f'repo:{repository} is:issue in:body "{phrase}"', sort="created", order="asc")
        marked: list[Theirs] = [theirs for theirs in hits if _bears(theirs, marker)]
        if hits.incomplete_results and not marked:
            raise Later(f"could not {call.what}: GitHub gave up searching half way", 60.0)
        return marked

    def visibility(self, repository: str) -> Visibility:
        """Who may read what is written there; what only an enterprise may read is private, too."""
        answer = self._repository(repository).complete().raw_data
        known: dict[object, Visibility] = {True: Visibility.PRIVATE, False: Visibility.PUBLIC}
        return known.get(answer.get("private"), Visibility.UNKNOWN)

    def _repository(self, repository: str) -> Repository:
        return self._github.get_repo(repository)

    def _present(self, repository: str) -> str:
        """The name that a repository has now: on the way to it, a write goes nowhere and a list loses its filters."""
        return self._repository(repository).complete().full_name

    def _issue(self, ref: IssueRef) -> Theirs:
        """The issue, unread, or as it was when it was read last."""
        key = ref.repository, ref.number
        if key not in self._known:
            self._known[key] = self._repository(ref.repository).get_issue(ref.number)
        self._known.move_to_end(key)
        if len(self._known) > KEPT:
            self._known.popitem(last=False)
        return self._known[key]


def _bears(theirs: Theirs, marker: str) -> bool:
    return marker in (theirs.body or "") and not is_pull_request(theirs)


def _connect(base_url: str, credentials: Credentials, *, timeout: int, spacing: float) -> github.Github:
    if not base_url.startswith(("https://", "http://")):
        raise ValueError(f"the URL of GitHub's API must begin with https://, not {base_url!r}: https://api.github.com")
    return github.Github(
        base_url=base_url,
        auth=credentials,
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
