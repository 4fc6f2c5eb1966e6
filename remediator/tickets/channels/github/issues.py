"""PyGithub's issue → our issue."""

from datetime import UTC

from github.Issue import Issue as Theirs

from remediator.tickets.channels.base import Issue
from remediator.tickets.channels.github import text


def ours(theirs: Theirs) -> Issue:
    """All of it, aware UTC, under its present name: it may have been asked for under another.

    May ask GitHub once more for who closed it, which lists leave out.
    """
    is_open, body = theirs.state == "open", theirs.body or ""
    return Issue(
        repository=where(theirs),
        number=theirs.number,
        url=theirs.html_url,
        title=theirs.title,
        body=body,
        room=text.room(body),
        open=is_open,
        reason=theirs.state_reason or "",
        closed_by_user=not is_open and _by_user(theirs),
        labels=tuple(label.name for label in theirs.labels),
        assignees=tuple(user.login for user in theirs.assignees),
        created=theirs.created_at.astimezone(UTC),
        milestone=theirs.milestone.title if theirs.milestone else "",
    )


def where(theirs: Theirs) -> str:
    """The repository of an issue, under its present name."""
    return "/".join(theirs.url.split("/")[-4:-2])  # …/repos/OWNER/NAME/issues/12


def is_pull_request(theirs: Theirs) -> bool:
    """GitHub lists pull requests among issues. Asking for `pull_request` would cost one request for each issue."""
    return "/pull/" in theirs.html_url


def _by_user(theirs: Theirs) -> bool:
    """Who opened our issues is us, under whatever name a token or App gives; a closer without a name is not."""
    closer = theirs.closed_by
    return closer is None or closer.login.lower() != theirs.user.login.lower()
