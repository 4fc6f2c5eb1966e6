"""What becomes of something that holds GPUs: one table, with a reason in each row. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from remediator.core import names
from remediator.core.idle_policy import IdlePolicy
from remediator.janitor.decide import Reason
from remediator.janitor.ttl import Unreadable, parse_expiry
from remediator.kube.wire.times import stamp


class State(StrEnum):
    """What is known of it now; the first that fits counts."""

    BUSY = "a GPU of it was used"
    YOUNG = "a Pod of it is younger than idleFor"
    UNKNOWN = "nobody can tell"
    UNREADABLE = "keep-until says no time"
    KEPT = "a user keeps it"
    SHUT = "it is idle, and no window is open"
    FIXED = "it is idle, and the policy takes nothing of its kind"
    IDLE = "it is idle"


class Notice(StrEnum):
    """How far the notice is that its owner has."""

    NONE = "none"
    RUNS = "its grace runs"
    OVER = "its grace is over"


class Step(StrEnum):
    """What is done."""

    REST = "nothing"
    HOLD = "report it"
    CLEAR = "take the notice back"
    TELL = "tell its owner"
    ACT = "take the GPUs"


Row = tuple[Step, Reason]
_NONE, _RUNS, _OVER = Notice
TABLE: dict[tuple[State, Notice], Row] = {
    (State.BUSY, _NONE): (Step.REST, Reason.IN_USE),
    (State.BUSY, _RUNS): (Step.CLEAR, Reason.IN_USE),
    (State.BUSY, _OVER): (Step.CLEAR, Reason.IN_USE),
    (State.YOUNG, _NONE): (Step.REST, Reason.YOUNG),
    (State.YOUNG, _RUNS): (Step.CLEAR, Reason.YOUNG),
    (State.YOUNG, _OVER): (Step.CLEAR, Reason.YOUNG),
    (State.UNKNOWN, _NONE): (Step.HOLD, Reason.CANNOT_TELL),
    (State.UNKNOWN, _RUNS): (Step.HOLD, Reason.CANNOT_TELL),
    (State.UNKNOWN, _OVER): (Step.HOLD, Reason.CANNOT_TELL),
    (State.UNREADABLE, _NONE): (Step.HOLD, Reason.UNREADABLE),
    (State.UNREADABLE, _RUNS): (Step.HOLD, Reason.UNREADABLE),
    (State.UNREADABLE, _OVER): (Step.HOLD, Reason.UNREADABLE),
    (State.KEPT, _NONE): (Step.HOLD, Reason.KEPT),
    (State.KEPT, _RUNS): (Step.CLEAR, Reason.KEPT),  # else it would go without a notice when that time is over
    (State.KEPT, _OVER): (Step.CLEAR, Reason.KEPT),
    (State.SHUT, _NONE): (Step.HOLD, Reason.OUTSIDE_HOURS),
    (State.SHUT, _RUNS): (Step.HOLD, Reason.OUTSIDE_HOURS),
    (State.SHUT, _OVER): (Step.HOLD, Reason.OUTSIDE_HOURS),
    (State.FIXED, _NONE): (Step.TELL, Reason.IDLE_NOTICE),
    (State.FIXED, _RUNS): (Step.HOLD, Reason.TOLD_ONLY),
    (State.FIXED, _OVER): (Step.HOLD, Reason.TOLD_ONLY),
    (State.IDLE, _NONE): (Step.TELL, Reason.IDLE_NOTICE),
    (State.IDLE, _RUNS): (Step.HOLD, Reason.GRACE),
    (State.IDLE, _OVER): (Step.ACT, Reason.IDLE),
}


@dataclass(frozen=True, slots=True)
class Told:
    """The notice as the object bears it: of which policy, when, and until when it may stay."""

    policy: str = ""
    at: datetime | None = None
    until: datetime | None = None


def told(annotations: Mapping[str, str]) -> Told:
    """What the annotations say; what cannot be read is no notice."""
    try:
        at, until = (parse_expiry(annotations.get(name, "")) for name in (names.IDLE_NOTIFIED_AT, names.IDLE_UNTIL))
    except Unreadable:
        return Told()
    return Told(annotations.get(names.IDLE_POLICY, ""), at, until)


def notice(mark: Told, policy: IdlePolicy, now: datetime) -> Notice:
    """How far the notice of this policy is: never shorter than was told, nor than the policy says now."""
    if mark.policy != policy.name or mark.at is None or mark.until is None or mark.at > now:
        return Notice.NONE
    return Notice.OVER if now >= max(mark.until, mark.at + policy.grace) else Notice.RUNS


def until(mark: Told, policy: IdlePolicy, now: datetime) -> str:
    """Until when it may stay, for a person."""
    ends = [now + policy.grace] if mark.at is None or mark.until is None else [mark.until, mark.at + policy.grace]
    return stamp(max(ends))
