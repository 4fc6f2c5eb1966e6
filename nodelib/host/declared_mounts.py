"""Which mounts a node declares, by /etc/fstab and by mount units of systemd that are wanted. Reads files only."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from nodelib.host.mountinfo import unescape
from nodelib.host.root import within

NOT_AT_BOOT = {"noauto"}
NO_FILES = {"swap", "none"}
UNITS = "etc/systemd/system"


class Declared(NamedTuple):
    """One mount that should be there after a boot; "" for what its unit does not tell."""

    point: str
    kind: str = ""
    source: str = ""
    options: str = ""


def declared(root: Path) -> dict[str, Declared]:
    """The mounts that should be there after a boot, by point; `root` is the node's root folder. Raises OSError."""
    try:
        lines = (root / "etc/fstab").read_text(errors="replace").splitlines()
    except FileNotFoundError:
        lines = []
    return {mount.point: mount for mount in (*_of_units(root), *_of_fstab(lines))}


def _of_fstab(lines: list[str]) -> Iterator[Declared]:
    for line in lines:
        fields = line.split()
        if len(fields) < 3 or fields[0].startswith("#"):
            continue
        options = fields[3] if len(fields) > 3 else ""
        point = unescape(fields[1])
        if point.startswith("/") and fields[2] not in NO_FILES and not set(options.split(",")) & NOT_AT_BOOT:
            yield Declared(point.rstrip("/") or "/", fields[2], unescape(fields[0]), options)


def _of_units(root: Path) -> Iterator[Declared]:
    """The mounts of units that some target wants; a unit is named after its point."""
    for link in (root / UNITS).glob("*.wants/*.mount"):
        settings = _settings(within(root, str(link.relative_to(root))))
        yield Declared(point_of(link.name), *(settings.get(name, "") for name in ("Type", "What", "Options")))


def _settings(unit: Path) -> dict[str, str]:
    """The settings of a unit that say what is mounted; {} where it cannot be read: its name says where."""
    try:
        lines = unit.read_text(errors="replace").splitlines()
    except OSError:
        return {}
    return dict(match.groups() for line in lines if (match := re.fullmatch(r"(Type|What|Options)=\s*(\S+)\s*", line)))


def point_of(unit: str) -> str:
    r"""The mount point that the name of a unit means.

    >>> point_of(r"mnt-fast\x2ddata.mount")
    '/mnt/fast-data'
    """
    path = unit.removesuffix(".mount").replace("-", "/")
    return "/" + re.sub(r"\\x([0-9a-f]{2})", lambda match: chr(int(match[1], 16)), path).strip("/")
