"""Whose a page of memory is: a DIMM's, or a GPU's whose memory is part of the node's (GH200, GB200).

There the driver of the GPU hands bad pages of its memory to the kernel, which tells of them as of any other. The memory
of a GPU is a NUMA node without processors.
"""

import re
from collections.abc import Callable
from pathlib import Path

from nodelib.host.attributes import folders, text

DIMM, GPU, UNKNOWN = "DIMM", "GPU", "unknown"
PageOwner = Callable[[int], str]  # by the number of the page


def page_owner(sys_root: Path, proc: Path, page_bytes: int) -> PageOwner:
    """Return what tells whose a page is."""
    alone = _without_processors(sys_root) if (proc / "driver/nvidia/version").exists() else frozenset()
    return lambda page: _owner(sys_root, page * page_bytes, alone) if alone else DIMM


def _without_processors(sys_root: Path) -> frozenset[str]:
    return frozenset(
        node.name for node in folders(sys_root / "devices/system/node", r"node[0-9]+") if text(node / "cpulist") == ""
    )


def _owner(sys_root: Path, address: int, alone: frozenset[str]) -> str:
    memory = sys_root / "devices/system/memory"
    size = text(memory / "block_size_bytes") or ""
    if not re.fullmatch(r"[0-9a-f]{1,16}", size) or not int(size, 16):
        return UNKNOWN
    nodes = folders(memory / f"memory{address // int(size, 16)}", r"node[0-9]+")
    if len(nodes) != 1:
        return UNKNOWN
    return GPU if nodes[0].name in alone else DIMM
