"""The Condition GpuDeviceTainted: what drivers of DRA say of the GPUs of a node, for policies like any other one."""

from collections.abc import Iterator

from remediator.clock import Clock
from remediator.controller.cache import ClusterCache
from remediator.controller.node_conditions.write import write
from remediator.controller.perform import Performer
from remediator.core.devices import CONDITION, Slice, own_condition
from remediator.core.node import Node
from remediator.core.policy import Policy
from remediator.kube.informers import Informers
from remediator.kube.runtime.leader import LeaderQueue

AT_ONCE = 4  # writes
SILENT = 5.0  # seconds until a watch that says nothing is asked about again


class DeviceTaints:
    """Keeps the Condition of the nodes that a policy asks about. Only who leads writes.

    While the watch of ResourceSlices is silent nothing is written: heartbeats grow old, and then prove nothing.
    """

    def __init__(self, informers: Informers, cache: ClusterCache, performer: Performer, clock: Clock) -> None:
        self._slices, self._cache, self._performer, self._clock = informers.device_slices, cache, performer, clock
        self.queue: LeaderQueue[str] = LeaderQueue(
            "device taints",
            self._pass,
            self._everything,
            workers=AT_ONCE,
            informers=lambda: (self._slices,),
            essential=False,
        )
        self._slices.on_change(lambda _, old, new: self._moved(old, new))
        cache.policies.on_change(lambda _, old, new: self._asked(old, new))
        cache.nodes.on_change(lambda name, old, new: self._node(old, new))
        cache.cases.on_change(lambda _, old, new: self.queue.add(*(case.node for case in (new or old,) if case)))

    def _moved(self, old: Slice | None, new: Slice | None) -> None:
        self.queue.add(*{part.node for part in (old, new) if part is not None and part.of_gpus and part.node})

    def _asked(self, old: Policy | None, new: Policy | None) -> None:
        if any(_asks(policy) for policy in (old, new) if policy is not None):
            self.queue.add_all()

    def _node(self, old: Node | None, new: Node | None) -> None:
        if new is not None and (old is None or old.uid != new.uid or old.labels != new.labels):
            self.queue.add(new.name)

    def _everything(self) -> Iterator[str]:
        yield from dict.fromkeys(part.node for part in self._slices if part.of_gpus and part.node)
        yield from (node.name for node in self._cache.nodes if CONDITION in node.conditions)

    async def _pass(self, name: str) -> float | None:
        """One node; nothing where no policy asks about it, or where it never had a GPU of DRA."""
        node, slices = self._cache.nodes.get(name), self._slices.by("node", name)
        if node is None or not self._wanted(node) or (not any(_of_gpus(slices)) and CONDITION not in node.conditions):
            return None
        if not self._slices.fresh():
            return SILENT
        return await write(self._performer, self._cache, node, own_condition(slices), self._clock.now())

    def _wanted(self, node: Node) -> bool:
        return any(_asks(policy) and policy.selects(node) for policy in self._cache.policies)


def _of_gpus(slices: list[Slice]) -> Iterator[bool]:
    return (part.of_gpus for part in slices)


def _asks(policy: Policy) -> bool:
    return any(clause.condition == CONDITION for when in policy.when for clause in when.clauses)
