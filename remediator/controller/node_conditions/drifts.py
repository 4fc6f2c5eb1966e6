"""The Condition NodeDrift: whether a node runs with other versions or settings than nearly all nodes of its group."""

import asyncio
from collections.abc import Iterable, Sequence
from datetime import datetime

from remediator.clock import Clock
from remediator.controller.cache import ClusterCache
from remediator.controller.node_conditions.write import follow_cases, say
from remediator.controller.perform import Performer
from remediator.core.node_drift import concerned, own_condition, report_of
from remediator.core.node_versions import NODE_DRIFT
from remediator.core.version_groups import GroupsSeen, VersionReport, look
from remediator.kube.runtime.leader import LeaderQueue
from remediator.kube.runtime.turns import sliced

AT_ONCE = 4  # writes
EVERY = 300.0  # seconds between two looks at all nodes
SLICE = 200  # nodes that are read between two turns of the loop
ASK = ""  # the key of the look itself; all others are names of nodes


class NodeDrifts:
    """Compares the nodes of each group, all at one time, and says who differs. Only who leads looks and writes.

    What it remembers of groups is lost with the lead: then nothing new is told before all has stood still once more.
    """

    def __init__(self, cache: ClusterCache, performer: Performer, clock: Clock, labels: Sequence[str]) -> None:
        """`labels`: nodes with the same values of these are one group."""
        self._cache, self._performer, self._clock = cache, performer, clock
        self._labels = tuple(labels)
        self._seen: GroupsSeen | None = None
        self.queue: LeaderQueue[str] = LeaderQueue(
            "node drifts",
            self._pass,
            lambda: [ASK],
            workers=AT_ONCE,
            essential=False,
            ended=self._forget,
        )
        follow_cases(cache, self.queue, NODE_DRIFT)

    def _forget(self) -> None:
        self._seen = None

    async def _pass(self, name: str) -> float | None:
        now = self._clock.now()
        if name == ASK:
            await self._look(now)
            return EVERY
        return await self._say(name, now)

    async def _look(self, now: datetime) -> None:
        """At all nodes; thousands are counted beside the loop."""
        reports = [report_of(node, self._labels, now) async for node in sliced(self._cache.nodes, SLICE)]
        self._seen, names = await asyncio.to_thread(_compared, self._seen, reports, now)
        self.queue.feed(names)

    async def _say(self, name: str, now: datetime) -> float | None:
        node = self._cache.nodes.get(name)
        if node is None or self._seen is None:
            return None
        report, asked = report_of(node, self._labels, now), self._cache.has_open_case(name)
        words = own_condition(node, self._seen, report, now, asked=asked)
        return await say(self._performer, self._cache, node, words, now)


def _compared(
    before: GroupsSeen | None, reports: Iterable[VersionReport], now: datetime
) -> tuple[GroupsSeen, list[str]]:
    known = tuple(reports)
    seen = look(before, known, now)
    return seen, concerned(seen, known, now)
