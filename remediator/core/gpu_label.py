"""The label remediator.dev/gpu.present, by which policies select nodes with GPUs, with and without GPU discovery. Pure.

It stays where GPUs vanish: a node that has lost all of them is what the policies are for. A user who gives it another
value has decided for this node, and it is left alone.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from remediator.core.device_count import DeviceCount
from remediator.core.names import GPU_PRESENT
from remediator.core.node import Node
from remediator.core.node_inventory import Counts, Inventory, should_have

KIND = "gpus"
DISCOVERED = "nvidia.com/gpu.present"  # of GPU feature discovery
_NOTHING = DeviceCount(())


Change = Mapping[str, str | None]


def gpu_label(node: Node, own: Inventory | None, groups: Iterable[Inventory], now: datetime) -> Change:
    """The change of the label that is due, None to take it off; empty where it stays as it is."""
    has = _has_gpus(node, own, tuple(groups), now)
    if has and GPU_PRESENT not in node.labels:
        return {GPU_PRESENT: "true"}
    return {GPU_PRESENT: None} if has is False and node.labels.get(GPU_PRESENT) == "true" else {}


def has_label(labels: Mapping[str, str]) -> bool:
    """Whether labels say that a node has GPUs: ours, or that of GPU feature discovery."""
    return "true" in (labels.get(GPU_PRESENT), labels.get(DISCOVERED))


def _has_gpus(node: Node, own: Inventory | None, groups: tuple[Inventory, ...], now: datetime) -> bool | None:
    """Whether the node should have GPUs; None where nobody says so.

    That none was ever counted says nothing: they may have been dead on the first day. That a user had the count
    forgotten, and none is counted since, does.
    """
    unlearnt = replace(own, learnt={}) if own is not None else None
    by_user, known = (_gpus(should_have(node, each, groups, _NOTHING, now)) for each in (unlearnt, own))
    if by_user is not None or known:
        return bool(known if by_user is None else by_user)
    if known == 0 and own is not None and own.forget_before is not None:
        return False
    return True if node.labels.get(DISCOVERED) == "true" else None


def _gpus(counts: Counts) -> int | None:
    return counts.get(KIND)
