"""How long things took, by what a case tells of itself. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import replace
from datetime import datetime, timedelta

from remediator.core.absence import Gap
from remediator.core.case import Block, Case, Phase
from remediator.core.operation import Operation
from remediator.core.reasons import CHOSEN, PASSING, PAUSES, Reason

# The phase that begins with a line of the timeline; the other lines change no phase.
PHASES: Mapping[Reason, Phase] = {
    Reason.CLAIMED: Phase.DRAINING,
    Reason.STARTED: Phase.DRAINING,
    Reason.DRAINING: Phase.DRAINING,
    Reason.OPERATING: Phase.OPERATING,
    Reason.SUCCEEDED: Phase.VERIFYING,
    Reason.FAILED: Phase.VERIFYING,
    Reason.REFUSED: Phase.VERIFYING,
    Reason.STOPPED: Phase.VERIFYING,
    Reason.RETRIED_BY_USER: Phase.VERIFYING,
    Reason.LADDER_EXHAUSTED: Phase.ESCALATED,
    Reason.ATTEMPTS_SPENT: Phase.ESCALATED,
    Reason.RELAPSED: Phase.ESCALATED,
    Reason.LEMON: Phase.ESCALATED,
    Reason.VERIFY_TIMEOUT: Phase.ESCALATED,
    Reason.TAKEN_OUT: Phase.ESCALATED,
    Reason.TAKE_OUT_OVERDUE: Phase.ESCALATED,
}
WAITS_AGAIN = frozenset(PHASES) | {Reason.RESUMED}  # with these a wait has ended, or begins anew


def phase_since(case: Case) -> datetime:
    """When the case came into its phase; when it was opened, where its timeline does not tell."""
    since, phase = case.created, Phase.NEW
    for event in case.timeline:
        begins = PHASES.get(event.reason, phase)
        if begins is not phase:
            since, phase = event.at, begins
    return since


def held_since(case: Case, reason: Reason) -> datetime:
    """Since when this reason, which is one of its blocks, holds the case without a break, whatever its text.

    An older version did not write that: then since its timeline first tells of the reason in this phase, which is too
    early where the reason had gone and come back.
    """
    written = (block.since for block in case.blocks if block.reason is reason and block.since is not None)
    return next(written, None) or _first_told(case, reason)


def dated(case: Case, blocks: Iterable[Block], now: datetime) -> tuple[Block, ...]:
    """The blocks that are shown next, each with since when its reason holds the case: now, where it is a new one."""
    since = {block.reason: held_since(case, block.reason) for block in case.blocks}
    return tuple(replace(block, since=since.get(block.reason, now)) for block in blocks)


def _first_told(case: Case, reason: Reason) -> datetime:
    since = None
    for event in reversed(case.timeline):
        if event.reason in PHASES:
            break
        since = event.at if event.reason is reason else since
    return since or phase_since(case)


def waiting_since(case: Case, now: datetime) -> datetime:
    """Since when the case has been held without a break, whatever the reasons, by none that a user has chosen.

    Where such a one is still shown, it has only just ended.
    """
    chosen = [block.reason for block in case.blocks if block.reason in CHOSEN]
    if len(chosen) == len(case.blocks) > 0 or not PASSING.issuperset(chosen):
        return now
    return _since_last(CHOSEN | WAITS_AGAIN, case) or phase_since(case)


def lasting_since(case: Case, reason: Reason, now: datetime) -> datetime:
    """Since when a wait for this reason counts as one that lasts, which a user is told of in time.

    Since the case waits for whatever reason, or since this reason holds it, though windows and cooldowns have come and
    gone beside it; not from before the end of what else a user had chosen, nor from before the newest attempt.
    """
    waits, shown = waiting_since(case, now), {block.reason for block in case.blocks}
    if reason not in shown or shown & (CHOSEN - PASSING):
        return waits
    free = _since_last((CHOSEN - PASSING) | WAITS_AGAIN, case) or case.created
    return min(waits, max(held_since(case, reason), free))


def _since_last(reasons: Set[Reason], case: Case) -> datetime | None:
    """When the case first told of something else after it last told of one of these; None where it tells of none."""
    since = None
    for event in reversed(case.timeline):
        if event.reason in reasons:
            return since or event.at
        since = event.at
    return None


def pauses(case: Case, now: datetime) -> Iterator[Gap]:
    """When a user had stopped the case: from each line that tells so to the next that tells of something else."""
    begin = None
    for event in case.timeline:
        if event.reason in PAUSES:
            begin = begin or event.at
        elif begin is not None and event.reason is not Reason.HELD_LONG:
            yield Gap(begin, event.at)
            begin = None
    if begin is not None:
        yield Gap(begin, now)


def drained_for(operations: Iterable[Operation]) -> timedelta:
    """How long the operations of a case drained in all."""
    return sum((_drained(operation) for operation in operations), timedelta(0))


def _drained(operation: Operation) -> timedelta:
    end = operation.intent_at or operation.finished
    if operation.drain_started is None or end is None:
        return timedelta(0)
    return max(end - operation.drain_started, timedelta(0))


def last_fault(cases: Iterable[Case], node_uid: str) -> datetime | None:
    """When the newest case of a node ended; None where it has had none, or one is open."""
    ends = [case.ended for case in cases if case.node_uid == node_uid]
    ended = [end for end in ends if end is not None]
    return max(ended) if ended and len(ended) == len(ends) else None
