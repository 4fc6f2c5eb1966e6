"""What follows from what nodes are known to have: the Condition DevicesMissing, and the label of nodes with GPUs.

What a node is known to have is kept in its NodeInventory.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import structlog

from remediator.clock import Clock
from remediator.controller.cache import ClusterCache
from remediator.controller.effects import ChangeNode, Create, Delete, Effect, Patch
from remediator.controller.handlers.base import seconds, seconds_until
from remediator.controller.perform import Performer
from remediator.core import names
from remediator.core.device_count import DEVICES_MISSING, DeviceCount
from remediator.core.gpu_label import gpu_label
from remediator.core.inventory_name import REASON, taken
from remediator.core.kinds_expected import wrong_kinds
from remediator.core.node import Node, NodeCondition, Status
from remediator.core.node_inventory import (
    KEPT,
    Inventory,
    counted_at,
    fresh,
    learn,
    of_machine,
    own_condition,
    should_have,
)
from remediator.core.own_condition import BEAT, BEAT_OF_CASE, due
from remediator.kube import api
from remediator.kube.api import encode
from remediator.kube.api.builtin import EVENT, NODE
from remediator.kube.informers import Informers
from remediator.kube.runtime.leader import LeaderQueue
from remediator.kube.wire.transport import STRATEGIC_PATCH

log = structlog.get_logger()
AT_ONCE = 4  # writes
AGAIN = 2.0  # seconds until what was just made is to be filled
LOOK = timedelta(seconds=30)  # at a node of which something was forgotten and that has not counted since
NEVER = timedelta.max
TELL_AGAIN = timedelta(hours=1)  # as long as API servers keep Events


class Inventories:
    """Learns what nodes have, keeps the Condition of those that lack something, and the label. Only who leads writes.

    A node is looked at when its labels, its count or its inventory change.
    """

    def __init__(self, informers: Informers, cache: ClusterCache, performer: Performer, clock: Clock) -> None:
        self._cache, self._performer, self._clock = cache, performer, clock
        self._inventories = informers.inventories
        self._logged: set[str] = set()
        self._of_groups: tuple[Inventory, ...] | None = None  # None: to be read anew
        self.queue: LeaderQueue[str] = LeaderQueue(
            "inventories",
            self._pass,
            self._everything,
            workers=AT_ONCE,
            informers=lambda: (self._inventories,),
            essential=False,
        )
        self._inventories.on_change(lambda _, old, new: self._kept(old, new))
        cache.nodes.on_change(lambda name, old, new: self._node(name, old, new))
        cache.cases.on_change(lambda _, old, new: self.queue.add(*(case.node for case in (new or old,) if case)))

    def _kept(self, old: Inventory | None, new: Inventory | None) -> None:
        both = [inventory for inventory in (old, new) if inventory is not None]
        if any(inventory.selector is not None for inventory in both):
            self._of_groups = None
            self.queue.add_all()
        self.queue.add(*{inventory.node for inventory in both if inventory.node})

    def _node(self, name: str, old: Node | None, new: Node | None) -> None:
        if old is None or new is None or _matters(old) != _matters(new):
            self.queue.add(name)

    def _everything(self) -> Iterator[str]:
        nodes = (node.name for node in self._cache.nodes)
        yield from dict.fromkeys((*nodes, *(inventory.node for inventory in self._inventories if inventory.node)))

    async def _pass(self, name: str) -> float | None:
        """One node: whether it should have GPUs, what it has, and what it lacks."""
        now = self._clock.now()
        labelled = await self._performer.all([ChangeNode(name, partial(self._label, now))])
        return min(filter(None, (seconds(labelled), await self._look(name, now))), default=None)

    def _label(self, now: datetime, node: Node) -> Mapping[str, Any] | None:
        labels = gpu_label(node, self._own(node.name), self._groups(), now)
        return encode.node_labels(node, labels) if labels else None

    async def _look(self, name: str, now: datetime) -> float | None:
        """Learn what it has, then say what it lacks. While nobody can tell nothing is written."""
        node, own = self._cache.nodes.get(name), self._own(name)
        if own is not None and own.unreadable:
            return None
        if node is None:
            return await self._gone(own, now) if own is not None else None
        seen = fresh(node, now)
        if seen is None:
            return self._until_it_counts(node, own, now)
        if self._inventories.get(name) is None:
            made = await self._performer.all([Create(api.INVENTORY, encode.new_inventory(name))])
            return seconds(made) or AGAIN
        self._warn(node, own, seen)
        if own is not None and own.is_of_another(node):
            log.info("an inventory begins anew: another machine has the name", node=name, had=dict(own.learnt))
        known = replace(of_machine(own, node), gone_since=None) if own is not None else None
        after = learn(known, seen, counted_at(node), now) if known is not None else None
        writes: list[Effect] = [_status(own, after)] if own is not None and after is not None and after != own else []
        condition = self._condition(node, after, seen, now)
        writes += [_said(node, condition)] if condition is not None else []
        why = taken(name, self._inventories.get(name))
        writes += [_told(node, why, now)] if why else []
        every = self._every(node, condition or node.conditions.get(DEVICES_MISSING))
        again = min(every, _to_come(after, now), TELL_AGAIN if why else NEVER)
        return seconds(await self._performer.all(writes)) or (None if again is NEVER else again.total_seconds())

    def _warn(self, node: Node, own: Inventory | None, seen: DeviceCount) -> None:
        """Log, once, each kind that is expected of the node and that nothing counts: it is missed by nobody."""
        counted = seen.kinds
        about = (*filter(None, (own,)), *(group for group in self._groups() if group.selects(node)))
        for why in (why for inventory in about for why in wrong_kinds(inventory, counted)):
            if why not in self._logged:
                self._logged.add(why)
                log.warning("an inventory expects what nothing counts", node=node.name, because=why, once=True)

    def _until_it_counts(self, node: Node, own: Inventory | None, now: datetime) -> float | None:
        """When to look again at a node whose count is stale: a count that says the same as before is no event."""
        if node.counted is None:
            return None
        return min(self._every(node, node.conditions.get(DEVICES_MISSING)), _to_come(own, now), BEAT).total_seconds()

    def _own(self, name: str) -> Inventory | None:
        """The inventory of a node; None also where a user has given one of a group its name."""
        own = self._inventories.get(name)
        return own if own is not None and own.node == name else None

    async def _gone(self, own: Inventory, now: datetime) -> float | None:
        """Keep what is known of a node that is not there: it may register again."""
        if own.gone_since is None:
            return seconds(await self._performer.all([_status(own, replace(own, gone_since=now))]))
        end = own.gone_since + KEPT
        if own.expected or now < end:
            return None if own.expected else seconds_until(end, now)
        return seconds(await self._performer.all([Delete(api.INVENTORY, own.name, own.uid)]))

    def _condition(self, node: Node, own: Inventory | None, seen: DeviceCount, now: datetime) -> NodeCondition | None:
        """What is to be written; of a node that never lacked anything nothing is. It is as old as the count."""
        before = node.conditions.get(DEVICES_MISSING)
        words = own_condition(node.name, seen, should_have(node, own, self._groups(), seen, now))
        if before is None and words.status is Status.FALSE:
            return None
        return due(before, words, counted_at(node), self._every(node, before))

    def _groups(self) -> tuple[Inventory, ...]:
        if self._of_groups is None:
            self._of_groups = tuple(inventory for inventory in self._inventories if inventory.selector is not None)
        return self._of_groups

    def _every(self, node: Node, condition: NodeCondition | None) -> timedelta:
        """A heartbeat is written only for somebody: a policy that acts on what is missing, a case that waits."""
        if condition is not None and self._cache.has_open_case(node.name):
            return BEAT_OF_CASE
        return BEAT if condition is not None and condition.status is Status.TRUE else NEVER


def _to_come(own: Inventory | None, now: datetime) -> timedelta:
    """Until what was learnt is to be forgotten: a user has given a time that has not come, or no count has since."""
    if own is not None and own.forgotten(now):
        return LOOK
    before = own.forget_before if own is not None else None
    return before - now if before is not None and before > now else NEVER


def _matters(node: Node) -> tuple[object, ...]:
    return node.counted, node.conditions.get(DEVICES_MISSING), node.labels


def _status(before: Inventory, after: Inventory) -> Patch:
    return Patch(api.INVENTORY, before.name, encode.inventory_status(before, after), subresource="status")


def _said(node: Node, condition: NodeCondition) -> Patch:
    return Patch(NODE, node.name, encode.node_condition(node, condition), "", "status", STRATEGIC_PATCH)


def _told(node: Node, why: str, now: datetime) -> Create:
    """An Event on the node, one an hour."""
    name = names.name(node.name, "inventory", node.uid, why, f"{now:%Y-%m-%dT%H}")
    return Create(EVENT, encode.node_event(name, node, REASON, why, now), namespace="default")
