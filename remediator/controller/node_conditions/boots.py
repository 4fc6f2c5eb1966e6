"""Keeps in which boot each node is, and says on the Condition RebootLoop that one boots again and again."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from remediator.clock import Clock
from remediator.controller.cache import ClusterCache
from remediator.controller.effects import Create, Patch
from remediator.controller.handlers.base import seconds
from remediator.controller.node_conditions.write import follow_cases, say
from remediator.controller.perform import Performer
from remediator.core.node import Node
from remediator.core.node_inventory import Inventory
from remediator.core.reboot_loop import (
    REBOOT_LOOP,
    Boots,
    cause_of,
    counts,
    own_condition,
    released,
    seen,
    tells_boot,
)
from remediator.kube import api
from remediator.kube.api import encode
from remediator.kube.informers import Informers
from remediator.kube.runtime.leader import LeaderQueue

AT_ONCE = 4  # writes
AGAIN = 2.0  # seconds until what was just made is to be filled


class RebootLoops:
    """Counts the boots that nobody asked for. Only who leads writes.

    A node is looked at when it tells another boot, not by its heartbeats. From its first boot that nobody asked for on,
    what is known stands in its NodeInventory; before that the watch tells in which boot it was.
    """

    def __init__(self, informers: Informers, cache: ClusterCache, performer: Performer, clock: Clock) -> None:
        self._cache, self._performer, self._clock = cache, performer, clock
        self._inventories = informers.inventories
        self._ended: dict[str, Boots] = {}  # by node: the boot it was in before one that was not looked at yet
        self.queue: LeaderQueue[str] = LeaderQueue(
            "boots",
            self._pass,
            self._everything,
            workers=AT_ONCE,
            informers=lambda: (self._inventories,),
            essential=False,
            ended=self._ended.clear,
        )
        cache.nodes.on_change(lambda _, old, new: self._node(old, new))
        follow_cases(cache, self.queue, REBOOT_LOOP)
        self._inventories.on_change(lambda name, old, new: self._inventory(name, old, new))

    def _node(self, old: Node | None, new: Node | None) -> None:
        if old is None or new is None or not self.queue.leading:
            return
        if old.boot_id != new.boot_id and tells_boot(old):
            self._ended.setdefault(new.name, Boots(old.boot_id, old.uid))
        if _differs(old, new):
            self.queue.add(new.name)

    def _inventory(self, name: str, old: Inventory | None, new: Inventory | None) -> None:
        """What was kept of a node is gone, or is there again; or what could not be kept of it now can."""
        before, after = (each is not None and each.boots is not None for each in (old, new))
        if before != after or name in self._ended:
            self.queue.add(name)

    def _everything(self) -> Iterator[str]:
        return (node.name for node in self._cache.nodes if self._kept(node.name) or REBOOT_LOOP in node.conditions)

    def _kept(self, name: str) -> Boots | None:
        own = self._inventories.get(name)
        return own.boots if own is not None else None

    async def _pass(self, name: str) -> float | None:
        """One node: keep its boot, then say what follows. Where nothing can be kept nothing is said."""
        now = self._clock.now()
        node, own = self._cache.nodes.get(name), self._inventories.get(name)
        if node is None or not tells_boot(node) or (own is not None and (own.unreadable or own.node != name)):
            return None
        kept = self._kept(name) or self._ended.get(name)
        after = seen(kept, node, kept is not None and self._counts(node, kept, now), now)
        known = after if kept is not None else None
        return await self._keep(name, own, after) or await self._say(node, known, now)

    def _counts(self, node: Node, kept: Boots, now: datetime) -> bool:
        causes = self._cache.by_template("boots", cause_of)
        return counts(node, kept, self._cache.cases.by("node", node.name), causes, now)

    async def _keep(self, name: str, own: Inventory | None, after: Boots) -> float | None:
        """Seconds until it is tried again; None where all is kept that is to be."""
        known = self._kept(name)
        if after == known or (known is None and not after.unasked):
            self._ended.pop(name, None)
            return None
        if own is None:
            return seconds(await self._performer.all([Create(api.INVENTORY, encode.new_inventory(name))])) or AGAIN
        body = encode.inventory_status(own, replace(own, boots=after, gone_since=None))
        failed = seconds(await self._performer.all([Patch(api.INVENTORY, own.name, body, subresource="status")]))
        if failed is None:
            self._ended.pop(name, None)
        return failed

    async def _say(self, node: Node, kept: Boots | None, now: datetime) -> float | None:
        words = own_condition(node, kept, released(self._cache.cases.by("node", node.name)), now)
        return await say(self._performer, self._cache, node, words, now)


def _differs(old: Node, new: Node) -> bool:
    turned = old.conditions.get(REBOOT_LOOP) != new.conditions.get(REBOOT_LOOP)
    return old.boot_id != new.boot_id or old.uid != new.uid or turned
