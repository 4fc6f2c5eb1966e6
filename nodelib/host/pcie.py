"""PCIe links of GPUs, NVSwitches, RDMA cards and NVMe disks, and of the switches above them. Judges nothing.

A link has a lower end (a device, or the upper port of a PCIe switch) and an upper end (the port above it). Reading its
attributes reads the configuration space: cheap, but not more than once a minute.
"""

import re
from collections.abc import Iterable
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from nodelib.host.attributes import folders, text

ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
NVIDIA = "0x10de"
GPU_CLASSES, SWITCH_CLASS, NVME_CLASS, RDMA_CLASS = ("0x0300", "0x0302"), "0x0680", "0x0108", "0x0207"
EMULATED = ("0x1b36", "0x15ad")  # makers of ports that exist only in virtual machines: Red Hat (QEMU), VMware
SHEDDING = 64.0  # GT/s: from PCIe 6 on an idle link may run on fewer lanes (L0p), and takes them back by itself
FALLEN = 63  # all ones in the field for the width: nobody answers
STORY = re.compile(r"AER|PCIe Bus Error|pciehp|DPC: |available PCIe bandwidth|fallen off the bus")


class End(NamedTuple):
    """What one end says: lanes and GT/s, now and at most. None where it does not say; -1 for what makes no sense."""

    width: int | None
    most_width: int | None
    speed: float | None
    most_speed: float | None


class Link(NamedTuple):
    """One link by its lower end. `kind`: gpu, nvswitch, rdma, nvme, or switch.

    `upper`: None where no port is shown, or one that a virtual machine has in the place of the real one.

    `errors`: non-fatal and fatal errors that the kernel has counted at both ends ({} where it does not count), -1 for
    what makes no sense.
    """

    address: str
    kind: str
    lower: End
    upper: End | None
    errors: dict[str, int]

    @property
    def sheds(self) -> bool:
        """Whether fewer lanes than there could be are no loss. An idle GPU of Rubin runs on 2 of 16."""
        return (self.lower.speed or 0.0) >= SHEDDING

    @property
    def lanes(self) -> int | None:
        """The lanes that it has, those among them that it has shed. None where it does not say."""
        width, most = self.lower.width, self.lower.most_width
        if width is None or most is None or not self.sheds or not 0 < width <= most < FALLEN:
            return width
        return max(width, min(most, self.upper.most_width or most) if self.upper else most)


def read_links(sys_root: Path) -> tuple[Link, ...] | None:
    """Return the links in order of their addresses; None when there is no PCI bus. Raises OSError."""
    folder = sys_root / "bus/pci/devices"
    if not folder.is_dir():
        list((sys_root / "bus").iterdir())  # a node without PCI has other buses; one without any is no /sys
        return None
    lower: dict[Path, str] = {}
    for device in sorted(folder.iterdir()):
        kind = _kind(device)
        if kind:
            chain = _chain(device)
            lower.setdefault(chain[0], kind)
            for port in chain[2::2]:  # the upper port of each switch on the way up
                lower.setdefault(port, "switch")
    return tuple(sorted((_link(end, kind) for end, kind in lower.items()), key=lambda link: link.address))


def _kind(device: Path) -> str:
    if (device / "physfn").exists():  # a virtual function shares the link of the real one
        return ""
    vendor, kind = text(device / "vendor"), (text(device / "class") or "")
    if vendor == NVIDIA and kind.startswith((*GPU_CLASSES, SWITCH_CLASS)):
        return "nvswitch" if kind.startswith(SWITCH_CLASS) else "gpu"
    if kind.startswith(RDMA_CLASS) or (device / "infiniband").is_dir():
        return "rdma"
    return "nvme" if kind.startswith(NVME_CLASS) else ""


def _chain(device: Path) -> list[Path]:
    """Return a device and the ports above it up to the root, nearest first."""
    where = device.resolve()
    return [where, *takewhile(lambda parent: ADDRESS.fullmatch(parent.name), where.parents)]


def slot(sys_root: Path, address: str) -> str:
    """Return what the board calls the slot of a device, "" where it does not report."""
    for folder in folders(sys_root / "bus/pci/slots", r".+"):
        if text(folder / "address") == address.rpartition(".")[0]:
            return folder.name
    return ""


def _link(where: Path, kind: str) -> Link:
    port = where.parent if ADDRESS.fullmatch(where.parent.name) else None
    ends = [where, *([port] if port else [])]
    errors = _errors(ends, "nonfatal") | _errors(ends, "fatal")
    real = port if port and text(port / "vendor") not in EMULATED else None
    return Link(where.name, kind, _end(where), _end(real) if real else None, errors)


def _end(folder: Path) -> End:
    return End(
        _lanes(text(folder / "current_link_width")),
        _lanes(text(folder / "max_link_width")),
        _rate(text(folder / "current_link_speed")),
        _rate(text(folder / "max_link_speed")),
    )


def _lanes(width: str | None) -> int | None:
    """Read a width. Nothing is said by 0 (a virtual machine's device without a link) or by 255 (unknown)."""
    if width in (None, "0", "255"):
        return None
    return int(width) if width and re.fullmatch(r"[0-9]{1,2}", width) else -1


def _rate(speed: str | None) -> float | None:
    """Read a speed: "32.0 GT/s PCIe", "8 GT/s", "Unknown"."""
    if speed is None or speed.lower().startswith("unknown"):
        return None
    match = re.fullmatch(r"([0-9]{1,3}(?:\.[0-9])?) GT/s(?: PCIe)?", speed)
    return float(match[1]) if match else -1


def _errors(ends: Iterable[Path], grade: str) -> dict[str, int]:
    tables = {end.name: text(end / f"aer_dev_{grade}") for end in ends}
    return {f"{name} {grade}": _total(table) for name, table in tables.items() if table is not None}


def _total(table: str) -> int:
    """Read an AER counter file: a line for each error, `NAME COUNT`, and TOTAL_ERR_FATAL or _NONFATAL at the end."""
    match = re.search(r"^TOTAL_ERR_\w+ ([0-9]{1,20})$", table, re.MULTILINE)
    return int(match[1]) if match else -1
