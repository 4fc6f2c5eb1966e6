"""Versions of what a node runs with, by kind: one word for all devices of a kind. From files alone; judges nothing.

A kind that the node has not, or of which a device tells nothing that makes sense, is left out: nobody can tell it.
"""

import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from nodelib.contract.npd import LINE_BYTES
from nodelib.host.attributes import folders, text
from nodelib.host.driver import VERSION, module
from nodelib.host.gpus import information

LONGEST = 40  # characters of a value; a longer one is a digest
ROM = r"[0-9A-Fa-f]{2,4}(\.[0-9A-Fa-f]{2}){4}"  # as GPUs and NVSwitches tell the version of their BIOS
ADDRESS = r"[0-9a-fA-F]{4,8}:.*"  # how the folders of devices in the driver's /proc are named


class VersionFiles(NamedTuple):
    """Where the node's files are."""

    proc: Path
    sys: Path


class VersionKind(NamedTuple):
    """What each device of a kind tells, "" for nothing; and the form that this has where it is whole."""

    read: Callable[[VersionFiles], Iterable[str]]
    form: str = ".+"


KINDS: Mapping[str, VersionKind] = {
    "kernel": VersionKind(lambda place: _file(place.proc / "sys/kernel/osrelease"), r"[0-9]+\.[0-9]+.*"),
    "bios": VersionKind(lambda place: _file(place.sys / "class/dmi/id/bios_version")),
    "gpu": VersionKind(lambda place: _told_of_gpus(place, "model")),
    "driver": VersionKind(lambda place: _driver(place), VERSION),
    "gsp": VersionKind(lambda place: _told_of_gpus(place, "gpu firmware"), rf"{VERSION}|N/A"),
    "vbios": VersionKind(lambda place: _told_of_gpus(place, "video bios"), ROM),
    "nvswitch": VersionKind(lambda place: _told_of_switches(place), ROM),
    "nics": VersionKind(lambda place: _nics(place), r"[0-9]+\.[0-9]+.*"),
}


def read(place: VersionFiles) -> tuple[dict[str, str], dict[str, str]]:
    """The value of each kind that every device of it tells, and why a kind is left out that the node may have."""
    facts, why = {}, {}
    for name, kind in KINDS.items():
        try:
            values = list(kind.read(place))
        except (OSError, ValueError) as error:
            why[name] = str(error)
            continue
        if odd := [value for value in values if not re.fullmatch(kind.form, value)]:
            why[name] = f"a device tells {odd[0][:LONGEST]!r}"
        elif values:
            facts[name] = word(values)
    return facts, why


def word(values: Iterable[str]) -> str:
    """One word for what the devices of a kind tell, each once.

    >>> word(["28.42.1000", "28.42.1000", "NVIDIA H100"])
    '28.42.1000,NVIDIA-H100'
    """
    words = sorted({re.sub(r"[^A-Za-z0-9._:/+-]+", "-", value.strip()) for value in values})
    joined = ",".join(words)
    return joined if len(joined) <= LONGEST else _digest(joined)


def line(facts: Mapping[str, str]) -> str:
    """The facts as a Condition carries them; where there is no room for all, a digest stands for the longest values.

    >>> line({"kernel": "6.8.0", "driver": "580.82.07"})
    'kernel=6.8.0 driver=580.82.07'
    """
    shown = dict(facts)
    for name in sorted(facts, key=lambda name: -len(facts[name])):
        if len(_joined(shown)) <= LINE_BYTES:
            break
        shown[name] = _digest(facts[name])
    return _joined(shown)


def _joined(facts: Mapping[str, str]) -> str:
    return " ".join(f"{name}={value}" for name, value in facts.items())


def _digest(value: str) -> str:
    return f"digest:{zlib.crc32(value.encode()):08x}"


def _file(path: Path) -> Iterator[str]:
    """What stands in a file; nothing where there is none."""
    if (content := text(path)) is not None:
        yield content


def _driver(place: VersionFiles) -> Iterator[str]:
    """The version of the module that is loaded; nothing where none is. Raises ValueError where nobody can tell."""
    loaded = module(place.proc)
    if loaded.why:
        raise ValueError(loaded.why)
    if loaded.version:
        yield loaded.version


def _told_of_gpus(place: VersionFiles, field: str) -> Iterator[str]:
    """What the driver lists of each GPU that it was not told to leave alone."""
    for folder in folders(place.proc / "driver/nvidia/gpus", ADDRESS):
        fields = information(folder / "information")
        if fields.get("gpu excluded", "").lower() != "yes":
            yield fields.get(field, "")


def _told_of_switches(place: VersionFiles) -> Iterator[str]:
    for folder in folders(place.proc / "driver/nvidia-nvswitch/devices", ADDRESS):
        yield information(folder / "information").get("bios version", "")


def _nics(place: VersionFiles) -> Iterator[str]:
    """The firmware of RDMA devices."""
    for folder in folders(place.sys / "class/infiniband", r"[A-Za-z0-9_.-]+"):
        yield text(folder / "fw_ver") or ""
