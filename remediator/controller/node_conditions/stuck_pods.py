"""Keeps which Pods are to end on each node, and says on PodsStuckTerminating that some do not."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from remediator.clock import Clock
from remediator.controller.cache import ClusterCache
from remediator.controller.node_conditions.write import follow_cases, say
from remediator.controller.perform import Performer
from remediator.core.node import Node
from remediator.core.spare import EndingPod, PodHolding
from remediator.core.stuck_pods import STUCK_PODS, overdue, own_condition
from remediator.kube.informers import Informers
from remediator.kube.runtime.leader import LeaderQueue, Sweep, every

AT_ONCE = 4  # writes
LOOK = timedelta(minutes=1)  # between two looks for Pods that should be gone
SILENT = 5.0  # seconds until a watch that says nothing is asked about again


class StuckPods:
    """Follows the watch of all Pods that run, which is there for their GPUs. Only who leads writes.

    Kept are those alone that somebody has deleted: seconds, as a rule. A node is looked at when one of them is long
    overdue, and, where the Condition stands, when one goes, the kubelet turns or a case of the node changes.
    """

    def __init__(self, informers: Informers, cache: ClusterCache, performer: Performer, clock: Clock) -> None:
        self._cache, self._performer, self._clock = cache, performer, clock
        self._pods = informers.gpu_pods
        self._ends: dict[str, dict[str, datetime]] = {}  # by node and namespace/name
        self.queue: LeaderQueue[str] = LeaderQueue(
            "stuck pods",
            self._pass,
            self._everything,
            workers=AT_ONCE,
            sweeps=(Sweep("Pods that should be gone", every(LOOK), self._look),),
            essential=False,
        )
        self._pods.on_change(self._moved)
        cache.nodes.on_change(lambda _, old, new: self._node(old, new))
        follow_cases(cache, self.queue, STUCK_PODS)

    def _moved(self, key: str, old: PodHolding | None, new: PodHolding | None) -> None:
        if isinstance(old, EndingPod):
            self._drop(key, old.place)
        if isinstance(new, EndingPod) and new.ends is not None:
            self._ends.setdefault(new.place, {})[key] = new.ends

    def _drop(self, key: str, place: str) -> None:
        here = self._ends.get(place, {})
        here.pop(key, None)
        if not here:
            self._ends.pop(place, None)
        if self.queue.leading and (node := self._cache.nodes.get(place)) and STUCK_PODS in node.conditions:
            self.queue.add(place)

    def _node(self, old: Node | None, new: Node | None) -> None:
        if old is None or new is None or not self.queue.leading:
            return
        if old.ready is not new.ready or old.conditions.get(STUCK_PODS) != new.conditions.get(STUCK_PODS):
            self.queue.add(new.name)

    def _look(self) -> None:
        now = self._clock.now()
        self.queue.add(*(node for node, ends in self._ends.items() if overdue(ends, now)))

    def _everything(self) -> Iterator[str]:
        return (node.name for node in self._cache.nodes if STUCK_PODS in node.conditions)

    async def _pass(self, name: str) -> float | None:
        """One node. While the watch is silent nothing is said: the heartbeat grows old, and then proves nothing."""
        node = self._cache.nodes.get(name)
        if node is None:
            return None
        if not self._pods.fresh():
            return SILENT
        now = self._clock.now()
        return await say(self._performer, self._cache, node, own_condition(node, self._ends.get(name, {}), now), now)
