"""Deletes ended cases that are no longer kept, and their operations with them."""

from datetime import datetime

from remediator.controller.cache import ClusterCache
from remediator.controller.effects import Delete, Patch, Retry
from remediator.controller.perform import Performer
from remediator.core import names
from remediator.core.case import Case
from remediator.core.retention import expired
from remediator.kube import api
from remediator.kube.api import encode


class Retention:
    """The sweep over old cases."""

    def __init__(self, cache: ClusterCache, performer: Performer) -> None:
        self.cache, self.performer = cache, performer

    async def run(self, now: datetime) -> float | None:
        """Delete what has expired, until the API server has no time; the next sweep goes on."""
        nodes = {node.name: node for node in self.cache.nodes}
        policies = {policy.name: policy for policy in self.cache.policies}
        for case in expired(self.cache.cases, nodes, policies, now):
            if isinstance(await self.performer.all(self._deletions(case)), Retry):
                return None
        return None

    def _deletions(self, case: Case) -> list[Patch | Delete]:
        effects: list[Patch | Delete] = []
        for operation in self.cache.operations.by("case_uid", case.uid):
            body = encode.without_finalizer(operation.version, operation.finalizers, names.CASE_FINALIZER)
            effects.append(Patch(api.OPERATION, operation.name, body))
            effects.append(Delete(api.OPERATION, operation.name, operation.uid))
        return [*effects, Delete(api.CASE, case.name, case.uid)]
