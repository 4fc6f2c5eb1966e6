"""Detectors that have been silent for long: what they said last is not known to hold any more. Pure."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from remediator.core.node import Node, NodeCondition, Status
from remediator.core.policy import Clause, Policy
from remediator.core.reporters import PREFIX
from remediator.core.writers import DETECTOR_STALE, counted

LONG = timedelta(hours=1)  # an hour of silence is no restart, and no upgrade of detectors


def silent_conditions(node: Node, now: datetime) -> tuple[str, ...]:
    """The conditions that were heard of, and have not been for long; all of them where DetectorStale has said so.

    Of a reporter none of whose Pods was Ready for long nothing was heard, though the controller goes on to say that.
    """
    stale = node.conditions.get(DETECTOR_STALE)
    if stale is not None and stale.status is not Status.FALSE and now - stale.since > LONG:
        return tuple(node.conditions)
    return tuple(
        name
        for name, condition in node.conditions.items()
        if (now - condition.heartbeat > LONG and not counted(name)) or _never_ready(condition, now)
    )


def _never_ready(condition: NodeCondition, now: datetime) -> bool:
    return condition.type.startswith(PREFIX) and condition.status is not Status.TRUE and now - condition.since > LONG


def silent(node: Node, policies: Iterable[Policy], now: datetime) -> bool:
    """Whether a detector that one of these policies rests on has been silent for long."""
    names = frozenset(silent_conditions(node, now))
    if not names:  # as of nearly all nodes: no policy need be asked
        return False
    clauses = (clause for policy in policies for when in policy.when for clause in when.clauses)
    return any(
        clause.reporter in names or (_rests_on(clause) in names and not _believed(node, clause, now))
        for clause in clauses
    )


def _rests_on(clause: Clause) -> str:
    """The condition by whose heartbeats the clause is believed."""
    return clause.reporter if clause.on_change else clause.condition


def _believed(node: Node, clause: Clause, now: datetime) -> bool:
    """Whether its policy believes it for longer than an hour."""
    longest = clause.stale_after or LONG
    return longest > LONG and now - node.conditions[clause.condition].heartbeat <= longest
