"""The kernel's log of this boot, from its buffer or else from the end of the log file. Never blocks for long."""

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

LOG_SECONDS = 5.0
LOG_BYTES = 8 << 20  # no kernel keeps a larger buffer unless told to
TAIL_BYTES = 256 << 10
LINES, LINE_CHARS = 40, 240
TELLING = re.compile(
    r"NVRM|\bXid\b|\bSXid\b|AER|PCIe Bus Error|pciehp|DPC:|fallen off the bus|nvidia"
    r"|I/O error|EXT4-fs error|XFS \(|Hardware Error|EDAC|mlx5|nfs: server|blocked for more than"
)


def read_lines(root: Path) -> list[str]:
    """Return every line that there is, oldest first. Raises OSError."""
    try:
        records = b"".join(_read_buffer(root / "dev/kmsg")).decode(errors="replace").splitlines()
        return [record.partition(";")[2] for record in records if not record.startswith(" ")]
    except OSError:
        with (root / "var/log/kern.log").open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - TAIL_BYTES))
            return log.read(TAIL_BYTES).decode(errors="replace").splitlines()


def telling(lines: list[str]) -> list[str]:
    """Return the last lines that speak of GPUs, PCIe, memory, disks and the network, each cut to a bearable length."""
    return [" ".join(line.split())[:LINE_CHARS] for line in lines if TELLING.search(line)][-LINES:]


def _read_buffer(path: Path) -> Iterator[bytes]:
    """Yield the records of /dev/kmsg, one a read, until there is no more."""
    descriptor, until, size = os.open(path, os.O_RDONLY | os.O_NONBLOCK), time.monotonic() + LOG_SECONDS, 0
    try:
        while time.monotonic() < until and size < LOG_BYTES:
            try:
                record = os.read(descriptor, 8192)
            except BlockingIOError:
                return
            except BrokenPipeError:
                continue  # the record was overwritten while we read; the next read goes on with the oldest
            if not record:
                return
            size += len(record)
            yield record
    finally:
        os.close(descriptor)
