"""A channel in memory whose faults are scripted. It is held to what GitHub's does by test_channel.py."""

from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from remediator.core.ticket import IssueRef
from remediator.tickets.channels.base import (
    VERBS,
    Change,
    Close,
    Complete,
    Draft,
    Edit,
    Issue,
    Marker,
    Refused,
    Relabel,
    Reopen,
    Unsure,
    Visibility,
)
from remediator.tickets.channels.section import fenced, outside, overhead, spliced

START = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)


class MemoryChannel:
    """Issues in memory. `script(verb, fault)`: the next call of that verb ends so.

    Faults: an exception to raise; "lost": carried out, but the answer is Unsure; "dropped": not carried out, Unsure.
    `hidden` holds numbers that `find` does not show yet. `calls` are the verbs that changed something, in order.
    """

    room = 64_000

    def __init__(self) -> None:
        self.issues: list[Issue] = []
        self.comments: defaultdict[int, list[str]] = defaultdict(list)
        self.calls: list[str] = []
        self.reads = 0
        self.seen_by = Visibility.PRIVATE
        self.milestones: set[str] = set()
        self.hidden: set[int] = set()
        self.deleted: set[int] = set()
        self.clock: Callable[[], datetime] = lambda: START
        self._touched: dict[int, datetime] = {}
        self._faults: defaultdict[str, deque[Any]] = defaultdict(deque)

    def script(self, verb: str, *faults: Any) -> None:
        """What happens to the next calls of a verb; None lets one pass."""
        self._faults[verb].extend(faults)

    def heal(self, verb: str) -> None:
        """No fault of a verb is left."""
        self._faults[verb].clear()

    def left(self, verb: str) -> int:
        """How many scripted faults of a verb have not come to pass."""
        return len(self._faults[verb])

    def _fault(self, verb: str) -> Any:
        fault = self._faults[verb].popleft() if self._faults[verb] else None
        if isinstance(fault, Exception):
            raise fault
        if fault == "dropped":
            raise Unsure("the connection broke")
        return fault

    async def create(self, repository: str, draft: Draft) -> Issue:
        fault = self._fault("create")
        number = len(self.issues) + 1
        url = f"https://tracker.test/{repository}/issues/{number}"
        milestone = self._known(draft.milestone)
        labels, people, now = draft.labels, draft.assignees, self.clock()
        body = fenced(draft.text, draft.marker, kept_up=draft.kept_up)
        issue = Issue(repository, number, url, draft.title, body, _room(body), True, "", False, labels, people, now)
        issue = replace(issue, milestone=milestone)
        self.issues.append(issue)
        self._touched[number] = now
        self.calls.append("create")
        if fault == "lost":
            raise Unsure("the connection broke")
        return issue

    async def visibility(self, repository: str) -> Visibility:
        self._fault("visibility")
        return self.seen_by

    async def get(self, ref: IssueRef) -> Issue:
        self._fault("get")
        self.reads += 1
        return self._there(ref.number)

    async def find(self, repository: str, marker: str, label: str, since: datetime) -> list[Issue]:
        self._fault("find")
        shown = [issue for issue in self.issues if issue.repository == repository and issue.number not in self.hidden]
        return [issue for issue in shown if marker in issue.body and self._touched[issue.number] >= since]

    async def change(self, issue: Issue, change: Change) -> Issue:
        self._fault(VERBS[type(change)])
        self._there(number := issue.number)
        match change:
            case Edit(text, marker):
                body = spliced(issue.body, fenced(text, marker))
                return issue if body == issue.body else self._change("edit", number, body=body)
            case Relabel(add, remove):
                kept = tuple(label for label in self.issue(number).labels if label not in remove)
                return self._change("label", number, labels=tuple(dict.fromkeys((*kept, *add))))
            case Complete(labels, assignees, milestone):
                return self._completed(number, Complete(labels, assignees, self._known(milestone)))
            case Close(duplicate_of):
                reason = "completed" if duplicate_of is None else "duplicate"
                return self._change("close", number, open=False, reason=reason, closed_by_user=False)
            case Reopen():
                return self._change("reopen", number, open=True, reason="reopened", closed_by_user=False)

    async def comment(self, issue: IssueRef, text: str) -> None:
        fault = self._fault("comment")
        self._there(issue.number)
        self.comments[issue.number].append(text)
        self.calls.append("comment")
        if fault == "lost":
            raise Unsure("the connection broke")

    async def aclose(self) -> None:
        self.calls.append("aclose")

    def _known(self, milestone: str) -> str:
        if milestone and milestone not in self.milestones:
            raise Refused(f"no open milestone {milestone!r}", "milestone")
        return milestone

    def _completed(self, number: int, change: Complete) -> Issue:
        issue = self.issue(number)
        labels, people = (*issue.labels, *change.labels), (*issue.assignees, *change.assignees)
        kept = {"labels": tuple(dict.fromkeys(labels)), "assignees": tuple(dict.fromkeys(people))}
        return self._change("complete", number, **kept, milestone=change.milestone or issue.milestone)

    def _there(self, number: int) -> Issue:
        if number in self.deleted:
            raise Refused("the issue was deleted", "issue")
        return self.issue(number)

    def _change(self, verb: str, number: int, **changes: Any) -> Issue:
        self.calls.append(verb)
        return self.change_by_user(number, **changes)

    # --- what users do and see ---------------------------------------------------------------------------------------

    def issue(self, number: int) -> Issue:
        """One issue."""
        return self.issues[number - 1]

    def change_by_user(self, number: int, **changes: Any) -> Issue:
        """Change an issue, as a user does."""
        changed = replace(self.issue(number), **changes)
        self.issues[number - 1] = replace(changed, room=_room(changed.body))
        self._touched[number] = self.clock()
        return self.issue(number)

    def shut(self, number: int) -> None:
        """A user closes it."""
        self.change_by_user(number, open=False, reason="completed", closed_by_user=True)

    def delete(self, number: int) -> None:
        """A user deletes it."""
        self.shut(number)
        self.hidden.add(number)
        self.deleted.add(number)

    @property
    def there(self) -> list[Issue]:
        """The issues that nobody deleted."""
        return [issue for issue in self.issues if issue.number not in self.deleted]

    @property
    def open(self) -> list[int]:
        """The numbers of open issues."""
        return [issue.number for issue in self.issues if issue.open]


def _room(body: str) -> int:
    """What GitHub leaves for our part."""
    return max(0, min(64_000, 65_536 - outside(body) - overhead(Marker("0" * 16, START))))
