"""Takes off what cases have left behind that nobody knows any more: a finalizer was stripped, a backup was restored."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import structlog

from remediator.controller import marks, pods
from remediator.controller.cache import ClusterCache
from remediator.controller.effects import ChangeNode, Effect
from remediator.controller.perform import Performer
from remediator.core import names
from remediator.core.node import Node
from remediator.core.pod import Pod

log = structlog.get_logger()
LOOK_AGAIN = 30.0  # seconds, while a Pod of a case that is gone keeps its marks


class Orphans:
    """The sweep over marks and Pods. Entries in ledgers are dropped by the admission pass, by the same live list."""

    def __init__(self, cache: ClusterCache, performer: Performer) -> None:
        self.cache, self.performer = cache, performer

    async def run(self, now: datetime) -> float | None:
        """Nothing is asked of the server where every mark and every Pod is of a case that the cache knows."""
        nodes = [node for node in self.cache.marked if self._unknown(node.marks) or self._waits_for_nothing(node)]
        left = [pod for pod in self.cache.pods if pod.case_uid and self._unknown({pod.case_uid})]
        uids = {uid for node in nodes for uid in self._unknown(node.marks)} | {pod.case_uid for pod in left}
        unknown = await self.performer.unknown(uids)
        for pod in left:
            if pod.case_uid in unknown and _over(pod):
                await self._carry_out(pod.node, *pods.deletions((pod,)))
        gone = await self.performer.without_pods(unknown)
        for node in nodes:
            await self._carry_out(node.name, ChangeNode(node.name, sweep(gone, self._waits_for_nothing(node))))
        return LOOK_AGAIN if unknown - gone else None

    def _unknown(self, uids: set[str] | frozenset[str]) -> set[str]:
        return {uid for uid in uids if self.cache.case(uid) is None}

    def _waits_for_nothing(self, node: Node) -> bool:
        """Marked as one that waits for repair, without a case that could. A mark too few is put on again."""
        cases = self.cache.cases.by("node", node.name)
        return node.degraded and not any(case.open or case.finalizer for case in cases)

    async def _carry_out(self, node: str, *effects: Effect) -> None:
        result = await self.performer.all(effects)
        done = [type(effect).__name__ for effect in effects]
        log.info("left by a case that is gone", node=node, effects=done, result=type(result).__name__)


def _over(pod: Pod) -> bool:
    """Whether nothing of the Pod acts on a node, nor will: it has ended, or no node has it."""
    return pod.ended or not pod.node


def sweep(gone: frozenset[str], degraded: bool) -> marks.Change:
    """Take the marks of these cases off, and the mark of a node that waits for repair where `degraded`."""

    def change(node: Node) -> Mapping[str, Any] | None:
        own = {names.CASE_TAINT} if node.case_uid in gone else set()
        own |= {names.DEGRADED_TAINT} if degraded and (own or not node.case_uid) else set()
        kept = [taint for taint in node.taints if taint.key not in own]
        if len(kept) == len(node.taints) and not node.marks & gone:
            return None
        return marks.give_back(node, kept, gone)

    return change
