"""ClusterCache → what a case knows of the devices of its node. Pure: it only reads stores."""

from dataclasses import replace
from datetime import datetime

from remediator.controller.cache import ClusterCache
from remediator.controller.case_proof import end_of_try
from remediator.core import inventory, node_inventory
from remediator.core.case import Case
from remediator.core.device_count import DEVICE_INVENTORY, DeviceCount
from remediator.core.inventory import Devices
from remediator.core.node import Node
from remediator.core.policy import InventoryMode, Policy


def devices(cache: ClusterCache, case: Case, policy: Policy, node: Node, now: datetime) -> Devices:
    """What is known of them since the newest attempt."""
    return Devices(_missing(cache, case, policy, node, now), _unknown(cache, case, policy, node, now))


def _missing(cache: ClusterCache, case: Case, policy: Policy, node: Node, now: datetime) -> str:
    """Which devices the node lacks, with the numbers; "" for none."""
    offered = inventory.missing(case, policy, node, cache.cases.by("node", case.node))
    return ", ".join(filter(None, (offered, _uncounted(cache, case, policy, node, now))))


def _uncounted(cache: ClusterCache, case: Case, policy: Policy, node: Node, now: datetime) -> str:
    """The same of what the node itself has counted since the newest attempt, beside its NodeInventory."""
    seen = _seen(case, policy, node, now)
    return node_inventory.phrase(node_inventory.lacking(seen, _wanted(cache, node, seen, now))) if seen else ""


def _seen(case: Case, policy: Policy, node: Node, now: datetime) -> DeviceCount | None:
    """What the node has counted since the newest attempt; None where that is not what the case is about."""
    seen, (ended, heartbeats) = node_inventory.fresh(node, now), end_of_try(case)
    if seen is None or ended is None or policy.verify.inventory is not InventoryMode.KEEP:
        return None
    counted = node_inventory.counted_since(node, heartbeats.get(DEVICE_INVENTORY))
    return seen if counted and node_inventory.new_to_case(node, case.created) else None


def _wanted(cache: ClusterCache, node: Node, seen: DeviceCount, now: datetime) -> node_inventory.Counts:
    own, groups = cache.inventories.get(node.name), (group for group in cache.inventories if group.selector)
    return node_inventory.should_have(node, own, groups, seen, now)


def _unknown(cache: ClusterCache, case: Case, policy: Policy, node: Node, now: datetime) -> str:
    """Why nobody knows whether a node has what is kept of it: it has not counted again since the newest attempt, or
    could not read what it should have.
    """
    own, (_, heartbeats) = cache.inventories.get(node.name), end_of_try(case)
    if policy.verify.inventory is not InventoryMode.KEEP or own is None:
        return ""
    if own.unreadable:
        return f"the NodeInventory {own.name} cannot be read: correct it, or delete it to have the node counted anew"
    seen = _seen(case, policy, node, now)
    if seen is not None and (unsure := node_inventory.unread(seen, _wanted(cache, node, seen, now))):
        return f"{node.name} could not count its {unsure} since: look at its detector device_inventory"
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
    return bool(_missing(cache, before, policy, node, now))
