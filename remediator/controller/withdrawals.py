"""Takes back claims that were entered in ledgers and never came to their node: who entered them died, or was refused.

The case is held by now, and its entries keep other nodes out of their budgets. They go once no write that was sent
before can mark the node any more: its version has moved since.
"""

import asyncio
from collections.abc import Sequence, Set

from remediator.controller import marks
from remediator.controller.cache import ClusterCache
from remediator.controller.effects import ChangeNode, Done
from remediator.controller.perform import Performer
from remediator.core.admission import StartRequest
from remediator.core.case import Block, Case
from remediator.core.reasons import Reason
from remediator.metrics import Contained

AT_ONCE = 16
# A user, or another system, has changed the node since it was admitted, so its version has moved.
MOVED = frozenset({Reason.OPTED_OUT, Reason.CORDONED_BY_USER, Reason.UNDER_MAINTENANCE})
# What the node runs: nothing is written on it, and its entries stay as long as the case.
SPARED = frozenset({Reason.CONTROL_PLANE, Reason.HOSTS_CONTROLLER})


async def withdrawn(
    held: Sequence[tuple[StartRequest, tuple[Block, ...]]], entered: Set[str], cache: ClusterCache, performer: Performer
) -> set[str]:
    """The uids of the cases whose entries may go: of those that are held, and that the pass has found `entered`."""
    turn = asyncio.Semaphore(AT_ONCE)
    cases = ((request.case, blocks) for request, blocks in held if request.case.uid in entered)
    unfinished = [(case, blocks) for case, blocks in cases if _unfinished(case, cache)]
    results = await asyncio.gather(*(_withdraw(case, blocks, cache, performer, turn) for case, blocks in unfinished))
    return {case.uid for (case, _), moved in zip(unfinished, results, strict=True) if moved}


def _unfinished(case: Case, cache: ClusterCache) -> bool:
    """Whether the case has entries, and neither says that it holds its node nor has marked it."""
    node = cache.nodes.get(case.node)
    return bool(not case.claimed and cache.entries.of(case.uid) and node and case.uid not in node.marks)


async def _withdraw(
    case: Case, blocks: Sequence[Block], cache: ClusterCache, performer: Performer, turn: asyncio.Semaphore
) -> bool:
    """Whether no earlier write can mark the node any more."""
    reasons = {block.reason for block in blocks}
    if reasons & MOVED or not cache.entries.of(case.uid):
        return True
    if reasons & SPARED:
        return False
    async with turn:
        with Contained("admission", case.name):
            result = await performer.one(ChangeNode(case.node, marks.withdraw(case)))
            return isinstance(result, Done) and _unfinished(case, cache)
    return False
