"""Whether a node has proven, since an operation ended, that it is well again: by its own clock, never by ours."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from enum import Enum, auto
from functools import lru_cache

from remediator.core.absence import NEVER_AWAY, Absences
from remediator.core.clocks import AHEAD
from remediator.core.health import Health, health_of
from remediator.core.node import Node, NodeCondition, Status
from remediator.core.policy import Clause, Policy, Verify
from remediator.core.trust import STALE_AFTER, heard, nothing_to_say, silence
from remediator.core.writers import DETECTOR_STALE, never_counted

# How often a node that must prove its health is looked at, at least: each heartbeat asks for a look of its own.
LOOK_AGAIN = timedelta(minutes=1)


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
    if health_of(node, policy, now) is Health.UNKNOWN:
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
    if wanted.status is Status.FALSE and nothing_to_say(node, wanted, now):
        return True
    if condition is None or condition.status is not wanted.status:
        return False
    if wanted.reporter and silence(node, wanted.reporter, now):
        return False
    return -AHEAD <= now - heard(node, wanted) <= (wanted.stale_after or STALE_AFTER)


def watched(node: Node, policy: Policy) -> list[tuple[Clause, ...]]:
    """What must be well: of each group one condition, each as the clause that it meets then.

    An entry of `when` is over when any of its clauses is. Ready and, on nodes that have it, DetectorStale must be well
    whatever the policy asks.
    """
    stale = [(Clause(DETECTOR_STALE, Status.FALSE),)] if DETECTOR_STALE in node.conditions else []
    entries = [tuple(_opposite(clause) for clause in when.clauses) for when in policy.when]
    entries = [
        entry for entry in entries if not any(never_counted(wanted.condition, node.conditions) for wanted in entry)
    ]
    return [(Clause("Ready"),), *stale, *entries]


def well_since(node: Node, policy: Policy) -> datetime | None:
    """Since when all that must be well is, by the node's own clock; None where something is not."""
    since = [
        [
            _well_from(node, wanted, condition)
            for wanted in group
            if (condition := _speaker(node, wanted)) and condition.status is wanted.status
        ]
        for group in watched(node, policy)
    ]
    return max(map(min, since)) if all(since) else None


def _speaker(node: Node, wanted: Clause) -> NodeCondition | None:
    """The condition; where it is absent and need not be there, its reporter, as if it said so."""
    condition, reporter = node.conditions.get(wanted.condition), node.conditions.get(wanted.reporter)
    if condition is not None or reporter is None or not wanted.on_change or wanted.status is not Status.FALSE:
        return condition
    return replace(reporter, status=Status.FALSE) if reporter.status is Status.TRUE else None


def _well_from(node: Node, wanted: Clause, condition: NodeCondition) -> datetime:
    """Since when somebody was there who would have said otherwise: who starts anew has not looked yet."""
    reporter = node.conditions.get(wanted.reporter) if wanted.on_change else None
    return max(condition.since, reporter.since) if reporter is not None else condition.since


@lru_cache(1024)
def _opposite(clause: Clause) -> Clause:
    return replace(clause, status=Status.FALSE if clause.status is Status.TRUE else Status.TRUE, reasons=frozenset())


def _missing(node: Node, wanted: Clause, base: Mapping[str, datetime], verify: Verify, now: datetime) -> timedelta:
    """How much longer the node must go on saying that all is well; `settle` anew where it does not say so now."""
    condition = _speaker(node, wanted)
    if condition is None or condition.status is not wanted.status or condition.heartbeat - now > AHEAD:
        return max(verify.settle, timedelta(seconds=1))
    if wanted.reporter and silence(node, wanted.reporter, now):
        return max(verify.settle, timedelta(seconds=1))
    absent = wanted.condition not in node.conditions
    last = condition.heartbeat if absent else heard(node, wanted)
    began = [base[name] for name in _beating(wanted) if name in base]
    fresh = verify.fresh - (last - max(began)) if began else timedelta(0)
    starts: list[datetime] = [_well_from(node, wanted, condition), *(began if absent else [])]
    return max(fresh, verify.settle - (last - max(starts)))


def _beating(wanted: Clause) -> tuple[str, ...]:
    """The conditions whose heartbeats count."""
    return (wanted.condition, wanted.reporter) if wanted.on_change else (wanted.condition,)


def proving(node: Node, policy: Policy) -> frozenset[str]:
    """The conditions whose heartbeats prove that the node is well."""
    return frozenset(name for group in watched(node, policy) for wanted in group for name in _beating(wanted))
