"""The kernel's log of this boot, from its buffer or else from the end of the log file. Never blocks for long."""

import os
import re
from pathlib import Path

from nodelib.kernel.kmsg import read_new

TAIL_BYTES = 256 << 10
LINES, LINE_CHARS = 40, 240
TELLING = re.compile(
    r"NVRM|\bXid\b|\bSXid\b|AER|PCIe Bus Error|pciehp|DPC:|fallen off the bus|nvidia"
    r"|I/O error|EXT4-fs error|XFS \(|Hardware Error|EDAC|mlx5|nfs: server|blocked for more than"
    r"|\[#\d+\]|BUG: |kernel BUG at|hard LOCKUP|rcu.* stall|Out of memory: "
)


def read_lines(root: Path) -> list[str]:
    """Return every line that there is, oldest first. Raises OSError."""
    log = read_new(root / "dev", None)
    if log.lines:
        return [line.text for line in log.lines]
    with (root / "var/log/kern.log").open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
        return file.read(TAIL_BYTES).decode(errors="replace").splitlines()


def telling(lines: list[str]) -> list[str]:
    """Return the last lines that speak of GPUs, PCIe, memory, disks and the network, each cut to a bearable length."""
    return [" ".join(line.split())[:LINE_CHARS] for line in lines if TELLING.search(line)][-LINES:]
