"""A case that may not start → its effects. Pure: decides when status.blockedBy is written again."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from remediator.controller import marks
from remediator.controller.effects import ChangeNode, Effect, SaveCase
from remediator.core import guard
from remediator.core.case import Block, Case, Phase, advance

# Blocks whose reasons are the same are written at most this often: their text names nodes, which come and go.
REWRITE_AFTER = timedelta(minutes=1)
MOST_BLOCKS, LONGEST = 16, 4096  # what status.blockedBy has room for; the others hold the case all the same


@dataclass(frozen=True, slots=True)
class Hold:
    """What is written for a case that may not start. `rewrite_at` is when a newer text may be written."""

    effects: tuple[Effect, ...]
    saved: bool
    rewrite_at: datetime | None = None


def hold(case: Case, blocks: tuple[Block, ...], written: datetime | None, now: datetime) -> Hold:
    """Show why nothing starts, and ask new work away from a node that only waits its turn.

    Args:
        case: The case as last observed.
        blocks: What holds it now; at least one.
        written: When its blocks were last written by this process; None where that is not known.
        now: Aware UTC.
    """
    blocks = tuple(replace(block, message=block.message[:LONGEST]) for block in blocks[:MOST_BLOCKS])
    degrade = (ChangeNode(case.node, marks.degrade(case)),) if guard.waits_in_queue(blocks) else ()
    after = replace(case, phase=case.phase if case.claimed else Phase.HELD, blocks=blocks)
    if _reasons(blocks) != _reasons(case.blocks) or after.phase is not case.phase:
        known = _reasons(case.blocks)
        newest = next((block for block in blocks if block.reason not in known), blocks[0])
        save = SaveCase(case, advance(after, newest.reason, newest.message, now))
        return Hold((save, *degrade), saved=True)
    if blocks == case.blocks:
        return Hold(degrade, saved=False)
    expired = any(block.until is not None and block.until <= now for block in case.blocks)
    if expired or written is None or now - written >= REWRITE_AFTER:
        return Hold((SaveCase(case, after), *degrade), saved=True)
    return Hold(degrade, saved=False, rewrite_at=written + REWRITE_AFTER)


def _reasons(blocks: tuple[Block, ...]) -> list[str]:
    return [block.reason.value for block in blocks]
