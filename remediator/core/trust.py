"""Whether a Condition is believed: when it was heard of last, by whom, and whether who writes it is alive."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from remediator.core.clocks import AHEAD
from remediator.core.idle_result import IDLE_TEST_FAILED
from remediator.core.node import Node, NodeCondition, Status
from remediator.core.policy import Clause, Policy
from remediator.core.reporters import NO_SUCH_POD, PREFIX, no_such_pod
from remediator.core.writers import DETECTOR_STALE, by_detectors

# A heartbeat older than this proves nothing: three of node-problem-detector's default period of 5 minutes.
STALE_AFTER = timedelta(minutes=15)
_YOUNGEST = -AHEAD  # the age of a heartbeat: nor does one that is younger
# A time of a node that lies further ahead than this is none: a clock, or the program that wrote it, is broken.
FAR = timedelta(days=1)

# Each look-up of a member takes Python a fifth of a microsecond; these are asked for in every decision.
_TRUE, _FALSE, _UNSAID = Status.TRUE, Status.FALSE, Status.UNKNOWN


def mistrust(node: Node, clause: Clause, now: datetime) -> str:
    """Why the condition is ignored; "" where it is fresh, the node answers and those who write it are alive.

    A clock of the node that is behind looks like a heartbeat that is old: no two clocks can be told apart from here.
    """
    condition = node.conditions[clause.condition]
    if not timely(condition, now):
        return "has a time that lies a day or more ahead, or cannot be read"
    return ignored(node, clause, condition, now)


def ignored(node: Node, clause: Clause, condition: NodeCondition, now: datetime) -> str:
    """Why a condition whose times may be times is ignored."""
    if clause.reporter and (silent := silence(node, clause.reporter, now)):
        return f"is ignored: {silent}"
    age = now - (heard(node, clause) if clause.reporter else condition.heartbeat)
    if age > (limit := clause.stale_after or STALE_AFTER):
        return f"has no heartbeat of the last {limit.total_seconds() / 60:g} minutes, or the node's clock is behind"
    if age < _YOUNGEST:
        return "has a heartbeat from the future: the node's clock is ahead"
    detected = by_detectors(condition.type)
    if not detected and condition.type != IDLE_TEST_FAILED:
        return ""
    ready = node.conditions.get("Ready")  # as `node.ready`, without the call
    if ready is None or ready.status is _UNSAID:
        return "is ignored: the kubelet does not report"
    if not detected:  # a test needs no detector
        return ""
    stale = node.conditions.get(DETECTOR_STALE)
    if stale is None or stale.status is _FALSE or condition.type == DETECTOR_STALE:  # it says so itself
        return ""
    others = clause.reporter or condition.type.startswith(PREFIX)
    return "" if others else f"is ignored: {DETECTOR_STALE} is {stale.status.value}"


def nothing_to_say(node: Node, clause: Clause, now: datetime) -> bool:
    """Whether a condition is absent because those who write it only on change have found no fault: they are alive."""
    alive = clause.on_change and node.ready is not _UNSAID and not silence(node, clause.reporter, now)
    return alive and clause.condition not in node.conditions


def heard(node: Node, clause: Clause) -> datetime:
    """When the condition was heard of last. Of one that is written only on change its reporter's heartbeats count."""
    own = node.conditions[clause.condition].heartbeat
    reporter = node.conditions.get(clause.reporter) if clause.on_change else None
    return max(own, reporter.heartbeat) if reporter is not None and reporter.status is _TRUE else own


def silence(node: Node, reporter: str, now: datetime) -> str:
    """Why those who write a condition do not count as alive; "" where they do."""
    sign, who = node.conditions.get(reporter), reporter.removeprefix(PREFIX)
    timely = sign is not None and -AHEAD <= now - sign.heartbeat <= STALE_AFTER
    if sign is not None and timely and sign.reason == NO_SUCH_POD:
        return no_such_pod(reporter)
    if sign is None or not timely or sign.status is _UNSAID:
        return f"the controller has not said lately whether a Pod of {who} is Ready"
    return "" if sign.status is _TRUE else f"no Pod of {who} is Ready"


def untimely(node: Node, now: datetime) -> tuple[tuple[str, bool], ...]:
    """The conditions whose times make them prove nothing now, and whether these may be times at all.

    While these are the same, time alone changes nothing about what a node's conditions prove.
    """
    oldest, newest, far = now - STALE_AFTER, now + AHEAD, now + FAR
    return tuple(
        (name, timely(condition, now))
        for name, condition in node.conditions.items()
        if not oldest <= condition.heartbeat <= newest or condition.since >= far
    )


def timely(condition: NodeCondition, now: datetime) -> bool:
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
