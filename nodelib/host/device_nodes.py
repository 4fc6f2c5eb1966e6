"""The device nodes that a GPU node should have, as the kernel tells, and those that it has. Reads only, judges nothing.

The kernel's word: the GPUs that the driver lists and MIG's capabilities (/proc/driver/nvidia), majors (/proc/devices),
NVSwitches on PCI, and the numbers that sysfs has for InfiniBand.
"""

import os
import re
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from nodelib.host.gpus import Driven

NVIDIA_MAJOR = 195  # in the kernel's list of assigned majors
CONTROL, MODESET = 255, 254  # minors of nvidiactl and nvidia-modeset
NVIDIA_VENDOR, BRIDGE_CLASS, SWITCH_DRIVER = "0x10de", "0x0680", "nvidia-nvswitch"
NUMBERED = re.compile(r"(?:^|/)char/([0-9]+):([0-9]+)$")  # udev's name of a character device by its number


class Number(NamedTuple):
    """A device's numbers. None: not known, any will do."""

    major: int | None
    minor: int | None


class WantedDeviceNode(NamedTuple):
    """A node that there should be, by its path below /dev. `remedy` makes it; `optional`: wrong only if it is there."""

    path: str
    number: Number
    remedy: str
    optional: bool = False


MODPROBE, RELOAD, RDMA = "nvidia-modprobe", "reload-driver", "modprobe ib_uverbs"


def majors(proc: Path) -> dict[str, int] | None:
    """Return the majors of character devices by name, None where they cannot be read."""
    try:
        text = (proc / "devices").read_bytes()[:65536].decode("ascii", "replace")
    except OSError:
        return None
    rows = [line.split() for line in text.partition("Block devices:")[0].splitlines()]
    return {row[1]: int(row[0]) for row in rows if len(row) == 2 and re.fullmatch("[0-9]{1,6}", row[0])}


def of_gpus(driven: dict[str, Driven], known: dict[str, int]) -> list[WantedDeviceNode]:
    """Return the nodes of the GPUs that the driver lists, and those by which it is spoken to."""
    gpus = sorted(gpu.minor for gpu in driven.values() if gpu.minor is not None and not gpu.excluded)
    major = next((known[name] for name in ("nvidia", "nvidia-frontend") if name in known), NVIDIA_MAJOR)
    nodes = [WantedDeviceNode(f"nvidia{minor}", Number(major, minor), MODPROBE) for minor in gpus]
    if nodes:
        nodes.append(WantedDeviceNode("nvidiactl", Number(known.get("nvidiactl", major), CONTROL), MODPROBE))
        modeset = Number(known.get("nvidia-modeset", major), MODESET)
        nodes.append(WantedDeviceNode("nvidia-modeset", modeset, MODPROBE, optional=True))
    if nodes and "nvidia-uvm" in known:  # the module is loaded at the first use: until then there is no node
        nodes.append(WantedDeviceNode("nvidia-uvm", Number(known["nvidia-uvm"], 0), f"{MODPROBE} -u -c=0"))
        nodes.append(
            WantedDeviceNode("nvidia-uvm-tools", Number(known["nvidia-uvm"], 1), f"{MODPROBE} -u -c=0", optional=True)
        )
    return nodes


def of_mig(proc: Path, known: dict[str, int]) -> list[WantedDeviceNode]:
    """Return the nodes that give access to the MIG devices that there are. Raises ValueError on what makes no sense."""
    major, nodes = known.get("nvidia-caps"), []
    for path in sorted((proc / "driver/nvidia/capabilities").glob("gpu*/mig/**/access")):
        text = path.read_bytes()[:4096].decode("ascii", "replace")
        minor = re.search(r"^DeviceFileMinor:\s*([0-9]{1,7})\s*$", text, re.MULTILINE)
        if not minor:
            raise ValueError("/proc/driver/nvidia/capabilities")
        number = Number(major, int(minor[1]))
        nodes.append(WantedDeviceNode(f"nvidia-caps/nvidia-cap{minor[1]}", number, f"{MODPROBE} or nvidia-ctk system"))
    return nodes


def of_switches(sys_root: Path, known: dict[str, int]) -> list[WantedDeviceNode]:
    """Return the nodes of the NVSwitches that belong to their driver."""
    count = sum(map(_is_switch, _folders(sys_root / "bus/pci/devices")))
    major = known.get(SWITCH_DRIVER)
    nodes = [WantedDeviceNode(f"nvidia-nvswitch{index}", Number(major, index), RELOAD) for index in range(count)]
    return [*nodes, *([WantedDeviceNode("nvidia-nvswitchctl", Number(major, CONTROL), RELOAD)] if count else [])]


def _is_switch(folder: Path) -> bool:
    driver = folder / "driver"
    return (
        _text(folder / "vendor") == NVIDIA_VENDOR
        and _text(folder / "class").startswith(BRIDGE_CLASS)
        and (driver.resolve().name if driver.exists() else "") == SWITCH_DRIVER
    )


def of_infiniband(sys_root: Path) -> list[WantedDeviceNode]:
    """Return the nodes of RDMA devices, with the numbers of sysfs. Raises ValueError on what makes no sense."""
    verbs = _folders(sys_root / "class/infiniband_verbs")
    nodes = [_of_sysfs(folder, "infiniband/") for folder in verbs if folder.name.startswith("uverbs")]
    manager = sys_root / "class/misc/rdma_cm"
    if nodes and manager.exists():
        nodes.append(_of_sysfs(manager, "infiniband/")._replace(remedy="udevadm trigger"))
    return nodes


def without_verbs(sys_root: Path) -> list[str]:
    """Return the RDMA devices that no program can reach, because the kernel has no uverbs for them."""
    served = {_text(folder / "ibdev") for folder in _folders(sys_root / "class/infiniband_verbs")}
    return [folder.name for folder in _folders(sys_root / "class/infiniband") if folder.name.lower() not in served]


def _of_sysfs(folder: Path, prefix: str) -> WantedDeviceNode:
    number = re.fullmatch(r"([0-9]{1,6}):([0-9]{1,7})", _text(folder / "dev"))
    if not number:
        raise ValueError(f"/sys/class of {folder.name}")
    return WantedDeviceNode(f"{prefix}{folder.name}", Number(int(number[1]), int(number[2])), "udevadm trigger")


def has(folders: Iterable[Path], path: str) -> Number | str | None:
    """Return the numbers of a device node in the first folder that has one; None for none; what is there in its place.

    A link named char/MAJOR:MINOR, as udev names devices, tells the numbers itself: trees without devices are of such.
    """
    for folder in folders:
        try:
            link = NUMBERED.search(str((folder / path).readlink()))
        except OSError:
            link = None
        if link:
            return Number(int(link[1]), int(link[2]))
        try:
            status = (folder / path).stat()
        except (FileNotFoundError, NotADirectoryError, PermissionError):  # is_closed tells of the last
            continue
        if stat.S_ISCHR(status.st_mode):
            return Number(os.major(status.st_rdev), os.minor(status.st_rdev))
        return "a folder" if stat.S_ISDIR(status.st_mode) else "a file"
    return None


def is_closed(folder: Path) -> bool:
    """Tell whether it is not to be known what a folder holds: one of process 1 is closed to who is not privileged."""
    try:
        folder.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except PermissionError:
        return True
    return not os.access(folder, os.X_OK)


def _folders(path: Path) -> list[Path]:
    try:
        return sorted(path.iterdir())
    except OSError:
        return []


def _text(path: Path) -> str:
    try:
        return path.read_bytes()[:256].decode("ascii", "replace").strip().lower()
    except OSError:
        return ""
