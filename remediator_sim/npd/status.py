"""What results mean: pure functions from what a program did to conditions and events, by the rules of the real one."""

from dataclasses import dataclass, replace
from datetime import datetime
from enum import IntEnum

from remediator_sim.npd.config import TEMPORARY, Default, Monitor, Rule
from remediator_sim.npd.text import cut, quoted, trimmed

CANNOT_START = "Error in starting plugin. Please check the error log"
CANNOT_WAIT = "Error in waiting for plugin. Please check the error log"
SIGNALS = {
    1: "hangup",
    2: "interrupt",
    3: "quit",
    4: "illegal instruction",
    5: "trace/breakpoint trap",
    6: "aborted",
    7: "bus error",
    8: "floating point exception",
    9: "killed",
    10: "user defined signal 1",
    11: "segmentation fault",
    12: "user defined signal 2",
    13: "broken pipe",
    14: "alarm clock",
    15: "terminated",
}


class Exit(IntEnum):
    """What a program's end says."""

    OK = 0
    NON_OK = 1
    UNKNOWN = 2


STATUS = {Exit.OK: "False", Exit.NON_OK: "True", Exit.UNKNOWN: "Unknown"}


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How one run ended: the first bytes of stdout, exit code or minus the signal, and whether it took too long."""

    stdout: bytes
    code: int
    too_late: bool = False


@dataclass(frozen=True, slots=True)
class RuleResult:
    """What one run of a rule says."""

    rule: Rule
    exit: Exit
    message: str


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition as it is to be published. `status` is False, True or Unknown; `transition` its last change."""

    type: str
    status: str
    transition: datetime
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class ReportedEvent:
    """One event about the node."""

    warning: bool
    reason: str
    message: str


def judge(rule: Rule, ended: RunEnd | None, limit: int) -> RuleResult:
    """The result of one run; None stands for a program that could not be started. `limit`: bytes of the message."""
    if ended is None:
        return RuleResult(rule, Exit.UNKNOWN, CANNOT_START)
    if ended.too_late and ended.code == 0:
        # Its children held the output until they were killed: the success is no longer believed.
        return RuleResult(rule, Exit.UNKNOWN, CANNOT_WAIT)
    message = trimmed(ended.stdout)
    if ended.too_late:
        message = (
            f"Timeout when running plugin {quoted(rule.path)}: state - {_state(ended.code)}. output - {quoted(message)}"
        )
    verdict = Exit(ended.code) if ended.code in (0, 1) else Exit.UNKNOWN
    return RuleResult(rule, verdict, cut(message, limit))


def _state(code: int) -> str:
    return f"exit status {code}" if code >= 0 else f"signal: {SIGNALS.get(-code, f'signal {-code}')}"


def initial(monitor: Monitor, now: datetime) -> tuple[Condition, ...]:
    """The conditions before anything ran: all is well."""
    return tuple(Condition(default.type, "False", now, default.reason, default.message) for default in monitor.defaults)


def conclude(
    monitor: Monitor, conditions: tuple[Condition, ...], result: RuleResult, now: datetime
) -> tuple[tuple[Condition, ...], tuple[ReportedEvent, ...]]:
    """The monitor's conditions after one result, and the events that tell of it.

    A rule whose condition is not among them changes nothing, and one whose type is neither of the two that there are
    counts as permanent. Of conditions of one type only the first ever changes.
    """
    if result.rule.type == TEMPORARY:
        failed = result.exit is not Exit.OK
        return conditions, (ReportedEvent(True, result.rule.reason, result.message),) if failed else ()
    index = next((at for at, condition in enumerate(conditions) if condition.type == result.rule.condition), None)
    if index is None:
        return conditions, ()
    before = conditions[index]
    default = next(condition for condition in monitor.defaults if condition.type == before.type)
    after = _after(before, default, result, now, message_changes=monitor.message_changes)
    if after is before:
        return conditions, ()
    return (*conditions[:index], after, *conditions[index + 1 :]), (_change(after),)


def _after(
    before: Condition, default: Default, result: RuleResult, now: datetime, *, message_changes: bool
) -> Condition:
    """The condition after `result`: `before` itself where nothing is new."""
    status = STATUS[result.exit]
    if status == "True":
        other_text = message_changes and before.message != result.message
        if before.status == "True" and before.reason == result.rule.reason and not other_text:
            return before
        return Condition(before.type, status, now, result.rule.reason, result.message)
    if before.status == status:
        return before
    message = default.message if status == "False" else result.message
    return replace(before, status=status, transition=now, reason=default.reason, message=message)


def _change(now: Condition) -> ReportedEvent:
    text = f"Node condition {now.type} is now: {now.status}, reason: {now.reason}, message: {quoted(now.message)}"
    return ReportedEvent(now.status == "True", now.reason, text)
