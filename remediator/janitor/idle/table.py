"""What becomes of something that an IdlePolicy is about: one table, with a reason in each row. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from remediator.core import names
from remediator.core.idle_policy import Finding, IdleAction, IdlePolicy
from remediator.janitor.decide import JanitorReason
from remediator.janitor.ttl import FOREVER, UnreadableTime, parse_expiry

# After so long without an act (the policy was in DryRun, or nobody ran the janitor) the owner is told anew. It is more
# than a month, after which a window may open again.
FORGOTTEN = timedelta(days=35)


class State(StrEnum):
    """What is known of it now; the first that fits counts."""

    BUSY = "it is not what the policy looks for"
    CONTRADICTED = "Prometheus has it idle, and NVML in use"
    YOUNG = "it is, or may be, and for less than idleFor"
    UNKNOWN = "nobody can tell"
    UNREADABLE = "keep-until says no time"
    KEPT = "a user keeps it"
    SHUT = "it is what the policy looks for, and no window is open"
    FIXED = "it is what the policy looks for, and nothing is taken of its kind"
    IDLE = "it is what the policy looks for"


class NoticeState(StrEnum):
    """How far the notice is that its owner has."""

    NONE = "none"
    ONLY = "told that nothing is taken"
    RUNS = "its grace runs"
    OVER = "its grace is over"


class IdleStep(StrEnum):
    """What is done."""

    REST = "nothing"
    HOLD = "report it"
    CLEAR = "take the notice back"
    TELL = "tell its owner"
    ACT = "suspend, scale or delete it"


StepAndReason = tuple[IdleStep, JanitorReason]
_NONE, _ONLY, _RUNS, _OVER = NoticeState
TABLE: dict[tuple[State, NoticeState], StepAndReason] = {
    (State.BUSY, _NONE): (IdleStep.REST, JanitorReason.IN_USE),
    (State.BUSY, _ONLY): (IdleStep.CLEAR, JanitorReason.IN_USE),
    (State.BUSY, _RUNS): (IdleStep.CLEAR, JanitorReason.IN_USE),
    (State.BUSY, _OVER): (IdleStep.CLEAR, JanitorReason.IN_USE),
    (State.CONTRADICTED, _NONE): (IdleStep.HOLD, JanitorReason.NVML_IN_USE),
    (State.CONTRADICTED, _ONLY): (IdleStep.CLEAR, JanitorReason.NVML_IN_USE),
    (State.CONTRADICTED, _RUNS): (IdleStep.CLEAR, JanitorReason.NVML_IN_USE),
    (State.CONTRADICTED, _OVER): (IdleStep.CLEAR, JanitorReason.NVML_IN_USE),
    (State.YOUNG, _NONE): (IdleStep.REST, JanitorReason.YOUNG),
    (State.YOUNG, _ONLY): (IdleStep.CLEAR, JanitorReason.YOUNG),
    (State.YOUNG, _RUNS): (IdleStep.CLEAR, JanitorReason.YOUNG),
    (State.YOUNG, _OVER): (IdleStep.CLEAR, JanitorReason.YOUNG),
    (State.UNKNOWN, _NONE): (IdleStep.HOLD, JanitorReason.CANNOT_TELL),
    (State.UNKNOWN, _ONLY): (IdleStep.HOLD, JanitorReason.CANNOT_TELL),
    (State.UNKNOWN, _RUNS): (IdleStep.HOLD, JanitorReason.CANNOT_TELL),
    (State.UNKNOWN, _OVER): (IdleStep.HOLD, JanitorReason.CANNOT_TELL),
    (State.UNREADABLE, _NONE): (IdleStep.HOLD, JanitorReason.UNREADABLE),
    (State.UNREADABLE, _ONLY): (IdleStep.HOLD, JanitorReason.UNREADABLE),
    (State.UNREADABLE, _RUNS): (IdleStep.HOLD, JanitorReason.UNREADABLE),
    (State.UNREADABLE, _OVER): (IdleStep.HOLD, JanitorReason.UNREADABLE),
    (State.KEPT, _NONE): (IdleStep.HOLD, JanitorReason.KEPT),
    (State.KEPT, _ONLY): (IdleStep.CLEAR, JanitorReason.KEPT),
    (State.KEPT, _RUNS): (
        IdleStep.CLEAR,
        JanitorReason.KEPT,
    ),  # else it would go without a notice when that time is over
    (State.KEPT, _OVER): (IdleStep.CLEAR, JanitorReason.KEPT),
    (State.SHUT, _NONE): (IdleStep.HOLD, JanitorReason.OUTSIDE_HOURS),
    (State.SHUT, _ONLY): (IdleStep.HOLD, JanitorReason.OUTSIDE_HOURS),
    (State.SHUT, _RUNS): (IdleStep.HOLD, JanitorReason.OUTSIDE_HOURS),
    (State.SHUT, _OVER): (IdleStep.HOLD, JanitorReason.OUTSIDE_HOURS),
    (State.FIXED, _NONE): (IdleStep.TELL, JanitorReason.IDLE_NOTICE),
    (State.FIXED, _ONLY): (IdleStep.HOLD, JanitorReason.TOLD_ONLY),
    (State.FIXED, _RUNS): (IdleStep.HOLD, JanitorReason.TOLD_ONLY),
    (State.FIXED, _OVER): (IdleStep.HOLD, JanitorReason.TOLD_ONLY),
    (State.IDLE, _NONE): (IdleStep.TELL, JanitorReason.IDLE_NOTICE),
    (State.IDLE, _ONLY): (IdleStep.TELL, JanitorReason.IDLE_NOTICE),
    (State.IDLE, _RUNS): (IdleStep.HOLD, JanitorReason.GRACE),
    (State.IDLE, _OVER): (IdleStep.ACT, JanitorReason.IDLE),
}


# The reasons of the notice and of the act, by what the policy looks for.
WORDS: dict[Finding, tuple[JanitorReason, JanitorReason]] = {
    Finding.IDLE_GPUS: (JanitorReason.IDLE_NOTICE, JanitorReason.IDLE),
    Finding.IDLE_CPU: (JanitorReason.IDLE_NOTICE, JanitorReason.CPU_IDLE),
    Finding.RESTARTS: (JanitorReason.RESTARTS_NOTICE, JanitorReason.RESTARTS),
    Finding.PENDING: (JanitorReason.PENDING_NOTICE, JanitorReason.PENDING),
    Finding.ALERT: (JanitorReason.ALERT_NOTICE, JanitorReason.ALERT),
}


def row(known: State, notified: NoticeState, finds: Finding) -> StepAndReason:
    """The row of the table, in the words of what the policy looks for."""
    step, reason = TABLE[known, notified]
    notice_reason, act_reason = WORDS[finds]
    return step, {IdleStep.TELL: notice_reason, IdleStep.ACT: act_reason}.get(step, reason)


@dataclass(frozen=True, slots=True)
class WrittenNotice:
    """The notice as the object bears it: of which policy, when, and until when it may stay. `only`: for ever."""

    policy: str = ""
    at: datetime | None = None
    until: datetime | None = None
    only: bool = False


def told(annotations: Mapping[str, str]) -> WrittenNotice:
    """What the annotations say; what cannot be read is no notice."""
    policy, until = annotations.get(names.IDLE_POLICY, ""), annotations.get(names.IDLE_UNTIL, "")
    try:
        at = parse_expiry(annotations.get(names.IDLE_NOTIFIED_AT, ""))
        if until == FOREVER:
            return WrittenNotice(policy, at, only=True)
        return WrittenNotice(policy, at, parse_expiry(until))
    except UnreadableTime:
        return WrittenNotice()


def given(policy: IdlePolicy, action: IdleAction | None, now: datetime) -> WrittenNotice:
    """The notice that is given now."""
    return WrittenNotice(policy.name, now, now + policy.grace if action else None, only=action is None)


def notice(mark: WrittenNotice, policy: IdlePolicy, now: datetime) -> NoticeState:
    """How far the notice of this policy is: never shorter than was told, nor than the policy says now."""
    if mark.policy != policy.name or mark.at is None or mark.at > now:
        return NoticeState.NONE
    if mark.until is None:
        return NoticeState.ONLY if mark.only else NoticeState.NONE
    over = max(mark.until, mark.at + policy.grace)
    if now >= over + FORGOTTEN:
        return NoticeState.NONE
    return NoticeState.OVER if now >= over else NoticeState.RUNS


def until(mark: WrittenNotice, policy: IdlePolicy, now: datetime) -> datetime:
    """Until when it may stay."""
    if mark.policy != policy.name or mark.at is None or mark.until is None:
        return now + policy.grace
    return max(mark.until, mark.at + policy.grace)
