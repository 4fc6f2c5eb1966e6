"""What a policy's Conditions prove of a node, by which of them, since when, and why one proves nothing."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache, partial
from typing import NamedTuple

from remediator.core.health import Health, clause_health, entry_health, worst
from remediator.core.node import Node, NodeCondition, Status
from remediator.core.policy import Clause, Policy, When
from remediator.core.reporters import NO_SUCH_POD, no_such_pod
from remediator.core.trust import mistrust, silence, timely
from remediator.core.writers import ever_counted

# Each look-up of a member takes Python a fifth of a microsecond; these are asked for in every decision.
_UNHEALTHY, _UNKNOWN, _HEALTHY = Health.UNHEALTHY, Health.UNKNOWN, Health.HEALTHY
_UNSAID = Status.UNKNOWN


@dataclass(frozen=True, slots=True, order=True)
class ConditionDoubt:
    """Why one condition proves nothing; `holds` where it has what a policy looks for, and is ignored."""

    condition: str
    why: str
    holds: bool = False

    def __str__(self) -> str:
        return f"{self.condition} {self.why}"


class Judgement(NamedTuple):
    """What a policy's conditions prove of a node. `since` is when the last clause came to hold, `due` adds `for`."""

    health: Health
    condition: NodeCondition | None = None
    since: datetime | None = None
    due: datetime | None = None
    doubts: tuple[ConditionDoubt, ...] = ()


_found = partial(tuple.__new__, Judgement)  # a named tuple of all its values, in a third of the time
_NEW_RULE = "the rule on these Events is new, and is said once it is met, or once there was none for its time"
_WELL = Judgement(_HEALTHY)
_ASKED = Judgement(_UNHEALTHY)  # that a user asks for an operation is the evidence


def judge(node: Node, policy: Policy, now: datetime) -> Judgement:
    """UNHEALTHY where an entry of `when` holds (the one due first counts), HEALTHY where none can, else UNKNOWN."""
    if policy.unreadable:
        return Judgement(_UNKNOWN, doubts=(ConditionDoubt(f"policy {policy.name}", "cannot be read"),))
    if policy.manual:
        return _ASKED
    if len(policy.when) == 1:  # as of most policies
        return _entry(node, policy.when[0], now)
    judgements = [_entry(node, when, now) for when in policy.when]
    settled = worst([judgement.health for judgement in judgements])
    if settled is _HEALTHY:
        return _WELL
    findings = [judgement for judgement in judgements if judgement.health is settled]
    if settled is _UNHEALTHY:
        return min(findings, key=_first_due)
    return Judgement(_UNKNOWN, doubts=tuple(sorted({doubt for finding in findings for doubt in finding.doubts})))


def _entry(node: Node, when: When, now: datetime) -> Judgement:
    """What one entry proves."""
    if len(when.clauses) > 1:
        return _all_clauses(node, when, now)
    clause = when.clauses[0]
    health = clause_health(node, clause, now)
    if health is _HEALTHY:
        return _WELL
    if health is _UNKNOWN:
        return _found((health, None, None, None, (_doubt(node, clause, now),)))
    condition = node.conditions[clause.condition]
    since = condition.since
    return _found((health, condition, since, since + when.tolerance, ()))


def _all_clauses(node: Node, when: When, now: datetime) -> Judgement:
    """What an entry of several clauses proves: it holds since the last of them came to hold."""
    healths = [clause_health(node, clause, now) for clause in when.clauses]
    settled = entry_health(healths)
    if settled is _HEALTHY:
        return _WELL
    if settled is _UNKNOWN:
        unknown = [clause for clause, health in zip(when.clauses, healths, strict=True) if health is settled]
        return Judgement(_UNKNOWN, doubts=tuple(sorted({_doubt(node, clause, now) for clause in unknown})))
    last = max((node.conditions[clause.condition] for clause in when.clauses), key=lambda condition: condition.since)
    return Judgement(_UNHEALTHY, last, last.since, last.since + when.tolerance)


def _first_due(finding: Judgement) -> tuple[datetime | None, str]:
    return finding.due, finding.condition.type if finding.condition else ""


def onsets_of(node: Node, policy: Policy) -> Iterator[datetime]:
    """Since when each entry of `when` holds, whether it is heard of lately or not."""
    for when in policy.when:
        met = [node.conditions.get(clause.condition) for clause in when.clauses]
        if all(condition and clause.met_by(condition) for condition, clause in zip(met, when.clauses, strict=True)):
            yield max(condition.since for condition in met if condition)


def _doubt(node: Node, clause: Clause, now: datetime) -> ConditionDoubt:
    """Why a clause is unknown."""
    condition = node.conditions.get(clause.condition)
    if condition is None:
        silent = silence(node, clause.reporter, now) if clause.reporter else ""
        if not silent and ever_counted(clause.condition, node.conditions):
            return _because(clause.condition, f"is absent: {_NEW_RULE}")
        return _because(clause.condition, f"is absent, and {silent}" if silent else "is absent")
    if condition.status is _UNSAID and timely(condition, now):
        missing = f": {no_such_pod(clause.condition)}" if condition.reason == NO_SUCH_POD else ""
        return _because(clause.condition, f"is Unknown{missing}")
    return _because(clause.condition, mistrust(node, clause, now), clause.met_by(condition))


@lru_cache(maxsize=1024)
def _because(condition: str, why: str, holds: bool = False) -> ConditionDoubt:
    """One object for all nodes: where no detector runs, each node has one for each policy."""
    return ConditionDoubt(condition, why, holds)
