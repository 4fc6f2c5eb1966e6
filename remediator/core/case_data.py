"""A case as data for scripts: the same names as in the API, with lengths of time in seconds. Pure."""

from datetime import datetime
from typing import Any

from remediator.core.case import Attempt, Block, Case

Data = dict[str, Any]


def in_json(value: datetime) -> str:
    """A time as Kubernetes writes it, for what writes JSON."""
    return value.strftime("%Y-%m-%dT%H:%M:%SZ")


def case_data(case: Case, now: datetime) -> Data:
    """What `-o json` says of a case; times are datetimes."""
    return {
        "name": case.name,
        "node": case.node,
        "policy": case.policy,
        "manual": _manual(case),
        "keepOut": {"until": case.keep_out.until, "reason": case.keep_out.reason} if case.keep_out else None,
        "trigger": _trigger(case),
        "phase": case.phase.value,
        "reason": case.reason.value if case.reason else "",
        "message": case.message,
        "rung": case.rung + 1,
        "createdAt": case.created,
        "startedAt": case.started,
        "endedAt": case.ended,
        "seconds": _seconds(case.created, case.ended, now),
        "healthySince": case.healthy_since,
        "hold": case.hold,
        "approved": case.approved,
        "setBy": {field: user for field, user in case.set_by._asdict().items() if user},
        "blockedBy": [_block(block) for block in case.blocks],
        "attempts": [_attempt(attempt, now) for attempt in case.attempts],
        "jobsEnded": {"jobs": case.blast.count, "gpus": case.blast.gpus, "gpuHours": case.blast.gpu_hours}
        if case.blast and case.attempts
        else None,
    }


def _manual(case: Case) -> Data | None:
    asked = case.manual
    if asked is None:
        return None
    return {"operation": asked.operation, "template": asked.template, "requestedBy": asked.requested_by}


def _trigger(case: Case) -> Data | None:
    seen = case.trigger
    if seen is None:
        return None
    condition = {"condition": seen.condition, "status": seen.status, "reason": seen.reason}
    return condition | {"message": seen.message, "since": seen.since}


def _block(block: Block) -> Data:
    return {"reason": block.reason.value, "message": block.message, "since": block.since, "until": block.until}


def _attempt(attempt: Attempt, now: datetime) -> Data:
    return {
        "operation": attempt.operation,
        "template": attempt.template,
        "rung": attempt.rung + 1,
        "probe": attempt.probe,
        "follows": attempt.follows,
        "startedAt": attempt.started,
        "finishedAt": attempt.finished,
        "seconds": _seconds(attempt.started, attempt.finished, now),
        "outcome": attempt.outcome.value,
        "reason": attempt.reason,
        "message": attempt.message,
    }


def _seconds(begin: datetime, end: datetime | None, now: datetime) -> int:
    return max(0, int(((end or now) - begin).total_seconds()))
