"""What an admission pass reads live before it goes on: a watch may not have told of it yet."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial

from remediator.controller.cache import ClusterCache
from remediator.controller.case_view import CaseView, ledgers_of
from remediator.controller.effects import Retry
from remediator.controller.perform import Performer
from remediator.core.case_table import CaseStep
from remediator.kube import api
from remediator.kube.wire.errors import ApiError
from remediator.metrics import Contained

FAILED = Retry(60.0, "it failed; the controller's log says why")
Read = Callable[[str], Awaitable[object]]


class LiveReads:
    """Reads objects by name, some at once: `turn` is shared with what else is sent at once."""

    def __init__(self, cache: ClusterCache, performer: Performer, turn: asyncio.Semaphore) -> None:
        self.cache, self.performer, self._turn = cache, performer, turn

    async def partly_claimed(self, waiting: Sequence[tuple[CaseView, CaseStep]]) -> tuple[bool, dict[str, Retry]]:
        """A claim that was cut short is completed only after node, case, policy and ledgers were read live, in order.

        Returns whether anything was read, and the cases, by uid, of which that failed.
        """
        nodes, cases, policies, ledgers = (defaultdict[str, list[str]](list) for _ in range(4))
        for case in (view.case for view, step in waiting if step is CaseStep.CLAIM and self._partly_claimed(view)):
            nodes[case.node].append(case.uid)
            cases[case.name].append(case.uid)
            if not case.manual:
                policies[case.policy].append(case.uid)
            for name in ledgers_of(self.cache, case):
                ledgers[name].append(case.uid)
        unread = await self._all(self.performer.node, nodes)
        unread |= await self._all(partial(self.performer.read, api.CASE), cases)
        unread |= await self._all(self.performer.policy, policies)
        unread |= await self._all(partial(self.performer.read, api.BUDGET), ledgers)
        return bool(cases), unread

    def _partly_claimed(self, view: CaseView) -> bool:
        """Whether something was written of a claim that the case does not say yet."""
        tainted = view.node is not None and view.node.case_uid == view.case.uid
        return tainted or bool(self.cache.entries.of(view.case.uid))

    async def _all(self, read: Read, needed: Mapping[str, Iterable[str]]) -> dict[str, Retry]:
        """Read what has these names, some at once. Those that need something that cannot be read, by uid."""
        results = await asyncio.gather(*(self._in_turn(read, name) for name in needed))
        failed = ((uids, result) for uids, result in zip(needed.values(), results, strict=True) if result is not None)
        return {uid: result for uids, result in failed for uid in uids}

    async def _in_turn(self, read: Read, name: str) -> Retry | None:
        async with self._turn:
            with Contained("admission", name):
                return await unread(read, name)
        return FAILED


async def unread(read: Read, name: str) -> Retry | None:
    """When to ask again where the API server does not say what has this name; None where it says."""
    try:
        await read(name)
    except ApiError as error:
        return Retry(error.retry_after or 2.0, str(error))
    return None
