"""All kept cases of a node in sentences: what each was for, what was done, how long it took, how it ended. Pure."""

from collections.abc import Iterable, Iterator
from datetime import datetime

from remediator.core import keep_out
from remediator.core.case import Attempt, Case
from remediator.core.duration import in_words


def oldest_first(cases: Iterable[Case]) -> list[Case]:
    """In the order in which they were opened; of two of the same second, the one whose fault began first."""
    return sorted(
        cases, key=lambda case: (case.created, case.trigger.since if case.trigger else case.created, case.name)
    )


def told(cases: Iterable[Case], now: datetime) -> Iterator[str]:
    """Lines about each case, the oldest first."""
    for case in oldest_first(cases):
        yield f"{case.created:%Y-%m-%d %H:%M:%S} UTC  {case.name}: {why_opened(case)}"
        if case.unreadable:
            yield "  cannot be read"
            continue
        yield from (f"  {line}" for line in done(case, now))
        yield f"  {outcome(case, now)}"


def why_opened(case: Case) -> str:
    """What a case was opened for, in a phrase."""
    if case.manual:
        asked = f"{case.manual.requested_by or 'a user'} asked for {case.manual.template}"
        return f"{asked}, to keep the node out {keep_out.terms(case)}" if case.keep_out else asked
    seen = case.trigger
    return f"policy {case.policy}" + (f", {seen.condition}={seen.status} ({seen.reason})" if seen else "")


def outcome(case: Case, now: datetime) -> str:
    """How it ended and after what time; or where it stands, and since when it is open."""
    why = f"{case.reason.value}: {case.message}" if case.reason else case.message
    if case.ended is None:
        blocks = "; ".join(f"{block.reason.value}: {block.message}" for block in case.blocks)
        return f"open for {in_words(now - case.created)}, {case.phase.value or 'new'}: {blocks or why or 'no word yet'}"
    took = in_words(case.ended - case.created)
    return f"{case.phase.value} after {took}" + (f": {why}" if why else "")


def done(case: Case, now: datetime) -> Iterator[str]:
    """What was done: how long it waited, each attempt, what that ended, and who has set what."""
    if case.started is not None:
        waited = case.started - case.created
        yield f"waited {in_words(waited)} for its claim"
    for attempt in case.attempts:
        yield _tried(attempt, now)
    if case.blast is not None and case.attempts and case.blast.count:
        yield f"ended jobs: {case.blast.count}, on GPUs: {case.blast.gpus}, GPU-hours: {case.blast.gpu_hours}"
    for field, user in case.set_by._asdict().items():
        if user:
            yield f"spec.{field} set by {user}"


def _tried(attempt: Attempt, now: datetime) -> str:
    took = in_words((attempt.finished or now) - attempt.started)
    kind = "probe " if attempt.probe else "then " if attempt.follows else ""
    result = f"{attempt.outcome.value} after {took}" if attempt.outcome.value else f"running for {took}"
    return f"{attempt.started:%H:%M:%S} {kind}{attempt.template}: {result}" + (
        f": {attempt.message}" if attempt.message else ""
    )
