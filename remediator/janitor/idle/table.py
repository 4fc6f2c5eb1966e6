"""What becomes of something that an IdlePolicy is about: one table, with a reason in each row. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from remediator.core import names
from remediator.core.idle_policy import Finding, IdleAction, IdlePolicy
from remediator.janitor.decide import Reason
from remediator.janitor.ttl import FOREVER, Unreadable, parse_expiry

# After so long without an act (the policy was in DryRun, or nobody ran the janitor) the owner is told anew. It is more
# than a month, after which a window may open again.
FORGOTTEN = timedelta(days=35)


class State(StrEnum):
    """What is known of it now; the first that fits counts."""

    BUSY = "it is not what the policy looks for"
    YOUNG = "it is, or may be, and for less than idleFor"
    UNKNOWN = "nobody can tell"
    UNREADABLE = "keep-until says no time"
    KEPT = "a user keeps it"
    SHUT = "it is what the policy looks for, and no window is open"
    FIXED = "it is what the policy looks for, and nothing is taken of its kind"
    IDLE = "it is what the policy looks for"


class Notice(StrEnum):
    """How far the notice is that its owner has."""

    NONE = "none"
    ONLY = "told that nothing is taken"
    RUNS = "its grace runs"
    OVER = "its grace is over"


class Step(StrEnum):
    """What is done."""

    REST = "nothing"
    HOLD = "report it"
    CLEAR = "take the notice back"
    TELL = "tell its owner"
    ACT = "suspend, scale or delete it"


Row = tuple[Step, Reason]
_NONE, _ONLY, _RUNS, _OVER = Notice
TABLE: dict[tuple[State, Notice], Row] = {
    (State.BUSY, _NONE): (Step.REST, Reason.IN_USE),
    (State.BUSY, _ONLY): (Step.CLEAR, Reason.IN_USE),
    (State.BUSY, _RUNS): (Step.CLEAR, Reason.IN_USE),
    (State.BUSY, _OVER): (Step.CLEAR, Reason.IN_USE),
    (State.YOUNG, _NONE): (Step.REST, Reason.YOUNG),
    (State.YOUNG, _ONLY): (Step.CLEAR, Reason.YOUNG),
    (State.YOUNG, _RUNS): (Step.CLEAR, Reason.YOUNG),
    (State.YOUNG, _OVER): (Step.CLEAR, Reason.YOUNG),
    (State.UNKNOWN, _NONE): (Step.HOLD, Reason.CANNOT_TELL),
    (State.UNKNOWN, _ONLY): (Step.HOLD, Reason.CANNOT_TELL),
    (State.UNKNOWN, _RUNS): (Step.HOLD, Reason.CANNOT_TELL),
    (State.UNKNOWN, _OVER): (Step.HOLD, Reason.CANNOT_TELL),
    (State.UNREADABLE, _NONE): (Step.HOLD, Reason.UNREADABLE),
    (State.UNREADABLE, _ONLY): (Step.HOLD, Reason.UNREADABLE),
    (State.UNREADABLE, _RUNS): (Step.HOLD, Reason.UNREADABLE),
    (State.UNREADABLE, _OVER): (Step.HOLD, Reason.UNREADABLE),
    (State.KEPT, _NONE): (Step.HOLD, Reason.KEPT),
    (State.KEPT, _ONLY): (Step.CLEAR, Reason.KEPT),
    (State.KEPT, _RUNS): (Step.CLEAR, Reason.KEPT),  # else it would go without a notice when that time is over
    (State.KEPT, _OVER): (Step.CLEAR, Reason.KEPT),
    (State.SHUT, _NONE): (Step.HOLD, Reason.OUTSIDE_HOURS),
    (State.SHUT, _ONLY): (Step.HOLD, Reason.OUTSIDE_HOURS),
    (State.SHUT, _RUNS): (Step.HOLD, Reason.OUTSIDE_HOURS),
    (State.SHUT, _OVER): (Step.HOLD, Reason.OUTSIDE_HOURS),
    (State.FIXED, _NONE): (Step.TELL, Reason.IDLE_NOTICE),
    (State.FIXED, _ONLY): (Step.HOLD, Reason.TOLD_ONLY),
    (State.FIXED, _RUNS): (Step.HOLD, Reason.TOLD_ONLY),
    (State.FIXED, _OVER): (Step.HOLD, Reason.TOLD_ONLY),
    (State.IDLE, _NONE): (Step.TELL, Reason.IDLE_NOTICE),
    (State.IDLE, _ONLY): (Step.TELL, Reason.IDLE_NOTICE),
    (State.IDLE, _RUNS): (Step.HOLD, Reason.GRACE),
    (State.IDLE, _OVER): (Step.ACT, Reason.IDLE),
}


# The reasons of the notice and of the act, by what the policy looks for.
WORDS: dict[Finding, tuple[Reason, Reason]] = {
    Finding.IDLE_GPUS: (Reason.IDLE_NOTICE, Reason.IDLE),
    Finding.IDLE_CPU: (Reason.IDLE_NOTICE, Reason.CPU_IDLE),
    Finding.RESTARTS: (Reason.RESTARTS_NOTICE, Reason.RESTARTS),
    Finding.PENDING: (Reason.PENDING_NOTICE, Reason.PENDING),
    Finding.ALERT: (Reason.ALERT_NOTICE, Reason.ALERT),
}


def row(known: State, notified: Notice, finds: Finding) -> Row:
    """The row of the table, in the words of what the policy looks for."""
    step, reason = TABLE[known, notified]
    notice_reason, act_reason = WORDS[finds]
    return step, {Step.TELL: notice_reason, Step.ACT: act_reason}.get(step, reason)


@dataclass(frozen=True, slots=True)
class Told:
    """The notice as the object bears it: of which policy, when, and until when it may stay. `only`: for ever."""

    policy: str = ""
    at: datetime | None = None
    until: datetime | None = None
    only: bool = False


def told(annotations: Mapping[str, str]) -> Told:
    """What the annotations say; what cannot be read is no notice."""
    policy, until = annotations.get(names.IDLE_POLICY, ""), annotations.get(names.IDLE_UNTIL, "")
    try:
        at = parse_expiry(annotations.get(names.IDLE_NOTIFIED_AT, ""))
        return Told(policy, at, only=True) if until == FOREVER else Told(policy, at, parse_expiry(until))
    except Unreadable:
        return Told()


def given(policy: IdlePolicy, action: IdleAction | None, now: datetime) -> Told:
    """The notice that is given now."""
    return Told(policy.name, now, now + policy.grace if action else None, only=action is None)


def notice(mark: Told, policy: IdlePolicy, now: datetime) -> Notice:
    """How far the notice of this policy is: never shorter than was told, nor than the policy says now."""
    if mark.policy != policy.name or mark.at is None or mark.at > now:
        return Notice.NONE
    if mark.until is None:
        return Notice.ONLY if mark.only else Notice.NONE
    over = max(mark.until, mark.at + policy.grace)
    if now >= over + FORGOTTEN:
        return Notice.NONE
    return Notice.OVER if now >= over else Notice.RUNS


def until(mark: Told, policy: IdlePolicy, now: datetime) -> datetime:
    """Until when it may stay."""
    if mark.policy != policy.name or mark.at is None or mark.until is None:
        return now + policy.grace
    return max(mark.until, mark.at + policy.grace)
