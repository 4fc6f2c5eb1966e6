"""A case that may not start → its effects. Pure: decides when status.blockedBy is written again."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from remediator.controller import marks
from remediator.controller.effects import ChangeNode, Effect, SaveCase
from remediator.core import guard
from remediator.core.case import Block, Case, Phase, advance
from remediator.core.duration import in_words
from remediator.core.history import dated, held_since, lasting_since
from remediator.core.jobs_at_stake import BlastRadius
from remediator.core.reasons import CHOSEN, PASSING, PAUSES, Reason, reported_after

# Blocks whose reasons are the same are written at most this often: their text names nodes, which come and go.
REWRITE_AFTER = timedelta(minutes=1)
MOST_BLOCKS, LONGEST = 16, 4096  # what status.blockedBy has room for; the others hold the case all the same


@dataclass(frozen=True, slots=True)
class Hold:
    """What is written for a case that may not start.

    `rewrite_at` is when a newer text may be written, `report_at` when a user is to be told that the hold lasts.
    """

    effects: tuple[Effect, ...]
    saved: bool
    rewrite_at: datetime | None = None
    report_at: datetime | None = None


def hold(
    case: Case,
    blocks: tuple[Block, ...],
    written: datetime | None,
    now: datetime,
    blast: BlastRadius | None = None,
) -> Hold:
    """Show why nothing starts, and ask new work away from a node that only waits its turn.

    Args:
        case: The case as last observed.
        blocks: What holds it now; at least one.
        written: When its blocks were last written by this process; None where that is not known.
        now: Aware UTC.
        blast: What the case says of what its start would end; None to leave that as it is.
    """
    shortened = [replace(block, message=block.message[:LONGEST]) for block in blocks[:MOST_BLOCKS]]
    blocks, report_at = _reported(case, shortened, now)
    degrade = (ChangeNode(case.node, marks.degrade(case)),) if guard.waits_in_queue(blocks) else ()
    phase = case.phase if case.claimed else Phase.HELD
    after = replace(case, phase=phase, blocks=dated(case, blocks, now), blast=blast or case.blast)
    reported = {block.reason for block in case.blocks if block.reported}
    news = [block for block in blocks if block.reported and block.reason not in reported]
    stop = next((block for block in blocks if block.reason in PAUSES), None)
    if news:
        if stop and stop.reason.value not in _reasons(case.blocks):  # what it stops from here on counts as no wait
            after = advance(after, stop.reason, stop.message, now)
        message = _lasting(after, news[0], now - lasting_since(case, news[0].reason, now))
        return Hold((SaveCase(case, advance(after, Reason.HELD_LONG, message, now)), *degrade), saved=True)
    if _reasons(blocks) != _reasons(case.blocks) or after.phase is not case.phase:
        known = _reasons(case.blocks)
        newest = stop or next((block for block in blocks if block.reason not in known), blocks[0])
        save = SaveCase(case, advance(after, newest.reason, newest.message, now))
        return Hold((save, *degrade), saved=True, report_at=report_at)
    shown = tuple(replace(block, since=None) for block in case.blocks)  # a time that they lack is no reason to write
    if blocks == shown and after.blast == case.blast:
        return Hold(degrade, saved=False, report_at=report_at)
    expired = any(block.until is not None and block.until <= now for block in case.blocks)
    first = case.blast is None and after.blast is not None
    if expired or first or written is None or now - written >= REWRITE_AFTER:
        return Hold((SaveCase(case, after), *degrade), saved=True, report_at=report_at)
    return Hold(degrade, saved=False, rewrite_at=written + REWRITE_AFTER, report_at=report_at)


def _reported(case: Case, blocks: Sequence[Block], now: datetime) -> tuple[tuple[Block, ...], datetime | None]:
    """The blocks, with those that have lasted too long marked, and when the next one will have.

    None is marked beside one that a user has chosen, unless that ends by itself.
    """
    times = {block.reason: time for block in blocks if (time := reported_after(block.reason)) is not None}
    if not times or any(block.reason in CHOSEN - PASSING for block in blocks):
        return tuple(blocks), None
    before = {block.reason for block in case.blocks if block.reported}
    due = {
        reason: now if reason in before else lasting_since(case, reason, now) + time for reason, time in times.items()
    }
    marked = (replace(block, reported=block.reason in due and due[block.reason] <= now) for block in blocks)
    return tuple(marked), min((when for when in due.values() if when > now), default=None)


def _lasting(case: Case, block: Block, waited: timedelta) -> str:
    """What is told of a hold that lasts: all that the case has waited, and since when the newest reason holds it."""
    since = held_since(case, block.reason)
    return f"held for {in_words(waited)}: {block.reason.value} (since {since:%Y-%m-%d %H:%M} UTC): {block.message}"


def _reasons(blocks: tuple[Block, ...]) -> list[str]:
    return [block.reason.value for block in blocks]
