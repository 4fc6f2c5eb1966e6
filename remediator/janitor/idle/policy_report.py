"""What a pass has found of one IdlePolicy, and done: for a person, and in GPU-hours."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from remediator.core.idle_policy import Finding, IdleAction, IdlePolicy
from remediator.core.owner_work import Notice
from remediator.janitor.decide import JanitorReason
from remediator.janitor.idle.holding import WILL, Holding
from remediator.janitor.idle.table import WrittenNotice
from remediator.janitor.outcome import JanitorOutcome, word
from remediator.janitor.subject import address
from remediator.kube.wire.times import stamp

SHOWN = 100  # lines of one policy


NOUNS = {
    Finding.IDLE_CPU: "CPU idle",
    Finding.RESTARTS: "restart again and again",
    Finding.PENDING: "do not begin",
    Finding.ALERT: "named by the alert",
}
OF = {
    IdleAction.SUSPEND: JanitorOutcome.SUSPENDED,
    IdleAction.SCALE: JanitorOutcome.SCALED,
    IdleAction.DELETE: JanitorOutcome.DELETED,
}


class PolicyReportLine(NamedTuple):
    """One of them, why, and a sentence."""

    outcome: JanitorOutcome
    what: str
    reason: JanitorReason
    message: str


class NoticeGiven(NamedTuple):
    """A notice that an owner has now. `until`: when something is done; None where nothing is taken."""

    what: str
    namespace: str
    owner: str
    until: datetime | None


MOST_NOTICES = 200  # of one policy that are shown in metrics


@dataclass(slots=True)
class PolicyReport:
    """One policy in one pass. `enforces`: whether anything is written."""

    policy: IdlePolicy
    enforces: bool
    lines: list[PolicyReportLine] = field(default_factory=list)
    reasons: Counter[tuple[JanitorOutcome, JanitorReason]] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    gpus: int = 0  # of what was found, and nobody keeps
    owners: int = 0  # of it, each with all of its Pods
    notices: list[NoticeGiven] = field(default_factory=list)
    standing: dict[str, Notice] = field(default_factory=dict)  # by uid, what bears a notice of the policy now
    left: int = 0  # for later passes: as many were done as one pass may do

    def note(self, holding: Holding) -> None:
        """Count what the policy has found, and nobody keeps."""
        self.owners += 1
        self.gpus += holding.gpus

    def notify(self, holding: Holding, until: datetime | None) -> None:
        """Note that its owner has a notice now."""
        what = address(holding.kind, holding.namespace, holding.name)
        if len(self.notices) < MOST_NOTICES:
            self.notices.append(NoticeGiven(what, holding.namespace, holding.owner(self.policy), until))

    def stands(self, holding: Holding, mark: WrittenNotice, why: str) -> None:
        """Note that it bears this notice now, whatever becomes of it."""
        if mark.policy != self.policy.name or mark.at is None:
            return
        ends = max(mark.until, mark.at + self.policy.grace) if mark.until else None
        action = holding.action(self.policy)
        message = f"{why}; {WILL[action]} after {stamp(ends)}" if ends and action else f"{why}; {WILL[None]}"
        place = holding.kind.plural, holding.namespace, holding.name, holding.uid, holding.owner(self.policy)
        finds = self.policy.finds.value
        self.standing[holding.uid] = Notice(self.policy.name, finds, *place, mark.at, ends, message)

    def add(self, outcome: JanitorOutcome, holding: Holding, reason: JanitorReason, message: str) -> None:
        """Note what became of it; of many the first are shown, and all are counted."""
        self.reasons[outcome, reason] += 1
        if len(self.lines) < SHOWN:
            owner = holding.owner(self.policy)
            by = f"{owner}: " if owner else ""
            self.lines.append(
                PolicyReportLine(outcome, address(holding.kind, holding.namespace, holding.name), reason, by + message)
            )

    def count(self, outcome: JanitorOutcome) -> int:
        """How many had this outcome."""
        return sum(count for (became, _), count in self.reasons.items() if became is outcome)

    @property
    def gpu_hours(self) -> float:
        """What was not used in the time that the policy looks at."""
        return self.gpus * self.policy.idle_for.total_seconds() / 3600

    def word(self, outcome: JanitorOutcome) -> str:
        """What a person reads of an outcome."""
        return word(outcome, done=self.enforces)

    def _found(self) -> str:
        if self.policy.finds is not Finding.IDLE_GPUS:
            return f"{NOUNS[self.policy.finds]} {self.owners}"
        hours = f"{self.gpu_hours:g} GPU-hours in the last {self.policy.idle_for.total_seconds() / 3600:g} h"
        return f"{self.gpus} GPUs idle, {hours}"

    def rendered(self) -> Iterator[str]:
        """For a person, line by line."""
        mode = "Enforce" if self.enforces else "DryRun"
        counts = [f"{self.word(outcome)} {count}" for outcome in JanitorOutcome if (count := self.count(outcome))]
        became = ", ".join(counts) or "nothing to do"
        yield f"idle policy {self.policy.name} {mode}: {self._found()}; {became}"
        for line in self.lines:
            yield f"{self.word(line.outcome)}  {line.what}  {line.reason.value}  {line.message}"
        if (more := self.reasons.total() - len(self.lines)) > 0:
            yield f"{more} more"
        if self.left:
            yield f"left for later passes: {self.left}, for maxPerRun is reached"
