"""Keeps in which boot each node is, and says on the Condition RebootLoop that one boots again and again."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from remediator.clock import Clock
from remediator.controller.cache import ClusterCache
from remediator.controller.effects import Create, Patch
from remediator.controller.handlers.base import seconds
from remediator.controller.node_conditions.write import write
from remediator.controller.perform import Performer
from remediator.core.case import Case
from remediator.core.node import Node, Status
from remediator.core.node_inventory import Inventory
from remediator.core.reboot_loop import REBOOT_LOOP, Boots, counts, own_condition, same_word, seen, tells_boot
from remediator.core.template import Template
from remediator.kube import api
from remediator.kube.api import encode
from remediator.kube.informers import Informers
from remediator.kube.runtime.leader import LeaderQueue

AT_ONCE = 4  # writes
AGAIN = 2.0  # seconds until what was just made is to be filled


class RebootLoops:
    """Counts the boots that nobody asked for. Only who leads writes.

    A node is looked at when it tells another boot, not by its heartbeats. What is known stands in its NodeInventory.
    """

    def __init__(self, informers: Informers, cache: ClusterCache, performer: Performer, clock: Clock) -> None:
        self._cache, self._performer, self._clock = cache, performer, clock
        self._inventories = informers.inventories
        self.queue: LeaderQueue[str] = LeaderQueue(
            "boots",
            self._pass,
            self._everything,
            workers=AT_ONCE,
            informers=lambda: (self._inventories,),
            essential=False,
        )
        cache.nodes.on_change(lambda _, old, new: self._node(old, new))
        cache.cases.on_change(lambda _, old, new: self._case(new or old))

    def _node(self, old: Node | None, new: Node | None) -> None:
        if new is not None and (old is None or _differs(old, new)):
            self.queue.add(new.name)

    def _case(self, case: Case | None) -> None:
        node = self._cache.nodes.get(case.node) if case is not None else None
        if node is not None and REBOOT_LOOP in node.conditions:
            self.queue.add(node.name)

    def _everything(self) -> Iterator[str]:
        return (node.name for node in self._cache.nodes)

    async def _pass(self, name: str) -> float | None:
        """One node: keep its boot, then say what follows. Where nothing can be kept nothing is said."""
        now = self._clock.now()
        node, own = self._cache.nodes.get(name), self._inventories.get(name)
        if node is None or not tells_boot(node):
            return None
        if own is None:
            return seconds(await self._performer.all([Create(api.INVENTORY, encode.new_inventory(name))])) or AGAIN
        if own.unreadable or own.node != name:
            return None
        after = seen(own.boots, node, own.boots is not None and self._counts(node, own.boots, now), now)
        return await self._keep(own, after) or await self._say(node, after, now)

    def _counts(self, node: Node, kept: Boots, now: datetime) -> bool:
        reboots = self._cache.by_template("reboots", _reboots)
        return counts(node, kept, self._cache.cases.by("node", node.name), reboots, now)

    async def _keep(self, own: Inventory, after: Boots) -> float | None:
        """Seconds until it is tried again; None where it is kept."""
        if after == own.boots:
            return None
        body = encode.inventory_status(own, replace(own, boots=after, gone_since=None))
        return seconds(await self._performer.all([Patch(api.INVENTORY, own.name, body, subresource="status")]))

    async def _say(self, node: Node, kept: Boots, now: datetime) -> float | None:
        words = own_condition(node, kept, now)
        if words is None:
            return None
        stands = words.status is not Status.FALSE or self._cache.has_open_case(node.name)
        if not stands and same_word(node.conditions.get(REBOOT_LOOP), words):
            return None  # what is well, and nobody waits for, is not said again
        return await write(self._performer, self._cache, node, words, now)


def _differs(old: Node, new: Node) -> bool:
    turned = old.conditions.get(REBOOT_LOOP) != new.conditions.get(REBOOT_LOOP)
    return old.boot_id != new.boot_id or old.uid != new.uid or turned


def _reboots(template: Template) -> bool:
    return template.boot_id_changed
