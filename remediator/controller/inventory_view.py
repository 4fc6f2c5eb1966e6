"""ClusterCache → what a case knows of the devices of its node. Pure: it only reads stores."""

from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from remediator.controller.cache import ClusterCache
from remediator.controller.case_proof import end_of_try
from remediator.core import inventory, node_inventory
from remediator.core.case import Case
from remediator.core.device_count import DEVICE_INVENTORY, DeviceCount
from remediator.core.inventory import Devices
from remediator.core.node import Node
from remediator.core.policy import InventoryMode, Policy


class _CountedDevices(NamedTuple):
    """What a node counts, and what it should have."""

    seen: DeviceCount
    wanted: node_inventory.Counts


def devices(cache: ClusterCache, case: Case, policy: Policy, node: Node, now: datetime) -> Devices:
    """What is known of them since the newest attempt."""
    counted = _counted(cache, case, policy, node, now)
    return Devices(_missing(cache, case, policy, node, counted), _unknown(cache, case, policy, node, counted, now))


def _missing(cache: ClusterCache, case: Case, policy: Policy, node: Node, counted: _CountedDevices | None) -> str:
    """Which devices the node lacks, with the numbers, by what it offers and by what it has counted; "" for none."""
    offered = inventory.missing(case, policy, node, cache.cases.by("node", case.node))
    itself = node_inventory.phrase(node_inventory.lacking(counted.seen, counted.wanted)) if counted else ""
    return ", ".join(filter(None, (offered, itself)))


def _counted(cache: ClusterCache, case: Case, policy: Policy, node: Node, now: datetime) -> _CountedDevices | None:
    """What the node has counted since the newest attempt; None where that is not what the case is about."""
    seen, (ended, heartbeats) = node_inventory.fresh(node, now), end_of_try(case)
    if seen is None or ended is None or policy.verify.inventory is not InventoryMode.KEEP:
        return None
    since = node_inventory.counted_since(node, heartbeats.get(DEVICE_INVENTORY))
    if not since or not node_inventory.new_to_case(node, case.created):
        return None
    own, groups = cache.inventories.get(node.name), (group for group in cache.inventories if group.selector)
    return _CountedDevices(seen, node_inventory.should_have(node, own, groups, seen, now))


def _unknown(
    cache: ClusterCache, case: Case, policy: Policy, node: Node, counted: _CountedDevices | None, now: datetime
) -> str:
    """Why nobody knows whether a node has what is kept of it: it has not counted again since the newest attempt, or
    could not read what it should have.
    """
    own, (_, heartbeats) = cache.inventories.get(node.name), end_of_try(case)
    if policy.verify.inventory is not InventoryMode.KEEP or own is None:
        return ""
    if own.unreadable:
        return f"the NodeInventory {own.name} cannot be read: correct it, or delete it to have the node counted anew"
    if counted is not None and (unsure := node_inventory.unread(counted.seen, counted.wanted)):
        end = node_inventory.if_for_good(node.name, counted.seen, unsure)
        return f"{node.name} could not count its {', '.join(unsure)} since: look at its detector device_inventory{end}"
    counts = bool(own.learnt) and not own.forgotten(now)
    if not counts or not node_inventory.silent(node, heartbeats.get(DEVICE_INVENTORY), case.created, now):
        return ""
    return f"{node.name} has not counted its devices since: look at its detector device_inventory"


def short(cache: ClusterCache, case: Case, policy: Policy, node: Node, operation: str, now: datetime) -> bool:
    """Whether the node still lacks devices now that the time to verify what was done before this operation is over."""
    if policy.verify.inventory is not InventoryMode.KEEP:
        return False
    ended = [attempt.finished for attempt in case.counted if attempt.finished and attempt.operation != operation]
    since = max(ended, default=case.started)
    if since is None or now < cache.absences.deadline(since, policy.verify.timeout):
        return False
    before = replace(case, attempts=tuple(attempt for attempt in case.attempts if attempt.operation != operation))
    return bool(_missing(cache, before, policy, node, _counted(cache, before, policy, node, now)))
