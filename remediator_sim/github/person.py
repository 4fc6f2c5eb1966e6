"""A person at GitHub's web pages, for tests and demonstrations: what they do has their name in the timeline."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from remediator_sim.github.store import GithubStore, Issue


@dataclass(frozen=True, slots=True)
class Person:
    """Acts at once, and may do everything."""

    login: str
    _store: GithubStore
    _now: Callable[[], datetime]

    def open(
        self, repository: str, title: str, body: str = "", *, labels: tuple[str, ...] = (), pull: bool = False
    ) -> Issue:
        """Open an issue, or a pull request, which GitHub lists among issues."""
        return self._store.create(
            repository, self.login, self._now(), title=title, body=body, labels=labels, pull_request=pull
        )

    def close(self, repository: str, number: int, reason: str = "completed") -> None:
        """Close for `reason`: completed, not_planned or duplicate."""
        self._store.close(self._issue(repository, number), self.login, self._now(), reason)

    def reopen(self, repository: str, number: int) -> None:
        """Open it again."""
        self._store.reopen(self._issue(repository, number), self.login, self._now())

    def comment(self, repository: str, number: int, text: str) -> int:
        """Say something; the id of the comment."""
        return self._store.comment(self._issue(repository, number), self.login, self._now(), text).id

    def edit_comment(self, repository: str, number: int, text: str) -> None:
        """Rewrite the comment with this id, whoever wrote it."""
        commented = self._store.commented(repository, number)
        if commented is None:
            raise KeyError(f"comment {number} of {repository} is not there")
        self._store.rewrite(*commented, body=text, edited=self._now())

    def edit(self, repository: str, number: int, *, title: str | None = None, body: str | None = None) -> None:
        """Rewrite the title, the body or both."""
        self._store.edit(self._issue(repository, number), self.login, self._now(), title=title, body=body)

    def label(self, repository: str, number: int, *names: str) -> None:
        """Add labels."""
        issue = self._issue(repository, number)
        self._store.relabel(issue, (*issue.labels, *names), self.login, self._now())

    def unlabel(self, repository: str, number: int, *names: str) -> None:
        """Remove labels."""
        issue = self._issue(repository, number)
        kept = tuple(label for label in issue.labels if label not in names)
        self._store.relabel(issue, kept, self.login, self._now())

    def assign(self, repository: str, number: int, *people: str) -> None:
        """Assign exactly these people."""
        self._store.reassign(self._issue(repository, number), people, self.login, self._now())

    def open_milestone(self, repository: str, title: str) -> int:
        """Open a milestone; its number."""
        titles = self._store.repositories[repository].milestones
        titles[len(titles) + 1] = title
        return len(titles)

    def plan(self, repository: str, number: int, milestone: int) -> None:
        """Give an issue the milestone of this number, 0 for none."""
        self._store.plan(self._issue(repository, number), milestone, self.login, self._now())

    def delete(self, repository: str, number: int) -> None:
        """Delete it: from now on it is gone (410)."""
        self._store.delete(self._issue(repository, number), self._now())

    def transfer(self, repository: str, number: int, to: str) -> Issue:
        """Move it into another repository."""
        return self._store.transfer(self._issue(repository, number), to, self._now())

    def rename(self, repository: str, to: str) -> None:
        """Give a repository another name."""
        self._store.rename(repository, to)

    def _issue(self, repository: str, number: int) -> Issue:
        issue = self._store.issue(repository, number)
        if issue is None or issue.deleted:
            raise KeyError(f"{repository}#{number} is not there")
        return issue
