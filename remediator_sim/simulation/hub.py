"""GitHub as all processes of one seed see it: issues, what goes wrong there, and what users do with issues."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from remediator.clock import Clock
from remediator_sim.github import Issue, MemoryGitHub
from remediator_sim.github.person import Person
from remediator_sim.invariants.outside import SeenIssue
from remediator_sim.simulation.clock import now, true_time

DEFAULT, GPU, ELSEWHERE = "org/ops", "org/gpu", "org/elsewhere"
ANN = "ann"
ROUTES: dict[str, Any] = {"default": {"repository": DEFAULT, "labels": ["gpu-node"], "assignees": [ANN]}}
ROUTES |= {"routes": {"gpu": {"repository": GPU, "labels": ["hardware"]}}}
_MARKER = re.compile("<!-- remediator ticket ([0-9a-f]+) ")


class Hub:
    """One GitHub. `report` is given the issues whenever one of them has changed.

    `away`: no connection comes about; `slow`: by how many seconds each answer is late.
    """

    def __init__(self, report: Callable[[list[SeenIssue]], None], note: Callable[[str, str], None]) -> None:
        self.away, self.slow = False, 0.0
        self.github = MemoryGitHub((DEFAULT, GPU, ELSEWHERE), (ANN,), clock=Clock(true_time, now), described=False)
        self._report, self._note = report, note
        self._subjects: dict[int, str] = {}  # by GitHub's own id, which stays: what our text and title said at first
        self._moved: set[int] = set()
        self._seen: list[SeenIssue] = []
        self._folder = TemporaryDirectory(prefix="simulation-")
        self.routes, self.token = Path(self._folder.name) / "routes", Path(self._folder.name) / "token"
        self.routes.write_text(yaml.safe_dump(ROUTES))
        self.write_token()

    def close(self) -> None:
        """Its files go."""
        self._folder.cleanup()

    def write_token(self) -> None:
        """Let the token file hold the token that GitHub takes now."""
        self.token.write_text(self.github.token)
        stamp = round(now() * 1e9)  # else two writes may carry the same time, or not, as the machine has it
        os.utime(self.token, ns=(stamp, stamp))

    @property
    def ann(self) -> Person:
        """The user who does things with issues."""
        return self.github.person(ANN)

    def ours(self) -> list[Issue]:
        """All issues that are there now, oldest first."""
        listed = (issue for name in (DEFAULT, GPU, ELSEWHERE) for issue in self.github.issues(name))
        return sorted(listed, key=lambda issue: issue.id)

    def move(self, issue: Issue) -> None:
        """A user moves an issue into another repository."""
        self._moved.add(issue.id)
        self.ann.transfer(issue.repository, issue.number, ELSEWHERE)

    def look(self) -> None:
        """Tell of the issues where they have changed."""
        seen = [self._shown(issue) for issue in self.ours()]
        if seen == self._seen:
            return
        before, self._seen = {(issue.subject, issue.number): issue for issue in self._seen}, seen
        for issue in seen:
            old = before.get((issue.subject, issue.number))
            if old is None or old.open != issue.open:
                who = "a user" if issue.by_user else "us"
                self._note("github", f"{issue.repository}#{issue.number} {issue.subject} is {_word(issue)} by {who}")
        self._report(seen)

    def _shown(self, issue: Issue) -> SeenIssue:
        if issue.id not in self._subjects:
            marker = _MARKER.search(issue.body)
            self._subjects[issue.id] = f"{issue.title.partition(': ')[0]} ({marker[1] if marker else issue.id})"
        last = next((event for event in reversed(issue.events) if event.kind in ("closed", "reopened")), None)
        by_user = issue.id in self._moved or (last is not None and last.actor == ANN)
        return SeenIssue(issue.repository, issue.number, issue.open, self._subjects[issue.id], by_user)


def _word(issue: SeenIssue) -> str:
    return "open" if issue.open else "closed"
