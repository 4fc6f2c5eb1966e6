"""Keeps the label of nodes that should have GPUs, by which policies select them. Only who leads writes."""

from collections.abc import Iterator, Mapping
from typing import Any

from remediator.clock import Clock
from remediator.controller.cache import ClusterCache
from remediator.controller.effects import ChangeNode
from remediator.controller.handlers.base import seconds
from remediator.controller.perform import Performer
from remediator.core.gpu_label import gpu_label
from remediator.core.node import Node
from remediator.core.node_inventory import Inventory
from remediator.kube.api import encode
from remediator.kube.informers import Informers
from remediator.kube.runtime.leader import LeaderQueue

AT_ONCE = 4  # writes


class GpuLabels:
    """Looks at a node whose labels or inventory have changed."""

    def __init__(self, informers: Informers, cache: ClusterCache, performer: Performer, clock: Clock) -> None:
        self._cache, self._performer, self._clock = cache, performer, clock
        self._inventories = informers.inventories
        self._groups: tuple[Inventory, ...] | None = None  # None: to be read anew
        self.queue: LeaderQueue[str] = LeaderQueue(
            "GPU labels",
            self._pass,
            self._everything,
            workers=AT_ONCE,
            informers=(self._inventories,),
            essential=False,
        )
        self._inventories.on_change(lambda _, old, new: self._kept(old, new))
        cache.nodes.on_change(lambda name, old, new: self._node(old, new))

    def _kept(self, old: Inventory | None, new: Inventory | None) -> None:
        both = [inventory for inventory in (old, new) if inventory is not None]
        if any(inventory.selector is not None for inventory in both):
            self._groups = None
            self.queue.add_all()
        self.queue.add(*{inventory.node for inventory in both if inventory.node})

    def _node(self, old: Node | None, new: Node | None) -> None:
        if new is not None and (old is None or old.labels != new.labels):
            self.queue.add(new.name)

    def _everything(self) -> Iterator[str]:
        yield from (node.name for node in self._cache.nodes)

    async def _pass(self, name: str) -> float | None:
        """One node."""
        return seconds(await self._performer.all([ChangeNode(name, self._change)]))

    def _change(self, node: Node) -> Mapping[str, Any] | None:
        kept = self._inventories.get(node.name)
        own = kept if kept is not None and kept.node == node.name else None
        if self._groups is None:
            self._groups = tuple(each for each in self._inventories if each.selector is not None)
        labels = gpu_label(node, own, self._groups, self._clock.now())
        return encode.node_labels(node, labels) if labels else None
