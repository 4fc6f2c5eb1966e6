"""GitHub as all processes of one seed see it: issues, what goes wrong there, and what users do with issues."""

import os
import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from remediator.clock import Clock
from remediator_sim.github import Issue, MemoryGitHub, TimelineEvent
from remediator_sim.github.person import Person
from remediator_sim.invariants.tickets import SeenIssue
from remediator_sim.simulation.clock import now, true_time

REPOSITORIES = DEFAULT, GPU, ELSEWHERE = "org/ops", "org/gpu", "org/elsewhere"
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
        self.github = MemoryGitHub(REPOSITORIES, (ANN,), clock=Clock(true_time, now), described=False)
        self._report, self._note = report, note
        self._subjects: dict[int, str] = {}  # by GitHub's own id, which stays: what our text and title said at first
        self._moved: set[int] = set()
        self._words: dict[int, str] = {}
        self._labels: dict[int, str] = {}
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

    def there(self) -> list[Issue]:
        """The issues that are there now, oldest first."""
        return [issue for issue in self._newest() if not issue.deleted]

    def _newest(self) -> list[Issue]:
        """Each issue as it was last, deleted ones too; one that was moved stands at both places."""
        homes = (self.github.repository(name).issues for name in REPOSITORIES)
        newest = (versions[-1] for home in homes for versions in home.values())
        return sorted(newest, key=lambda issue: (issue.id, issue.deleted))

    def move(self, issue: Issue) -> None:
        """A user moves an issue into another repository."""
        self._moved.add(issue.id)
        self.ann.transfer(issue.repository, issue.number, ELSEWHERE)

    def write(self, issue: Issue, text: str) -> None:
        """A user writes below our part."""
        self._words[issue.id] = text
        self.ann.edit(issue.repository, issue.number, body=f"{issue.body}\n\n{text}")

    def label(self, issue: Issue, name: str) -> None:
        """A user adds a label."""
        self._labels[issue.id] = name
        self.ann.label(issue.repository, issue.number, name)

    def look(self) -> None:
        """Tell of the issues where they have changed."""
        seen = [self._shown(issue) for issue in self._newest()]
        if seen == self._seen:
            return
        before = {(issue.repository, issue.number): issue.open for issue in self._seen}
        for issue in seen:
            if before.get((issue.repository, issue.number)) is not issue.open:
                who, word = "a user" if issue.by_user else "us", "open" if issue.open else "closed"
                self._note("github", f"{issue.repository}#{issue.number} {issue.subject} is {word} by {who}")
        self._seen = seen
        self._report(seen)

    def _shown(self, issue: Issue) -> SeenIssue:
        if issue.id not in self._subjects:
            marker = _MARKER.search(issue.body)
            self._subjects[issue.id] = f"{issue.title.partition(': ')[0]} ({marker[1] if marker else issue.id})"
        done = [event for event in issue.events if event.kind in ("closed", "reopened")]
        by_user = issue.deleted or issue.id in self._moved or (bool(done) and done[-1].actor == ANN)
        is_open, what = issue.open and not issue.deleted, self._left(issue, done)
        kept, lost = (tuple(text for text, stays in what if stays is wanted) for wanted in (True, False))
        return SeenIssue(issue.repository, issue.number, is_open, self._subjects[issue.id], by_user, kept, lost)

    def _left(self, issue: Issue, done: list[TimelineEvent]) -> Iterator[tuple[str, bool]]:
        """What a user did to an issue, and whether it is still so."""
        if issue.id in self._words:
            yield "its words", self._words[issue.id] in issue.body
        if issue.id in self._labels:
            yield "its label", self._labels[issue.id] in issue.labels
        for before, after in pairwise(done):
            if before.actor == ANN and before.kind == "closed":
                yield "its close", after.actor == ANN
