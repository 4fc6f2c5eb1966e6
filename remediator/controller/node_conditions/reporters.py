"""The Conditions ReportedBy/PODS: whether those are alive who write other Conditions only when these change."""

import asyncio
from collections import Counter
from collections.abc import Iterator

from remediator.clock import Clock
from remediator.controller.cache import ClusterCache
from remediator.controller.node_conditions.write import write
from remediator.controller.perform import Performer
from remediator.core.node import Node
from remediator.core.policy import Policy
from remediator.core.reporters import ALL, NONE, ReporterPod, asked, of_condition, own_condition
from remediator.kube.informers import Informers
from remediator.kube.runtime.informer import Informer
from remediator.kube.runtime.leader import LeaderQueue

AT_ONCE = 4  # writes
SILENT = 5.0  # seconds until a watch that says nothing is asked about again
ASK = ""  # the key of the look at whom policies name; all others are names of nodes


class ReadyPods:
    """The Pods of one reporter, and for how many of them that are Ready each node is spoken for."""

    def __init__(self, pods: Informer[ReporterPod]) -> None:
        self.pods = pods
        self.task = asyncio.create_task(pods.run())
        self._ready: Counter[str] = Counter()
        self._pods, self._tied = 0, 0
        pods.on_view(self._moved)

    def speak_for(self, node: str) -> bool:
        """Whether one of them is Ready that speaks for this node, or for ALL."""
        self.pods.settle()
        return self._ready[node] > 0

    def speak_for_all(self) -> bool:
        """Whether one is Ready that speaks for every node: not where each node has its own, of a DaemonSet.

        Else a Pod that has the same labels by chance, such as a copy to debug one, vouches for nodes whose own is away.
        """
        return self.speak_for(ALL) and not self._tied

    def exist(self) -> bool:
        """Whether there is any Pod of it, Ready or not."""
        self.pods.settle()
        return self._pods > 0

    def _moved(self, old: ReporterPod | None, new: ReporterPod | None) -> None:
        self._pods += (new is not None) - (old is not None)
        self._tied += (new is not None and not new.everywhere) - (old is not None and not old.everywhere)
        for pod, change in ((old, -1), (new, 1)):
            if pod is not None and pod.speaks_for != NONE:
                self._ready[pod.speaks_for] += change
                if not self._ready[pod.speaks_for]:
                    del self._ready[pod.speaks_for]


class ReporterConditions:
    """Keeps the Conditions of the nodes that a policy asks about. Only who leads watches and writes.

    While a watch is silent nothing is written: heartbeats grow old, and then prove nothing.
    """

    def __init__(self, informers: Informers, cache: ClusterCache, performer: Performer, clock: Clock) -> None:
        self._informers, self._cache, self._performer, self._clock = informers, cache, performer, clock
        self._ready: dict[str, ReadyPods] = {}  # by the type of the Condition
        self.queue: LeaderQueue[str] = LeaderQueue(
            "reporter conditions", self._pass, self._everything, workers=AT_ONCE, essential=False, ended=self._forget
        )
        cache.policies.on_change(lambda _, old, new: self._asked(old, new))
        cache.nodes.on_change(lambda _, old, new: self._node(old, new))
        cache.cases.on_change(lambda _, old, new: self.queue.add(*(case.node for case in (new or old,) if case)))

    def _everything(self) -> Iterator[str]:
        yield from [ASK] if any(any(asked(policy)) for policy in self._cache.policies) else []

    def _forget(self) -> None:
        for watched in self._ready.values():
            watched.task.cancel()
        self._ready = {}

    def _asked(self, old: Policy | None, new: Policy | None) -> None:
        if any(any(asked(policy)) for policy in (old, new) if policy is not None):
            self.queue.add(ASK)

    def _node(self, old: Node | None, new: Node | None) -> None:
        if self._ready and new is not None and (old is None or old.uid != new.uid or old.labels != new.labels):
            self.queue.add(new.name)

    def _pod(self, old: ReporterPod | None, new: ReporterPod | None) -> None:
        places = {pod.speaks_for for pod in (old, new) if pod is not None} - {NONE}
        if ALL in places:
            self.queue.feed(self._nodes())
        self.queue.add(*places - {ALL})

    def _nodes(self) -> Iterator[str]:
        return (node.name for node in self._cache.nodes)

    async def _pass(self, name: str) -> float | None:
        if name == ASK:
            self._follow(frozenset().union(*map(asked, self._cache.policies)))
            self.queue.feed(self._nodes() if self._ready else ())
            return None
        node = self._cache.nodes.get(name)
        if node is None:
            return None
        return min([await self._write(node, type) for type in self._wanted(node)], default=None)

    def _follow(self, types: frozenset[str]) -> None:
        """Watch the Pods that policies name, and no others."""
        for type in self._ready.keys() - types:
            self._ready.pop(type).task.cancel()
        for type in sorted(types - self._ready.keys()):
            pods = self._informers.reporter(of_condition(type))
            pods.on_change(lambda _, old, new: self._pod(old, new))
            self._ready[type] = ReadyPods(pods)

    def _wanted(self, node: Node) -> list[str]:
        types = {type for policy in self._cache.policies if policy.selects(node) for type in asked(policy)}
        return sorted(types & self._ready.keys())

    async def _write(self, node: Node, type: str) -> float:
        known = self._ready[type]
        if not known.pods.fresh():
            return SILENT
        words = own_condition(type, known.speak_for(node.name), known.speak_for_all(), known.exist())
        return await write(self._performer, self._cache, node, words, self._clock.now())
