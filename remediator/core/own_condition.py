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


def since(status: str, before: tuple[str, datetime | None] | None, now: datetime) -> datetime:
    """Since when a Condition has this status; `before`: the status that it had, and since when."""
    return before[1] if before is not None and before[0] == status and before[1] is not None else now


def same_word(before: NodeCondition | None, words: OwnCondition) -> bool:
    """Whether the Condition that stands has this status and reason."""
    return before is not None and (before.status, before.reason) == (words.status, words.reason)


def due(before: NodeCondition | None, wanted: OwnCondition, now: datetime, every: timedelta) -> NodeCondition | None:
    """The Condition as it is to be written now; None where the one that stands says the same, not long ago.

    `since` moves with the status only. A heartbeat from the future is written anew: it is no word of ours.
    """
    began = since(wanted.status, (before.status, before.since) if before else None, now)
    condition = NodeCondition(wanted.type, wanted.status, wanted.reason, began, now, wanted.message)
    if before is None or replace(before, heartbeat=now) != condition or before.message != wanted.message:
        return condition
    return None if timedelta(0) <= now - before.heartbeat < every else condition
