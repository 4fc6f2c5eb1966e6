"""How much of what is free on a node the next Pod cannot use, on the average of a workload.

After Weng et al., "Beware of Fragmentation" (USENIX ATC 2023). For one kind of Pod, all that is free of a node's cards
is a fragment where the node cannot take the Pod, or the Pod needs no card; else the cards of which too little is free
for it. A node's fragmentation is the mean over the workload. Host memory plays no part.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Mapping
from itertools import accumulate
from typing import NamedTuple

from remediator.scheduler.attributes.catalog import NodeAttributes
from remediator.scheduler.attributes.selector import ANYTHING
from remediator.scheduler.packing.room import NodeRoom, Task

MOST_KEPT = 50_000  # rooms whose fragmentation is remembered


class _CpuTasks(NamedTuple):
    """Tasks that differ in CPU alone: `shares[n]` is that of the n tasks that need the least."""

    cards: int
    milli: int
    cpus: list[int]
    shares: list[float]


class Fragmentation:
    """Of rooms, for one workload: shares of tasks, which add up to 1, or to 0 where nothing is known."""

    def __init__(self, workload: Mapping[Task, float]) -> None:
        self.workload = dict(workload)
        self.sees_facts = any(task.attributes is not ANYTHING for task in workload)
        self._cpus = sorted({task.cpu for task in workload})
        self._groups: dict[tuple[str, NodeAttributes], tuple[float, list[_CpuTasks]]] = {}
        self._kept: dict[tuple[object, ...], float] = {}

    def of(self, room: NodeRoom) -> float:
        """Thousandths of a card that are fragments."""
        if not room.rests:
            return 0.0
        key = (room.rests, bisect_right(self._cpus, room.cpu), room.resource, room.facts)
        value = self._kept.get(key)
        if value is None:
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
            value = self._kept[key] = self._measured(room)
        return value

    def _measured(self, room: NodeRoom) -> float:
        rests, total = room.rests, sum(room.rests)
        sums = [0, *accumulate(rests)]
        useless, groups = self._grouped(room.resource, room.facts)
        lost = useless * total
        for group in groups:
            first = bisect_left(rests, group.milli)
            enough = len(rests) - first >= group.cards
            fitting = group.shares[bisect_right(group.cpus, room.cpu)]
            lost += fitting * (sums[first] if enough else total) + (group.shares[-1] - fitting) * total
        return lost

    def _grouped(self, resource: str, facts: NodeAttributes) -> tuple[float, list[_CpuTasks]]:
        """The share of tasks that use no such card at all, and all others."""
        if (resource, facts) not in self._groups:
            useless, alike = 0.0, defaultdict[tuple[int, int], list[tuple[int, float]]](list)
            for task, share in self.workload.items():
                if task.cards and task.takes(resource, facts):
                    alike[task.cards, task.milli].append((task.cpu, share))
                else:
                    useless += share
            groups = [_group(cards, milli, sorted(rows)) for (cards, milli), rows in alike.items()]
            self._groups[resource, facts] = useless, groups
        return self._groups[resource, facts]


def _group(cards: int, milli: int, rows: list[tuple[int, float]]) -> _CpuTasks:
    return _CpuTasks(cards, milli, [cpu for cpu, _ in rows], [0.0, *accumulate(share for _, share in rows)])
