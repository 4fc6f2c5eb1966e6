"""Conditions that only report: True says that a program on the node has read or counted, and of no fault. Pure."""

from remediator.core.device_count import DEVICE_INVENTORY
from remediator.core.gpu_use import GPU_USE
from remediator.core.node_versions import NODE_VERSIONS

REPORTS = frozenset({DEVICE_INVENTORY, GPU_USE, NODE_VERSIONS})
