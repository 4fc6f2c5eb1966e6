"""Counts the Pods that nodes reject, and says on each node's Condition PodsRejected when they are too many."""

from collections.abc import Collection, Iterator
from datetime import datetime, timedelta

from remediator.controller.cache import ClusterCache
from remediator.controller.effects import Patch
from remediator.controller.handlers.base import seconds, seconds_until
from remediator.controller.perform import Performer
from remediator.core.node import Node, Status
from remediator.core.rejections import BEATS, PODS_REJECTED, Judged, Rejection, judge, to_write
from remediator.kube.api import encode
from remediator.kube.api.builtin import NODE
from remediator.kube.runtime.informer import Informer
from remediator.kube.wire.transport import STRATEGIC_PATCH


class RejectionCounts:
    """The Pods that nodes did not take, by node and by owner, kept change by change."""

    def __init__(self, pods: Informer[Rejection]) -> None:
        self._pods = pods
        self._by_node: dict[str, list[Rejection]] = {}
        self._nodes_of: dict[str, dict[str, int]] = {}  # by owner: how many of its Pods each node rejected
        pods.on_view(self._moved)

    def nodes(self) -> Collection[str]:
        """The nodes that have rejected any Pod that is still there."""
        self._pods.settle()
        return tuple(self._by_node)

    def of(self, node: str) -> list[Rejection]:
        """All that a node has rejected."""
        self._pods.settle()
        return self._by_node.get(node, [])

    def nodes_of(self, owner: str) -> int:
        """How many nodes have rejected Pods of an owner."""
        return len(self._nodes_of.get(owner, ()))

    def _moved(self, old: Rejection | None, new: Rejection | None) -> None:
        if old is not None and old.node:
            self._by_node[old.node].remove(old)
            if not self._by_node[old.node]:
                del self._by_node[old.node]
            self._count(old, -1)
        if new is not None and new.node:
            self._by_node.setdefault(new.node, []).append(new)
            self._count(new, 1)

    def _count(self, rejection: Rejection, change: int) -> None:
        nodes = self._nodes_of.setdefault(rejection.owner, {})
        nodes[rejection.node] = nodes.get(rejection.node, 0) + change
        if not nodes[rejection.node]:
            del nodes[rejection.node]
        if not nodes:
            del self._nodes_of[rejection.owner]


class RejectionReconciler:
    """Writes the Condition of one node where it differs from what its Pods prove."""

    def __init__(self, cache: ClusterCache, counts: RejectionCounts, performer: Performer) -> None:
        self._cache, self._counts, self._performer = cache, counts, performer

    def concerned(self) -> Iterator[str]:
        """The nodes whose Condition may have to change: by their Pods, or by time."""
        yield from self._counts.nodes()
        yield from (node.name for node in self._cache.nodes if PODS_REJECTED in node.conditions)

    async def reconcile(self, name: str, now: datetime) -> float | None:
        """One pass; seconds until the next one, None where a Pod will ask for it."""
        node = self._cache.nodes.get(name)
        if node is None:
            return None
        before, awaited = node.conditions.get(PODS_REJECTED), self._awaited(node)
        judged = judge(self._counts.of(name), self._counts.nodes_of, before, now)
        condition = to_write(judged, before, awaited, now)
        if condition is None:
            return _again(judged, awaited, now)
        patch = Patch(NODE, name, encode.node_condition(node, condition), "", "status", STRATEGIC_PATCH)
        return seconds(await self._performer.all([patch])) or _again(judged, awaited, now)

    def _awaited(self, node: Node) -> bool:
        return any(case.open and case.node_uid == node.uid for case in self._cache.cases.by("node", node.name))


def _again(judged: Judged, awaited: bool, now: datetime) -> float | None:
    if judged.status is not Status.TRUE and not awaited:
        return None
    ends = [now + BEATS, *([judged.until] if judged.until is not None else [])]
    return seconds_until(max(min(ends), now + timedelta(seconds=1)), now)
