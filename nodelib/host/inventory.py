"""What there is on a node, counted kind by kind from sysfs and procfs. Judges nothing. Of devices only PCIe links are
asked, for their lanes: a read of the configuration space, cheap, but not more than once a minute.

A kind that a node has not is left out. One that could not be read now is told of as that: nobody knows whether the node
still has what it had.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from nodelib.host import mountinfo
from nodelib.host.attributes import folders
from nodelib.host.declared_mounts import declared
from nodelib.host.gpus import on_pci, read_driver
from nodelib.host.pcie import FALLEN, read_links
from nodelib.net.addresses import read_addresses
from nodelib.net.links import read_interfaces, text, uppers
from nodelib.net.nfs import KINDS as NFS
from nodelib.net.rdma import read_ports

ETHERNET = "0x0200"
NETWORK, NVME = (ETHERNET, "0x0207"), ("0x0108",)  # Ethernet and InfiniBand; NVM
GIB = 1 << 30
UNREAD = "?"  # in place of a number


class Kind(NamedTuple):
    """One kind: how many there are; where the node declares them itself how many it should have; and which, if told.

    `count`: None where it could not be read now.
    """

    count: int | None
    declared: int | None = None
    which: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.count is None:
            return UNREAD
        return f"{self.count}" if self.declared is None else f"{self.count}/{self.declared}"


class Place(NamedTuple):
    """Where the kinds are counted; `mounts` are declared beside those of the node."""

    proc: Path
    sys: Path
    mounts: frozenset[str] = frozenset()


READERS: Mapping[str, Callable[[Place], Kind | None]] = {
    "gpus": lambda place: _gpus(place.proc, place.sys),
    "nics": lambda place: _functions(place.sys, NETWORK),
    "ports": lambda place: _ports(place.sys),
    "port-rates": lambda place: _port_rates(place.sys),
    "nic-rates": lambda place: _nic_rates(place.sys),
    "nvme": lambda place: _functions(place.sys, NVME, _serials(place.sys)),
    "pcie-lanes": lambda place: _lanes(place.sys),
    "cpus": lambda place: Kind(cpus((place.sys / "devices/system/cpu/online").read_text())),
    "ram": lambda place: _memory(place.sys),
    "mounts": lambda place: _mounts(place.proc, place.mounts, nfs=False),
    "nfs-mounts": lambda place: _mounts(place.proc, frozenset(), nfs=True),
    "addresses": lambda place: _addresses(place.proc, place.sys),
    "routes": lambda place: Kind(len(read_addresses(place.proc).defaults)),
}


def count(proc: Path, sys_root: Path, mounts: Iterable[str] = ()) -> tuple[dict[str, Kind], dict[str, str]]:
    """Every kind that there is, and why one could not be read. `mounts` are declared beside those of the node.

    A file that is not there is no trouble of reading: this kernel, or this machine, has no such thing.
    """
    place, kinds, why = Place(proc, sys_root, frozenset(mounts)), {}, {}
    for name, read in READERS.items():
        try:
            if (kind := read(place)) is not None:
                kinds[name] = kind
        except FileNotFoundError as error:
            why[name] = f"{type(error).__name__}: {error}"
        except (OSError, ValueError) as error:
            kinds[name], why[name] = Kind(None), f"{type(error).__name__}: {error}"
    return kinds, why


def line(kinds: Mapping[str, Kind]) -> str:
    """The counts as a Condition carries them, and a digest that changes where a device is another one."""
    which = "\n".join(f"{name} {device}" for name, kind in sorted(kinds.items()) for device in sorted(kind.which))
    digest = hashlib.sha256(which.encode()).hexdigest()[:12]
    return " ".join([*(f"{name}={kind}" for name, kind in kinds.items()), f"digest={digest}"])


def _gpus(proc: Path, sys_root: Path) -> Kind:
    """The GPUs on the bus; one that has fallen off is not there any more.

    Raises ValueError where a function of the bus may be one or not.
    """
    cards, driven = on_pci(sys_root), read_driver(proc) or {}
    if unsure := [card.address for card in cards if card.state == "unreadable"]:
        raise ValueError(f"{', '.join(unsure)} cannot be read, and may be a GPU or not")
    there = [card.address for card in cards if card.state == "present"]
    return Kind(len(there), which=tuple(f"{at} {driven[at].uuid if at in driven else ''}" for at in there))


def _functions(sys_root: Path, classes: tuple[str, ...], names: Mapping[str, str] | None = None) -> Kind:
    """Functions of the PCI bus of these classes, without virtual ones; by a better name where there is one."""
    there = [
        folder.name
        for folder in sorted((sys_root / "bus/pci/devices").iterdir())
        if _class(folder).startswith(classes) and not (folder / "physfn").exists()
    ]
    return Kind(len(there), which=tuple((names or {}).get(at, at) for at in there))


def _class(folder: Path) -> str:
    """The class of a function; "" of one that has gone since it was listed."""
    try:
        return (folder / "class").read_text()
    except FileNotFoundError:
        return ""


def _ports(sys_root: Path) -> Kind:
    """Ports of RDMA devices; none where the kernel has no such class, though it shows others."""
    next((sys_root / "class").iterdir(), None)
    return Kind(len(read_ports(sys_root, set())))


def _port_rates(sys_root: Path) -> Kind | None:
    """Gb/s of the ports of RDMA devices together, one that is not active with 0; None where there are none.

    Raises ValueError where one cannot be read.
    """
    ports = list(read_ports(sys_root, set()).values())
    if not ports:
        return None
    if any(port.up is None or (port.up and not port.rate) for port in ports):
        raise ValueError("a port does not tell whether it is active, or at which rate")
    return Kind(int(sum(port.rate for port in ports if port.up)))


def _nic_rates(sys_root: Path) -> Kind | None:
    """Gb/s of the physical Ethernet interfaces together, each rounded down; one without carrier has 0.

    None where none tells its speed (virtual machines), or where a card that has a driver has no interface here: a Pod
    may have it. Nobody has one without a driver.
    """
    cards = [sys_root / "bus/pci/devices" / at for at in _functions(sys_root, (ETHERNET,)).which]
    speeds = {name: _speed(sys_root, name) for name, port in read_interfaces(sys_root, set()).items() if port.up}
    if not any(speeds.values()) or any((card / "driver").exists() and not _interfaces(card) for card in cards):
        return None
    return Kind(sum(speed // 1000 for speed in speeds.values()))


def _interfaces(card: Path) -> list[Path]:
    return list((card / "net").glob("*"))


def _speed(sys_root: Path, interface: str) -> int:
    """Mb/s; 0 where it is not told: -1, or EINVAL of an interface that has just lost its carrier."""
    try:
        return max(int(text(sys_root / "class/net" / interface / "speed")), 0)
    except (OSError, ValueError):
        return 0


def _lanes(sys_root: Path) -> Kind | None:
    """PCIe lanes of GPUs, NVSwitches, RDMA cards and NVMe disks, and of the switches above them, together.

    None where no link reports them. Raises ValueError where one reports nonsense, as a device does that sleeps or has
    left the bus. Speeds are not counted: idle GPUs lower theirs. Lanes that an idle link of PCIe 6 has shed count.
    """
    widths = [lanes for link in read_links(sys_root) or () if (lanes := link.lanes) is not None]
    if not widths:
        return None
    if not all(0 < width < FALLEN for width in widths):
        raise ValueError("a PCIe link reports no number of lanes that makes sense")
    return Kind(sum(widths))


def _serials(sys_root: Path) -> dict[str, str]:
    """The serial numbers of NVMe disks by PCI address."""
    return dict(_each_serial(sys_root / "class/nvme"))


def _each_serial(folder: Path) -> Iterator[tuple[str, str]]:
    for disk in sorted(folder.glob("nvme*")):
        try:
            yield (disk / "address").read_text().strip(), (disk / "serial").read_text().strip()
        except OSError:
            continue


def cpus(text: str) -> int:
    """How many processors a list of the kernel names. Raises ValueError.

    >>> cpus("0-3,8,10-11")
    7
    """
    if not re.fullmatch(r"[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*", text.strip()):
        raise ValueError("the list of processors makes no sense")
    ends = (part.partition("-") for part in text.strip().split(","))
    return sum(int(last or first) - int(first) + 1 for first, _, last in ends)


def _memory(sys_root: Path) -> Kind | None:
    """GiB of memory of the machine, what the kernel keeps for itself among them; None where it tells no blocks.

    Not that of NUMA nodes without processors: on GH200 and GB200 the driver adds the memory of a GPU when it is loaded,
    and takes it away when it is not. A block may be of two NUMA nodes. Raises ValueError where no NUMA node has
    processors.
    """
    folder = sys_root / "devices/system/memory"
    try:
        size = int((folder / "block_size_bytes").read_text(), 16)
    except FileNotFoundError:
        return None
    nodes = folders(sys_root / "devices/system/node", r"node[0-9]+")
    own = [node for node in nodes if (node / "cpulist").read_text().strip()]
    if nodes and not own:
        raise ValueError("no NUMA node has processors")
    return Kind(len({block for place in own or [folder] for block in _blocks(place)}) * size // GIB)


def _blocks(folder: Path) -> list[str]:
    return [entry.name for entry in folder.iterdir() if re.fullmatch(r"memory[0-9]+", entry.name)]


def _mounts(proc: Path, more: frozenset[str], *, nfs: bool) -> Kind | None:
    """Of the mounts of NFS, or of those of anything else, that are declared those that are there; None for none."""
    kinds = {point: mount.kind for point, mount in declared(proc / "1/root").items()}
    wanted = {point for point in kinds.keys() | more if (kinds.get(point, "") in NFS) is nfs}
    if not wanted:
        return None
    lines, _ = mountinfo.parse((proc / "1/mountinfo").read_text(errors="replace"))
    there = wanted & {mount.point for mount in lines}
    return Kind(len(there), len(wanted), tuple(sorted(wanted)))


def _addresses(proc: Path, sys_root: Path) -> Kind:
    """Addresses of physical interfaces and of what is built on them, by family: those of Pods come and go."""
    built = uppers(sys_root, list(read_interfaces(sys_root, set())))
    return Kind(sum(name in built for name, _ in read_addresses(proc).owners))
