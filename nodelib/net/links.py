"""The physical network interfaces of a node, and what is built on them, as sysfs shows them. Judges nothing.

Physical is an Ethernet interface with a device behind it that is no virtual function of a card: those that are not in
use are down by design. Nothing here asks the card anything but its counters.
"""

import errno
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

ETHERNET = "1"  # ARPHRD_ETHER
IFF_UP = 0x1
GONE = (FileNotFoundError, NotADirectoryError)
REPRESENTOR = re.compile(r"(c[0-9]+)?pf[0-9]+[vs]f[0-9]+")
REFUSALS = (errno.EINVAL, errno.EOPNOTSUPP)


class Port(NamedTuple):
    """A physical interface, or one port of an RDMA device.

    `up`: None when it cannot be read; `lack`: what is to be said of it when it is not up; `downs`: how often it has
    gone down, by its own count; `device`: the path in sysfs of what carries it. Of a port of an RDMA device also `rate`
    in Gb/s (0 for not told) and `speed`, how it says that itself; `errors`: symbols that were received wrongly.
    """

    up: bool | None
    lack: str
    downs: int | None
    device: str
    rate: float = 0.0
    speed: str = ""
    errors: int | None = None


def read_interfaces(sys: Path, refused: set[str]) -> dict[str, Port]:
    """Return the physical interfaces by name. Raises OSError when there is no list of interfaces.

    `refused`: paths of counters that the card has refused to read, and is not asked for again; grows.
    """
    interfaces = {}
    for folder in sorted((sys / "class/net").iterdir()):
        try:
            if is_physical(folder) and text(folder / "type") == ETHERNET:
                downs = read_counter(folder / "carrier_down_count", refused)
                interfaces[folder.name] = Port(*_carrier(folder), downs, os.path.realpath(folder / "device"))
        except GONE:
            continue  # while it was read
    return interfaces


def is_physical(folder: Path) -> bool:
    """Tell whether a class device is hardware of its own: no virtual function, nor what represents one on its card."""
    if not (folder / "device").exists() or (folder / "device/physfn").exists():
        return False
    try:
        return not REPRESENTOR.fullmatch(text(folder / "phys_port_name"))
    except OSError:
        return True  # most cards have no such name


def _carrier(folder: Path) -> tuple[bool | None, str]:
    name = folder.name
    try:
        if not int(text(folder / "flags"), 16) & IFF_UP:
            return False, f"{name} is switched off"  # its carrier would answer EINVAL
        carrier = text(folder / "carrier")
    except GONE:
        raise
    except (OSError, ValueError) as error:
        return None, f"{name} cannot be read: {getattr(error, 'strerror', None) or 'its flags make no sense'}"
    if carrier not in ("0", "1"):
        return None, f"{name} cannot be read: its carrier makes no sense"
    return carrier == "1", f"{name} has no carrier"


def text(path: Path) -> str:
    """Return a small file without its line's end. Raises OSError."""
    return path.read_text(errors="replace").strip()


def read_counter(path: Path, refused: set[str]) -> int | None:
    """Return a counter, None when it cannot be had. Each refusal by a card may cost a line in the kernel's log."""
    if str(path) in refused:
        return None
    try:
        value = text(path)
    except OSError as error:
        if error.errno in REFUSALS:
            refused.add(str(path))
        return None
    return int(value) if value.isascii() and value.isdecimal() else None


def uppers(sys: Path, names: Iterable[str]) -> dict[str, str]:
    """Return interfaces and all that is built on them (bonds, bridges, VLANs), with one that it is built on."""
    lowers = {name: name for name in names}
    todo = [*lowers]
    while todo:
        lower = todo.pop()
        for link in sorted((sys / "class/net" / lower).glob("upper_*")):
            upper = link.name.removeprefix("upper_")
            if upper not in lowers:
                lowers[upper] = lower
                todo.append(upper)
    return lowers


def read_slaves(sys: Path, names: Iterable[str]) -> dict[str, list[str]]:
    """Return which interfaces each bond among `names` has."""
    slaves = {}
    for name in sorted(names):
        try:
            slaves[name] = text(sys / "class/net" / name / "bonding/slaves").split()
        except OSError:
            continue  # no bond
    return slaves


def whereabouts(device: str) -> str:
    """Tell where the device of a port that is no more is: "gone", "driverless", or "bound" to a driver.

    Bound, and yet without its interface: it was renamed, or given to a Pod.
    """
    path = Path(device)
    if not path.exists():
        return "gone"
    return "bound" if (path / "driver").exists() else "driverless"
