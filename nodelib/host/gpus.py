"""What a node shows of its NVIDIA GPUs without asking NVML: PCI, driver, device nodes, kubelet. Only reads, no judging.

A view that is not there is None: nothing follows from it. Addresses are those of sysfs (0000:3b:00.0).
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

NVIDIA = "0x10de"
DISPLAY_CLASSES = ("0x0300", "0x0302")  # VGA and 3D controllers; NVIDIA's audio, USB and NVSwitch functions are others
ALL_ONES = b"\xff\xff\xff\xff"  # what a read of a device answers that is no longer on the bus
OPEN_DRIVERS = ("nouveau", "nova_core", "nova-core", "NovaCore")  # of the kernel, which take what nobody else has
ADDRESS = re.compile(r"^([0-9a-f]+):([0-9a-f]{2}):([0-9a-f]{2}\.[0-7])$")


class Card(NamedTuple):
    """One GPU on PCI. `state`: present, fallen, or unreadable (it may not even be a GPU); `driver`: "" for none."""

    address: str
    state: str
    driver: str


class Offered(NamedTuple):
    """The GPUs that the kubelet offers to Pods, by UUID. `why`: cause of nothing being known, "" for none."""

    uuids: frozenset[str] = frozenset()
    why: str = ""


class Driven(NamedTuple):
    """One GPU as the loaded driver lists it. `minor`: N of /dev/nvidiaN, None when not told."""

    uuid: str
    minor: int | None
    excluded: bool


def address_of(text: str) -> str:
    """Return NVML's or sysfs' spelling of a PCI address as sysfs has it.

    >>> address_of("00000000:3B:00.0")
    '0000:3b:00.0'
    """
    match = ADDRESS.match(text.lower())
    return f"{int(match[1], 16):04x}:{match[2]}:{match[3]}" if match else text.lower()


def known(cards: tuple[Card, ...] | None) -> dict[str, Card]:
    """Return the GPUs on PCI by address, without functions that may be none."""
    return {card.address: card for card in cards or () if card.state != "unreadable"}


def unreadable(cards: tuple[Card, ...] | None) -> list[str]:
    """Return the addresses of PCI functions that may be GPUs or not."""
    return [card.address for card in cards or () if card.state == "unreadable"]


def ours(cards: tuple[Card, ...] | None, driven: Mapping[str, Driven] | None) -> set[str]:
    """Return the addresses of the GPUs on PCI that the NVIDIA driver and NVML should show.

    One that is bound to another driver (vfio-pci) or that the driver was told to exclude is not among them. What the
    kernel's own driver has is, unless NVIDIA's is loaded beside it: that one would have had them if it could.
    """
    excluded = {address for address, gpu in (driven or {}).items() if gpu.excluded}
    drivers = {"", "nvidia", *(OPEN_DRIVERS if driven is None else ())}
    return {card.address for card in known(cards).values() if card.driver in drivers} - excluded


def read_pci(sys_root: Path) -> tuple[Card, ...] | None:
    """Return the GPUs of the PCI bus in address order, virtual functions left out; None where there is no PCI bus."""
    try:
        return on_pci(sys_root)
    except OSError:
        return None


def on_pci(sys_root: Path) -> tuple[Card, ...]:
    """Return what `read_pci` does. Raises OSError where there is no PCI bus."""
    return tuple(card for card in map(_read_card, sorted((sys_root / "bus/pci/devices").iterdir())) if card)


def _read_card(folder: Path) -> Card | None:
    vendor, kind = _text(folder / "vendor"), _text(folder / "class")
    if not re.fullmatch(r"0x[0-9a-f]{4}", vendor):
        return Card(folder.name, "unreadable", "")
    if vendor != NVIDIA:
        return None
    if not re.fullmatch(r"0x[0-9a-f]{6}", kind):
        return Card(folder.name, "unreadable", "")
    if not kind.startswith(DISPLAY_CLASSES) or (folder / "physfn").exists():
        return None
    return Card(folder.name, _state(folder / "config"), _driver(folder / "driver"))


def _state(config: Path) -> str:
    """Vendor and class are cached by the kernel and outlive the device; only its configuration space is asked live."""
    try:
        with config.open("rb") as file:
            head = file.read(64)[:4]
    except OSError:
        return "unreadable"
    if head == ALL_ONES:
        return "fallen"
    return "present" if head[:2] == int(NVIDIA, 16).to_bytes(2, "little") and len(head) == 4 else "unreadable"


def _driver(link: Path) -> str:
    return link.resolve().name if link.exists() else ""


def read_driver(proc: Path) -> dict[str, Driven] | None:
    """Return the GPUs that the NVIDIA kernel module lists, by address; None when it is not loaded."""
    try:
        return in_driver(proc)
    except OSError:
        return {} if (proc / "driver/nvidia/version").exists() else None


def in_driver(proc: Path) -> dict[str, Driven]:
    """Return what `read_driver` does. Raises OSError where the module is not loaded, or has no GPU."""
    folders = sorted((proc / "driver/nvidia/gpus").iterdir())
    return {address_of(folder.name): _read_information(folder / "information") for folder in folders}


def information(path: Path) -> dict[str, str]:
    """Return the fields of a file in which a driver tells of a device, by name in small letters; {} where it cannot be
    read.
    """
    parts = (line.partition(":") for line in _lines(path))
    return {name.strip().lower(): value.strip() for name, _, value in parts if name}


def _read_information(path: Path) -> Driven:
    fields = information(path)
    minor = fields.get("device minor", "")
    return Driven(
        uuid=fields.get("gpu uuid", ""),
        minor=int(minor) if re.fullmatch(r"[0-9]{1,4}", minor) else None,
        excluded=fields.get("gpu excluded", "").lower() == "yes",
    )


def read_nodes(*devs: Path) -> frozenset[int] | None:
    """Return the N of every nvidiaN in these folders; None when there is none at all (they may be kept elsewhere)."""
    names = [name for dev in devs for name in _names(dev)]
    return frozenset(int(name[6:]) for name in names if re.fullmatch(r"nvidia[0-9]{1,4}", name)) or None


def _names(folder: Path) -> list[str]:
    try:
        return [path.name for path in folder.iterdir()]
    except OSError:
        return []


def read_offered(kubelet: Path) -> Offered | None:
    """Return what the kubelet's checkpoint says that its device plugins offer; None where there is no such file.

    The kubelet keeps the healthy devices of each plugin there, which are what is allocatable. A device that several
    Pods share is listed as UUID::0, UUID::1 and so on.
    """
    try:
        checkpoint = json.loads((kubelet / "device-plugins/kubelet_internal_checkpoint").read_bytes())
        devices = checkpoint["Data"]["RegisteredDevices"] or {}
        ids = [device for name, listed in devices.items() if name.startswith("nvidia.com/") for device in listed or ()]
        uuids = frozenset(device.partition("::")[0] for device in ids)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        return Offered(why=f"the kubelet's checkpoint cannot be read: {type(error).__name__}")
    if not any(name.startswith("nvidia.com/") for name in devices):
        return Offered(why="no device plugin offers NVIDIA's devices")
    whole = all(uuid.startswith("GPU-") for uuid in uuids)
    return Offered(uuids) if whole else Offered(why="what it offers are parts of GPUs (MIG), or not named by UUID")


def _text(path: Path) -> str:
    return "".join(_lines(path)[:1]).strip().lower()


def _lines(path: Path) -> list[str]:
    try:
        return path.read_bytes()[:4096].decode("ascii", "replace").splitlines()
    except OSError:
        return []
