"""A Condition that the controller itself writes on a node: what is to be written, and when it is said again. Pure."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import NamedTuple

from remediator.core.case import Case, Phase
from remediator.core.node import NodeCondition, Status

# A third of the time after which a heartbeat proves nothing; sooner where a node has to prove that it is well.
BEAT, BEAT_OF_CASE = timedelta(minutes=5), timedelta(minutes=1)
REPAIRED = frozenset({Phase.DRAINING, Phase.OPERATING, Phase.VERIFYING})


class OwnCondition(NamedTuple):
    """What is to be said: the type of the Condition, its status, reason and message. UNKNOWN proves nothing."""

    type: str
    status: Status
    reason: str
    message: str


def beat(cases: Iterable[Case]) -> timedelta:
    """How often the same is said of a node with these cases. One that waits, or that a person has, proves nothing."""
    return BEAT_OF_CASE if any(case.phase in REPAIRED for case in cases) else BEAT


def due(before: NodeCondition | None, finding: OwnCondition, now: datetime, every: timedelta) -> NodeCondition | None:
    """The Condition as it is to be written now; None where the one that stands says the same, not long ago.

    `since` moves with the status only. A heartbeat from the future is written anew: it is no word of ours.
    """
    since = before.since if before is not None and before.status is finding.status else now
    condition = NodeCondition(finding.type, finding.status, finding.reason, since, now, finding.message)
    if before is None or replace(before, heartbeat=now) != condition or before.message != finding.message:
        return condition
    return None if timedelta(0) <= now - before.heartbeat < every else condition
