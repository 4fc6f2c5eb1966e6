"""Counts the Pods that nodes reject, and says on each node's Condition PodsRejected when they are too many."""

from collections import Counter
from collections.abc import Collection, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TypeVar

from remediator.controller.cache import ClusterCache
from remediator.controller.effects import Patch
from remediator.controller.handlers.base import seconds, seconds_until
from remediator.controller.perform import Performer
from remediator.core.node import Node, Status
from remediator.core.rejections import BEATS, BLAMED, PODS_REJECTED, JudgedRejections, Rejection, judge, to_write
from remediator.core.spare import PodHolding
from remediator.kube.api import encode
from remediator.kube.api.builtin import NODE
from remediator.kube.runtime.informer import Informer
from remediator.kube.wire.transport import STRATEGIC_PATCH

T = TypeVar("T")
HOUR, NEVER = timedelta(hours=1), datetime.min.replace(tzinfo=UTC)
SILENT = 5.0  # seconds until a watch that does not tell what works is asked about again


class RejectionCounts:
    """The Pods that nodes did not take, by node and by owner, kept change by change."""

    def __init__(self, pods: Informer[Rejection]) -> None:
        self._pods = pods
        self._by_node: dict[str, Counter[Rejection]] = {}  # one namespace can have thousands on a node: found at once
        self._nodes_of: dict[str, Counter[tuple[str, datetime]]] = {}  # by owner: node, and the hour; how many Pods
        pods.on_view(self._moved)

    def nodes(self) -> Collection[str]:
        """The nodes that have rejected any Pod that is still there."""
        self._pods.settle()
        return tuple(self._by_node)

    def of(self, node: str) -> list[Rejection]:
        """All that a node has rejected."""
        self._pods.settle()
        return list(self._by_node.get(node, Counter()).elements())

    def nodes_of(self, owner: str, now: datetime) -> int:
        """How many nodes have rejected Pods of an owner within a day, to the hour."""
        since = now - BLAMED - HOUR
        return len({node for node, hour in self._nodes_of.get(owner, ()) if hour > since})

    def _moved(self, old: Rejection | None, new: Rejection | None) -> None:
        for rejection, change in ((old, -1), (new, 1)):
            if rejection is not None and rejection.node:
                _count(self._by_node, rejection.node, rejection, change)
                _count(self._nodes_of, rejection.owner, (rejection.node, _hour(rejection.at)), change)


class WorkCounts:
    """Of which namespaces Pods work on each node, kept change by change: none of DaemonSets, and none of `apart`."""

    def __init__(self, pods: Informer[PodHolding], apart: Collection[str]) -> None:
        self._pods, self._apart = pods, apart
        self._by_node: dict[str, Counter[str]] = {}
        pods.on_change(self._moved)

    def fresh(self) -> bool:
        """Whether the list is complete and told of lately."""
        return self._pods.fresh()

    def of_others(self, node: str, namespace: str) -> bool:
        """Whether Pods of other namespaces than this one work on a node."""
        return any(each != namespace for each in self._by_node.get(node, ()))

    def _moved(self, key: str, old: PodHolding | None, new: PodHolding | None) -> None:
        namespace = key.partition("/")[0]
        for holding, change in ((old, -1), (new, 1)):
            if holding is not None and holding.node and not holding.daemon and namespace not in self._apart:
                _count(self._by_node, holding.node, namespace, change)


def _hour(at: datetime | None) -> datetime:
    return at.replace(minute=0, second=0, microsecond=0) if at is not None else NEVER


def _count(counts: dict[str, Counter[T]], key: str, what: T, change: int) -> None:
    """One more or one less, and nothing kept of what there is none of."""
    here = counts.setdefault(key, Counter())
    here[what] += change
    if not here[what]:
        del here[what]
    if not here:
        del counts[key]


class RejectionReconciler:
    """Writes the Condition of one node where it differs from what its Pods prove."""

    def __init__(self, cache: ClusterCache, counts: RejectionCounts, work: WorkCounts, performer: Performer) -> None:
        self._cache, self._counts, self._work, self._performer = cache, counts, work, performer

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
        if not self._work.fresh() and (before is None or before.status is not Status.TRUE):
            return SILENT
        others_work = partial(self._work.of_others, name)
        judged = judge(self._counts.of(name), partial(self._counts.nodes_of, now=now), before, now, others_work)
        condition = to_write(judged, before, awaited, now)
        if condition is None:
            return _again(judged, awaited, now)
        patch = Patch(NODE, name, encode.node_condition(node, condition), "", "status", STRATEGIC_PATCH)
        return seconds(await self._performer.all([patch])) or _again(judged, awaited, now)

    def _awaited(self, node: Node) -> bool:
        return any(case.open and case.node_uid == node.uid for case in self._cache.cases.by("node", node.name))


def _again(judged: JudgedRejections, awaited: bool, now: datetime) -> float | None:
    if judged.status is not Status.TRUE and not awaited:
        return None
    ends = [now + BEATS, *([judged.until] if judged.until is not None else [])]
    return seconds_until(max(min(ends), now + timedelta(seconds=1)), now)
