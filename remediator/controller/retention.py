"""Deletes ended cases that are no longer kept, their operations with them, and old operations of no case."""

from collections import defaultdict
from datetime import datetime

from remediator.controller.cache import ClusterCache
from remediator.controller.effects import Delete, Patch, Retry
from remediator.controller.perform import Performer
from remediator.core import names
from remediator.core.case import Case
from remediator.core.operation import Operation
from remediator.core.retention import expired, orphaned
from remediator.kube import api
from remediator.kube.api import encode
from remediator.kube.runtime.turns import sliced

SLICE = 100  # cases, or nodes, between two turns of the loop


class Retention:
    """The sweep over old cases."""

    def __init__(self, cache: ClusterCache, performer: Performer) -> None:
        self.cache, self.performer = cache, performer

    async def run(self, now: datetime) -> float | None:
        """Delete what has expired, until the API server has no time; the next sweep goes on."""
        for case in await self._expired(now):
            if isinstance(await self.performer.all(self._deletions(case)), Retry):
                return None
        for operation in await self._orphaned(now):
            if isinstance(await self.performer.all(_deletion(operation)), Retry):
                return None
        return None

    async def _orphaned(self, now: datetime) -> list[Operation]:
        uids = {case.uid async for case in sliced(self.cache.cases, SLICE)}
        return orphaned([operation async for operation in sliced(self.cache.operations, SLICE)], uids, now)

    async def _expired(self, now: datetime) -> list[Case]:
        """Oldest first. The cases of one node are judged together, others run in between."""
        by_node: defaultdict[str, list[Case]] = defaultdict(list)
        async for case in sliced(self.cache.cases, SLICE):
            by_node[case.node].append(case)
        policies = {policy.name: policy for policy in self.cache.policies}
        old: list[Case] = []
        async for name, cases in sliced(by_node.items(), SLICE):
            node = self.cache.nodes.get(name)
            old += expired(cases, {name: node} if node else {}, policies, now)
        return sorted(old, key=lambda case: case.ended or case.created)

    def _deletions(self, case: Case) -> list[Patch | Delete]:
        effects: list[Patch | Delete] = []
        for operation in self.cache.operations.by("case_uid", case.uid):
            effects += _deletion(operation)
        if case.manual:
            effects.append(Delete(api.OPERATION, case.manual.operation, case.manual.uid))
        return [*effects, Delete(api.CASE, case.name, case.uid)]


def _deletion(operation: Operation) -> list[Patch | Delete]:
    body = encode.without_finalizer(operation.version, operation.finalizers, names.CASE_FINALIZER)
    return [Patch(api.OPERATION, operation.name, body), Delete(api.OPERATION, operation.name, operation.uid)]
