"""What one pass has found and done, in counts and in lines for a person."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from remediator.core.idle_policy import JanitorMode
from remediator.janitor.decide import Deadline, JanitorReason
from remediator.janitor.idle.policy_report import PolicyReport
from remediator.janitor.outcome import OF_TTL, JanitorOutcome, word
from remediator.janitor.subject import address
from remediator.kube.wire.client import Kind
from remediator.kube.wire.times import stamp

SHOWN = 200  # lines of one outcome


class PassReportLine(NamedTuple):
    """One object, why, and a sentence."""

    what: str
    reason: JanitorReason
    message: str


@dataclass(slots=True)
class Report:
    """One pass. `counts` has the names that kube-janitor logs; `problems` are about rules and kinds, not objects."""

    mode: JanitorMode
    at: datetime
    counts: Counter[str] = field(default_factory=Counter)
    totals: Counter[JanitorOutcome] = field(default_factory=Counter)
    lines: dict[JanitorOutcome, list[PassReportLine]] = field(
        default_factory=lambda: {outcome: [] for outcome in OF_TTL}
    )
    reasons: Counter[tuple[JanitorOutcome, JanitorReason]] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    waiting: int = 0
    left: int = 0  # for later passes: as many were done as one pass may do
    idle: list[PolicyReport] = field(default_factory=list)
    idle_problems: list[str] = field(default_factory=list)
    idle_whole: bool = True  # whether all IdlePolicies could be read and looked at
    looked: bool = True  # whether IdlePolicies were looked at in this pass; else `idle` is of the pass that did

    def add(
        self, outcome: JanitorOutcome, kind: Kind[Any], namespace: str, name: str, reason: JanitorReason, message: str
    ) -> None:
        """Note what became of an object; of thousands the first are shown, and all are counted."""
        self.totals[outcome] += 1
        self.reasons[outcome, reason] += 1
        if outcome is JanitorOutcome.DELETED:
            self.counts[f"{kind.plural}-deleted"] += 1
        if len(self.lines[outcome]) < SHOWN:
            self.lines[outcome].append(PassReportLine(address(kind, namespace, name), reason, message))

    def new(self, outcome: JanitorOutcome, before: "Report | None") -> list[PassReportLine]:
        """The objects of an outcome that the pass before did not have there for the same reason."""
        known = {(line.what, line.reason) for line in before.lines[outcome]} if before else set()
        return [line for line in self.lines[outcome] if (line.what, line.reason) not in known]

    def word(self, outcome: JanitorOutcome) -> str:
        """What a person reads of an outcome."""
        return word(outcome, done=self.mode is JanitorMode.ENFORCE)

    def rendered(self) -> Iterator[str]:
        """The report for a person, line by line."""
        totals = [f"{self.word(outcome)} {self.totals[outcome]}" for outcome in OF_TTL]
        seen = self.counts["resources-processed"]
        yield f"{stamp(self.at)} {self.mode}: {seen} objects; {', '.join(totals)}, waiting {self.waiting}"
        yield from (f"problem: {problem}" for problem in (*self.problems, *self.idle_problems))
        shown = [(self.word(outcome), line) for outcome in OF_TTL for line in self.lines[outcome]]
        widths = [max((len(text) for text in column), default=0) for column in zip(*map(_cells, shown), strict=True)]
        for row in map(_cells, shown):
            padded = "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True))
            yield padded.rstrip()
        for outcome in OF_TTL:
            if (more := self.totals[outcome] - len(self.lines[outcome])) > 0:
                yield f"{self.word(outcome)}: {more} more"
        if self.left:
            yield f"left for later passes: {self.left}, for --max-deletions is reached"
        for policy in self.idle:
            yield from policy.rendered()


def _cells(shown: tuple[str, PassReportLine]) -> tuple[str, str, str, str]:
    word, line = shown
    return word, line.what, line.reason.value, line.message


def ended(deadline: Deadline) -> str:
    """Since when the time of an object is over, and what says so."""
    return f"{deadline.because}; over since {stamp(deadline.at)}"
