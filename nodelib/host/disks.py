"""The disks of a node as /sys shows them. Judges nothing.

A disk is one NVMe controller on PCI or one SCSI, SATA, SAS or virtual disk. What only stands on others or on a network
is none: loop, device mapper, RAM, network block devices, iSCSI, Fibre Channel, NVMe over fabrics. Nor is what can be
taken out (removable).
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from nodelib.host.attributes import folders, number, text

NVME = r"nvme[0-9]+"
OTHERS = r"sd[a-z]+|vd[a-z]+|xvd[a-z]+|hd[a-z]+|mmcblk[0-9]+"
REMOTE = ("/session", "/rport-")  # iSCSI and Fibre Channel in the path of a device
BUILT_IN = ("/ata", "/end_device-")  # SATA and SAS
# Volumes of clouds look like NVMe on PCI, and come and go with Pods: who leaves is no disk that is missing.
VOLUMES = re.compile(r"elastic block|nvme_card-pd|hyperdisk|nvme accelerator|cloud disk", re.IGNORECASE)

ARRAY_STATES = {  # of md, but for "broken"
    *("clear", "inactive", "suspended", "readonly", "read-auto", "clean", "active", "write-pending", "active-idle")
}


class Disk(NamedTuple):
    """One disk. `serial`: its number (or world-wide name), its own name where it tells none; `state`: as the kernel
    has it, "" where it tells none; `built_in`: whether it belongs to the node and must not leave.
    """

    name: str
    serial: str
    state: str
    built_in: bool


class Array(NamedTuple):
    """One array of md. `degraded`: how many members it lacks; `action`: what it does about it (idle, recover, ...)."""

    name: str
    state: str
    degraded: int
    action: str


def read_disks(sys_root: Path) -> tuple[Disk, ...]:
    """Return the disks in natural order. Raises OSError when /sys or a folder of it cannot be read."""
    if not (sys_root / "block").is_dir():
        raise FileNotFoundError(f"{sys_root / 'block'} is not there")
    controllers = (_controller(folder) for folder in folders(sys_root / "class/nvme", NVME))
    others = (_disk(folder) for folder in folders(sys_root / "block", OTHERS))
    return tuple(disk for disk in (*controllers, *others) if disk)


def read_guests(sys_root: Path, disks: Iterable[Disk]) -> set[str]:
    """Return the names of what is no disk of this node: removable, or on a network. Raises OSError."""
    names = {folder.name for folder in (*folders(sys_root / "class/nvme", NVME), *folders(sys_root / "block", OTHERS))}
    return names - {disk.name for disk in disks}


def _controller(folder: Path) -> Disk | None:
    if text(folder / "transport") not in ("pcie", None):
        return None
    state = text(folder / "state")
    volume = VOLUMES.search(text(folder / "model") or "")
    return Disk(folder.name, text(folder / "serial") or folder.name, "?" if state == "" else state or "", not volume)


def _disk(folder: Path) -> Disk | None:
    where = str(folder.resolve())
    device = folder / "device"
    if any(part in where for part in REMOTE) or text(folder / "removable") == "1" or not device.exists():
        return None
    names = (text(path) for path in (folder / "wwid", device / "wwid", folder / "serial", device / "serial"))
    state = text(device / "state")
    built_in = any(part in where for part in BUILT_IN)
    return Disk(folder.name, next(filter(None, names), folder.name), "?" if state == "" else state or "", built_in)


def read_arrays(sys_root: Path) -> tuple[Array, ...]:
    """Return the arrays of md. Raises OSError or ValueError when they cannot be read or make no sense."""
    arrays = []
    for folder in folders(sys_root / "block", r"md[0-9]+|md_[^/]+"):
        md = folder / "md"
        state = text(md / "array_state")
        if state is not None:
            lacking = number(md / "degraded") or 0  # RAID 0 has no such count: it is whole or broken
            arrays.append(Array(folder.name, state, lacking, text(md / "sync_action") or ""))
    return tuple(arrays)


def present(disks: Iterable[Disk]) -> Mapping[str, Disk]:
    """Return the disks by who they are, whatever they are called now."""
    return {disk.serial: disk for disk in disks}
