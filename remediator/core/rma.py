"""What a vendor asks for when a part is to be replaced, from what a case, its node and its bundle tell. Pure.

It goes to another company: names of users, jobs and Pods are left out. What the kernel and the node's programs printed
stays as it was.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from remediator.core.case import Case, PastCase
from remediator.core.gpus import Gpu
from remediator.core.node import Node
from remediator.core.text import printable

MOST_BOARDS, LONGEST = 16, 96  # GPUs of a package; characters of what is said of one
REPORT, SMI, EVENT_LOG, NVML = "nvidia-bug-report.log.gz", "nvidia-smi.txt", "sel.txt", "nvml.json"
DRIVER = "proc/driver/nvidia/version"
TAKEN = (REPORT, SMI, EVENT_LOG, NVML, "kernel.log", DRIVER)  # files of a bundle that a vendor is sent
WHY = "nvidia-bug-report.txt"  # stands in the place of the report, and says why there is none
READ = (*TAKEN, WHY)
_VERSION = re.compile(rb"\b\d{3,4}(?:\.\d{1,3}){1,2}\b")
Entry = Mapping[str, object]  # what one program said of one GPU
NOT_MADE = ("not made: ", "not read: ", "not asked: ")  # how a bundle says why it lacks a file


class Part(StrEnum):
    """The kind of part that a Condition is about."""

    GPU = "GPU"
    DISK = "disk"
    MEMORY = "memory"
    CARD = "network card"
    CHASSIS = "power supply, fan or cooling"
    MACHINE = "machine"


PARTS: Mapping[str, Part] = {
    "ChassisFault": Part.CHASSIS,
    "DiskFault": Part.DISK,
    "FilesystemDamage": Part.DISK,
    "FilesystemError": Part.DISK,
    "MemoryEcc": Part.MEMORY,
    "NetworkLinkFault": Part.CARD,
}


class Board(NamedTuple):
    """One GPU and its board; "" for what nobody has told. The slot is its PCI address."""

    serial: str = ""
    part: str = ""
    uuid: str = ""
    slot: str = ""
    inforom: str = ""
    vbios: str = ""
    model: str = ""
    remapped: str = ""


@dataclass(frozen=True, slots=True)
class Bundle:
    """What a bundle of collect-diagnostics has: the files that a vendor is sent, by name, and why others are not."""

    files: Mapping[str, bytes] = field(default_factory=dict)
    lacks: Mapping[str, str] = field(default_factory=dict)
    gpus: tuple[Entry, ...] = ()
    sha256: str = ""  # of the file that was given

    @property
    def driver(self) -> str:
        """The version of the driver as the kernel module tells it; "" where it does not."""
        version = _VERSION.search(self.files.get(DRIVER, b"")[:400].partition(b"\n")[0])
        return version[0].decode() if version else ""


@dataclass(frozen=True, slots=True)
class RmaClaim:
    """One case, as a vendor is told of it. `bundle` is None where nobody has given it, `node` where it is gone."""

    case: Case
    evidence: Mapping[str, object]
    node: Node | None
    earlier: tuple[PastCase, ...]
    bundle: Bundle | None = None

    @property
    def condition(self) -> str:
        """The Condition that the case was opened for."""
        return self.case.trigger.condition if self.case.trigger else ""

    @property
    def part(self) -> Part:
        """The kind of part that is at fault, as far as the Condition tells."""
        if self.case.gpus or self.condition.startswith("Gpu"):
            return Part.GPU
        return PARTS.get(self.condition, Part.MACHINE)

    @property
    def place(self) -> str:
        """Where its bundle was kept or sent to; "" for nowhere."""
        return bundle_place(self.evidence)

    @property
    def is_another_bundle(self) -> bool:
        """Whether the file that was given is not the one that the program on the node has kept or sent."""
        sha256 = self.evidence.get("bundleSha256")
        return self.bundle is not None and isinstance(sha256, str) and bool(sha256) and sha256 != self.bundle.sha256

    @property
    def machine(self) -> Mapping[str, str]:
        """What the firmware of the machine told."""
        machine = self.evidence.get("machine")
        return {key: _line(text) for key, text in machine.items()} if isinstance(machine, Mapping) else {}


def bundle_place(evidence: Mapping[str, object] | None) -> str:
    """Where the bundle of a case is, as its program said: a path of the node, or a URL; "" where there is none."""
    place = (evidence or {}).get("bundle")
    return printable(place)[:512] if isinstance(place, str) else ""


def read_bundle(files: Mapping[str, bytes], sha256: str = "") -> Bundle:
    """What the files of a bundle tell; a file that only says why it was not made counts as one that is not there."""
    lacks = {name: reason for name, content in files.items() if (reason := _not_made(content))}
    if (why := files.get(WHY)) is not None:
        lacks[REPORT] = _not_made(why) or "the node's script did not write it"
    kept = {name: files[name] for name in TAKEN if name in files and name not in lacks}
    return Bundle(kept, lacks, _listed(kept.get(NVML, b"")), sha256)


def _not_made(content: bytes) -> str:
    text = content[:400].decode(errors="replace")
    return next((_line(text.removeprefix(word)) for word in NOT_MADE if text.startswith(word)), "")


def _listed(content: bytes) -> tuple[Entry, ...]:
    try:
        listed = json.loads(content or b"[]")
    except (ValueError, RecursionError):
        return ()
    return tuple(gpu for gpu in listed if isinstance(gpu, dict)) if isinstance(listed, list) else ()


def boards(claim: RmaClaim) -> tuple[Board, ...]:
    """The GPUs that the case is about; where it names none, all that were found."""
    listed = claim.evidence.get("gpus")
    of_case = [gpu for gpu in listed if isinstance(gpu, Mapping)] if isinstance(listed, list | tuple) else []
    entries = [*of_case, *(claim.bundle.gpus if claim.bundle else ())]
    if claim.case.gpus:
        return tuple(_board(gpu, entries) for gpu in claim.case.gpus)
    return tuple(_board(gpu, entries) for gpu in _distinct(entries)[:MOST_BOARDS])


def _distinct(entries: Iterable[Entry]) -> list[Gpu]:
    gpus: list[Gpu] = []
    for entry in entries:
        gpu = Gpu(_told(entry, "serial"), _told(entry, "uuid"))
        if gpu.keys and not any(_same(known, entry) for known in gpus):
            gpus.append(gpu)
    return gpus


def _board(gpu: Gpu, entries: Iterable[Entry]) -> Board:
    """What all who told of this GPU know of it together."""
    mine = [entry for entry in entries if _same(gpu, entry)]
    more = [inner for entry in mine if isinstance(inner := entry.get("more"), Mapping)]
    return Board(
        serial=gpu.serial or _first("serial", mine),
        part=_first("part", mine) or _first("BoardPartNumber", more),
        uuid=gpu.uuid or _first("uuid", mine),
        slot=_first("address", mine),
        inforom=_first("inforom", mine) or _first("InforomImageVersion", more),
        vbios=_first("VbiosVersion", more),
        model=_first("Name", more),
        remapped=_first("RemappedRows", more),
    )


def _first(word: str, entries: Iterable[Entry]) -> str:
    return next((text for entry in entries if (text := _told(entry, word))), "")


def _same(gpu: Gpu, entry: Entry) -> bool:
    """By UUID where both have one: two GPUs may share a board."""
    uuid, serial = _told(entry, "uuid"), _told(entry, "serial")
    return uuid == gpu.uuid if uuid and gpu.uuid else bool(serial) and serial == gpu.serial


def _told(entry: Entry, word: str) -> str:
    """A text of an entry; "" for what it lacks, and for the error that stands in its place."""
    text = entry.get(word)
    return "" if not isinstance(text, str) or text.startswith(("NVMLError", "AttributeError")) else _line(text)


def _line(text: object) -> str:
    return printable(str(text)).strip()[:LONGEST]
