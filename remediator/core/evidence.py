"""What a node's Conditions prove: that it is unhealthy, that it is healthy, or nothing."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum, auto
from functools import lru_cache
from typing import NamedTuple

from remediator.core.absence import NEVER_AWAY, Absences
from remediator.core.alerts import PREFIX
from remediator.core.device_count import DEVICES_MISSING
from remediator.core.node import Condition, Node, Status
from remediator.core.policy import Clause, Policy, Verify, When
from remediator.core.rejections import PODS_REJECTED
from remediator.core.reporters import PREFIX as REPORTED_BY

# A heartbeat older than this proves nothing: three of node-problem-detector's default period of 5 minutes.
STALE_AFTER = timedelta(minutes=15)
# Nor does one so far in the future: the clock that wrote it is wrong, and nobody can say how old the heartbeat is.
AHEAD = timedelta(minutes=5)
_YOUNGEST = -AHEAD  # the age of such a heartbeat
# How often a node that must prove its health is looked at, at least: each heartbeat asks for a look of its own.
LOOK_AGAIN = timedelta(minutes=1)
# A time of a node that lies further ahead than this is none: a clock, or the program that wrote it, is broken.
FAR = timedelta(days=1)
DETECTOR_STALE = "DetectorStale"
KUBELET_CONDITIONS = frozenset({"Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"})


# Conditions that the controller writes of what it counts. One that is absent, or False, however old, proves health.
COUNTED = frozenset({PODS_REJECTED, DEVICES_MISSING})


@lru_cache(maxsize=1024)  # of each clause of each policy it is asked in every decision
def counted(name: str) -> bool:
    """Whether the controller writes it of what it counts, or of alerts that Alertmanagers list."""
    return name in COUNTED or name.startswith(PREFIX)


@lru_cache(maxsize=1024)
def by_detectors(name: str) -> bool:
    """Whether it says what detectors have found: they write it, or the controller does by what they count."""
    return name == DEVICES_MISSING or (name not in KUBELET_CONDITIONS and not counted(name))


class Health(Enum):
    """What one condition, or several, prove of the node."""

    UNHEALTHY = auto()
    UNKNOWN = auto()
    HEALTHY = auto()


@dataclass(frozen=True, slots=True, order=True)
class Doubt:
    """Why one condition proves nothing; `holds` where it has what a policy looks for, and is ignored."""

    condition: str
    why: str
    holds: bool = False

    def __str__(self) -> str:
        return f"{self.condition} {self.why}"


class Judgement(NamedTuple):
    """What a policy's conditions prove of a node. `since` is when the last clause came to hold, `due` adds `for`."""

    health: Health
    condition: Condition | None = None
    since: datetime | None = None
    due: datetime | None = None
    doubts: tuple[Doubt, ...] = ()


_WELL = Judgement(Health.HEALTHY)
_ASKED = Judgement(Health.UNHEALTHY)  # that a user asks for an operation is the evidence


def judge(node: Node, policy: Policy, now: datetime) -> Judgement:
    """UNHEALTHY where an entry of `when` holds (the one due first counts), HEALTHY where none can, else UNKNOWN."""
    if policy.unreadable:
        return Judgement(Health.UNKNOWN, doubts=(Doubt(f"policy {policy.name}", "cannot be read"),))
    if policy.manual:
        return _ASKED
    if len(policy.when) == 1:  # as of most policies
        return _entry(node, policy.when[0], now)
    judgements = [_entry(node, when, now) for when in policy.when]
    settled = _worst([judgement.health for judgement in judgements])
    if settled is Health.HEALTHY:
        return _WELL
    findings = [judgement for judgement in judgements if judgement.health is settled]
    if settled is Health.UNHEALTHY:
        return min(findings, key=_first_due)
    return Judgement(Health.UNKNOWN, doubts=tuple(sorted({doubt for finding in findings for doubt in finding.doubts})))


def health(node: Node, policy: Policy, now: datetime) -> Health:
    """What `judge` says of the node's health, without why: most nodes are only asked whether they are well."""
    if policy.unreadable:
        return Health.UNKNOWN
    return _worst([_entry_health([_health(node, clause, now) for clause in when.clauses]) for when in policy.when])


def _worst(entries: Sequence[Health]) -> Health:
    if Health.UNHEALTHY in entries:
        return Health.UNHEALTHY
    return Health.UNKNOWN if Health.UNKNOWN in entries else Health.HEALTHY


def _entry_health(clauses: Sequence[Health]) -> Health:
    """Clauses are AND-ed: one that is proven not met settles it, else one that is unknown leaves it open."""
    if Health.HEALTHY in clauses:
        return Health.HEALTHY
    return Health.UNKNOWN if Health.UNKNOWN in clauses else Health.UNHEALTHY


def onsets(node: Node, policy: Policy) -> Iterator[datetime]:
    """Since when each entry of `when` holds, whether it is heard of lately or not."""
    for when in policy.when:
        met = [node.conditions.get(clause.condition) for clause in when.clauses]
        if all(condition and clause.met_by(condition) for condition, clause in zip(met, when.clauses, strict=True)):
            yield max(condition.since for condition in met if condition)


def _entry(node: Node, when: When, now: datetime) -> Judgement:
    """What one entry proves."""
    if len(when.clauses) > 1:
        return _all_clauses(node, when, now)
    clause = when.clauses[0]
    health = _health(node, clause, now)
    if health is Health.HEALTHY:
        return _WELL
    if health is Health.UNKNOWN:
        return Judgement(health, doubts=(_doubt(node, clause, now),))
    condition = node.conditions[clause.condition]
    return Judgement(health, condition, condition.since, condition.since + when.tolerance)


def _all_clauses(node: Node, when: When, now: datetime) -> Judgement:
    """What an entry of several clauses proves: it holds since the last of them came to hold."""
    healths = [_health(node, clause, now) for clause in when.clauses]
    settled = _entry_health(healths)
    if settled is Health.HEALTHY:
        return _WELL
    if settled is Health.UNKNOWN:
        unknown = [clause for clause, health in zip(when.clauses, healths, strict=True) if health is settled]
        return Judgement(Health.UNKNOWN, doubts=tuple(sorted({_doubt(node, clause, now) for clause in unknown})))
    last = max((node.conditions[clause.condition] for clause in when.clauses), key=lambda condition: condition.since)
    return Judgement(Health.UNHEALTHY, last, last.since, last.since + when.tolerance)


def _first_due(finding: Judgement) -> tuple[datetime | None, str]:
    return finding.due, finding.condition.type if finding.condition else ""


def shows(node: Node, clause: Clause, now: datetime) -> bool:
    """Whether the node has what the clause asks for, by evidence that counts."""
    return _health(node, clause, now) is Health.UNHEALTHY


def _health(node: Node, clause: Clause, now: datetime) -> Health:
    """One clause. UNKNOWN where the condition is absent, Unknown, stale, or from a detector that has stopped."""
    condition = node.conditions.get(clause.condition)
    if condition is None or condition.status is Status.FALSE:
        if clause.status is Status.TRUE and counted(clause.condition):
            return Health.HEALTHY
        if condition is None:
            return (
                Health.HEALTHY
                if clause.status is Status.TRUE and _nothing_to_say(node, clause, now)
                else Health.UNKNOWN
            )
    if condition.status is Status.UNKNOWN:  # asked for by name: a kubelet that does not report is the fault
        asked = clause.status is Status.UNKNOWN and _timely(condition, now)
        return Health.UNHEALTHY if asked else Health.UNKNOWN
    if condition.since - now >= FAR or _ignored(
        node, clause, condition, now
    ):  # the heartbeat lies nearer, or is ignored
        return Health.UNKNOWN
    return Health.UNHEALTHY if clause.met_by(condition) else Health.HEALTHY


def _doubt(node: Node, clause: Clause, now: datetime) -> Doubt:
    """Why a clause is unknown."""
    condition = node.conditions.get(clause.condition)
    if condition is None:
        silent = _reporter_silent(node, clause.reporter, now) if clause.reporter else ""
        return _because(clause.condition, f"is absent, and {silent}" if silent else "is absent")
    if condition.status is Status.UNKNOWN and _timely(condition, now):
        return _because(clause.condition, "is Unknown")
    return _because(clause.condition, mistrust(node, clause, now), clause.met_by(condition))


@lru_cache(maxsize=1024)
def _because(condition: str, why: str, holds: bool = False) -> Doubt:
    """One object for all nodes: where no detector runs, each node has one for each policy."""
    return Doubt(condition, why, holds)


def mistrust(node: Node, clause: Clause, now: datetime) -> str:
    """Why the condition is ignored; "" where it is fresh, the node answers and those who write it are alive.

    A clock of the node that is behind looks like a heartbeat that is old: no two clocks can be told apart from here.
    """
    condition = node.conditions[clause.condition]
    if not _timely(condition, now):
        return "has a time that lies a day or more ahead, or cannot be read"
    return _ignored(node, clause, condition, now)


def _ignored(node: Node, clause: Clause, condition: Condition, now: datetime) -> str:
    """Why a condition whose times may be times is ignored."""
    if clause.reporter and (silent := _reporter_silent(node, clause.reporter, now)):
        return f"is ignored: {silent}"
    age = now - (heard(node, clause) if clause.reporter else condition.heartbeat)
    if age > (limit := clause.stale_after or STALE_AFTER):
        return f"has no heartbeat of the last {limit.total_seconds() / 60:g} minutes, or the node's clock is behind"
    if age < _YOUNGEST:
        return "has a heartbeat from the future: the node's clock is ahead"
    if not by_detectors(condition.type):
        return ""
    if node.ready is Status.UNKNOWN:
        return "is ignored: the kubelet does not report"
    stale = node.conditions.get(DETECTOR_STALE)
    if stale is None or stale.status is Status.FALSE or condition is stale:  # it says so itself
        return ""
    others = clause.reporter or condition.type.startswith(REPORTED_BY)
    return "" if others else f"is ignored: {DETECTOR_STALE} is {stale.status.value}"


def _nothing_to_say(node: Node, clause: Clause, now: datetime) -> bool:
    """Whether a condition is absent because those who write it only on change have found no fault: they are alive."""
    alive = clause.on_change and node.ready is not Status.UNKNOWN and not _reporter_silent(node, clause.reporter, now)
    return alive and clause.condition not in node.conditions


def heard(node: Node, clause: Clause) -> datetime:
    """When the condition was heard of last. Of one that is written only on change its reporter's heartbeats count."""
    own = node.conditions[clause.condition].heartbeat
    reporter = node.conditions.get(clause.reporter) if clause.on_change else None
    return max(own, reporter.heartbeat) if reporter is not None and reporter.status is Status.TRUE else own


def _reporter_silent(node: Node, reporter: str, now: datetime) -> str:
    """Why those who write a condition do not count as alive; "" where they do."""
    sign, who = node.conditions.get(reporter), reporter.removeprefix(REPORTED_BY)
    if sign is None or not -AHEAD <= now - sign.heartbeat <= STALE_AFTER or sign.status is Status.UNKNOWN:
        return f"the controller has not said lately whether a Pod of {who} is Ready"
    return "" if sign.status is Status.TRUE else f"no Pod of {who} is Ready"


def untimely(node: Node, now: datetime) -> tuple[tuple[str, bool], ...]:
    """The conditions whose times make them prove nothing now, and whether these may be times at all.

    While these are the same, time alone changes nothing about what a node's conditions prove.
    """
    oldest, newest, far = now - STALE_AFTER, now + AHEAD, now + FAR
    return tuple(
        (name, _timely(condition, now))
        for name, condition in node.conditions.items()
        if not oldest <= condition.heartbeat <= newest or condition.since >= far
    )


def _timely(condition: Condition, now: datetime) -> bool:
    """Whether its times may be times."""
    far = now + FAR
    return condition.since < far and condition.heartbeat < far


def own_ages(node: Node, policies: Iterable[Policy], now: datetime) -> tuple[bool, ...]:
    """Whether each condition is older than its policy believes it, where that is another time than of all others."""
    return tuple(
        now - node.conditions[clause.condition].heartbeat > clause.stale_after
        for policy in policies
        for when in policy.when
        for clause in when.clauses
        if clause.stale_after and clause.condition in node.conditions
    )


class Proof(Enum):
    """Whether a node has shown, since an operation ended, that it is well."""

    WAITING = auto()
    PROBE = auto()  # its conditions say so; the probe that the policy asks for comes next
    PASSED = auto()
    REFUTED = auto()  # its conditions say so, and the probe has failed
    TIMED_OUT = auto()


def prove(
    node: Node,
    policy: Policy,
    base: Mapping[str, datetime],
    ended: datetime,
    now: datetime,
    absences: Absences = NEVER_AWAY,
) -> tuple[Proof, datetime]:
    """Whether the node is well again, and when to look next.

    All times compared are the node's own, so that no two clocks are: each watched condition must say the healthy thing
    with a heartbeat at least `fresh` after the one in `base`, and must have said so for `settle`. Only the time-out
    runs on our clock, from `ended`. A node that looks well when time is up may go on to prove it for as long as it is
    heard of: the fault may have gone late, while the next start was held. Time in which we could not act does not
    count, and after it heartbeats that are missing get the time to come.
    """
    if policy.unreadable:
        return Proof.WAITING, now + LOOK_AGAIN
    deadline = absences.deadline(ended, policy.verify.timeout)
    if judge(node, policy, now).health is Health.UNKNOWN:
        deadline = max(deadline, absences.time_for_news(deadline, STALE_AFTER))
    needs = watched(node, policy)
    worst = max(min(_missing(node, wanted, base, policy.verify, now) for wanted in group) for group in needs)
    if worst <= timedelta(0):
        return Proof.PASSED, now
    if now >= deadline and not all(any(looks_well(node, wanted, now) for wanted in group) for group in needs):
        return Proof.TIMED_OUT, now
    soon = now + min(max(worst, timedelta(seconds=1)), LOOK_AGAIN)
    return Proof.WAITING, soon if now >= deadline else min(soon, deadline)


def looks_well(node: Node, wanted: Clause, now: datetime) -> bool:
    """Whether the condition says the healthy thing, and has said so lately; or need not say it."""
    condition = node.conditions.get(wanted.condition)
    if wanted.status is Status.FALSE and _nothing_to_say(node, wanted, now):
        return True
    if condition is None or condition.status is not wanted.status:
        return False
    if wanted.reporter and _reporter_silent(node, wanted.reporter, now):
        return False
    return -AHEAD <= now - heard(node, wanted) <= (wanted.stale_after or STALE_AFTER)


def watched(node: Node, policy: Policy) -> list[tuple[Clause, ...]]:
    """What must be well: of each group one condition, each as the clause that it meets then.

    An entry of `when` is over when any of its clauses is. Ready and, on nodes that have it, DetectorStale must be well
    whatever the policy asks.
    """
    stale = [(Clause(DETECTOR_STALE, Status.FALSE),)] if DETECTOR_STALE in node.conditions else []
    entries = [tuple(_opposite(clause) for clause in when.clauses) for when in policy.when]
    entries = [entry for entry in entries if not any(_nothing_counted(node, wanted.condition) for wanted in entry)]
    return [(Clause("Ready"),), *stale, *entries]


def _nothing_counted(node: Node, name: str) -> bool:
    """Whether it is well without a word: nobody has ever written that Condition of the node."""
    return counted(name) and name not in node.conditions


def well_since(node: Node, policy: Policy) -> datetime | None:
    """Since when all that must be well is, by the node's own clock; None where something is not."""
    since = [
        [
            condition.since
            for wanted in group
            if (condition := _speaker(node, wanted)) and condition.status is wanted.status
        ]
        for group in watched(node, policy)
    ]
    return max(map(min, since)) if all(since) else None


def _speaker(node: Node, wanted: Clause) -> Condition | None:
    """The condition; where it is absent and need not be there, its reporter, as if it said so."""
    condition, reporter = node.conditions.get(wanted.condition), node.conditions.get(wanted.reporter)
    if condition is not None or reporter is None or not wanted.on_change or wanted.status is not Status.FALSE:
        return condition
    return replace(reporter, status=Status.FALSE) if reporter.status is Status.TRUE else None


def _opposite(clause: Clause) -> Clause:
    return replace(clause, status=Status.FALSE if clause.status is Status.TRUE else Status.TRUE, reasons=frozenset())


def _missing(node: Node, wanted: Clause, base: Mapping[str, datetime], verify: Verify, now: datetime) -> timedelta:
    """How much longer the node must go on saying that all is well; `settle` anew where it does not say so now."""
    condition = _speaker(node, wanted)
    if condition is None or condition.status is not wanted.status or condition.heartbeat - now > AHEAD:
        return max(verify.settle, timedelta(seconds=1))
    if wanted.reporter and _reporter_silent(node, wanted.reporter, now):
        return max(verify.settle, timedelta(seconds=1))
    absent = wanted.condition not in node.conditions
    last = condition.heartbeat if absent else heard(node, wanted)
    began = [base[name] for name in _beating(wanted) if name in base]
    fresh = verify.fresh - (last - max(began)) if began else timedelta(0)
    since = max(began, default=condition.since) if absent else condition.since
    return max(fresh, verify.settle - (last - since))


def _beating(wanted: Clause) -> tuple[str, ...]:
    """The conditions whose heartbeats count."""
    return (wanted.condition, wanted.reporter) if wanted.on_change else (wanted.condition,)


def proving(node: Node, policy: Policy) -> frozenset[str]:
    """The conditions whose heartbeats prove that the node is well."""
    return frozenset(name for group in watched(node, policy) for wanted in group for name in _beating(wanted))
