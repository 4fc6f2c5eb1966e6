"""Which mounts a node declares, by /etc/fstab and by mount units of systemd that are wanted. Reads files only."""

import re
from collections.abc import Iterator
from pathlib import Path

from nodelib.host.mountinfo import unescape

NOT_AT_BOOT = {"noauto"}
NO_FILES = {"swap", "none"}


def declared(etc: Path) -> frozenset[str]:
    """The mount points that should be there after a boot; `etc` is the node's /etc. Raises OSError."""
    try:
        lines = (etc / "fstab").read_text(errors="replace").splitlines()
    except FileNotFoundError:
        lines = []
    return frozenset({*_of_fstab(lines), *_of_units(etc / "systemd/system")})


def _of_fstab(lines: list[str]) -> Iterator[str]:
    for line in lines:
        fields = line.split()
        if len(fields) < 3 or fields[0].startswith("#"):
            continue
        options = set(fields[3].split(",")) if len(fields) > 3 else set()
        point = unescape(fields[1])
        if point.startswith("/") and fields[2] not in NO_FILES and not options & NOT_AT_BOOT:
            yield point.rstrip("/") or "/"


def _of_units(folder: Path) -> Iterator[str]:
    """The points of units that some target wants; a unit is named after its point."""
    for link in folder.glob("*.wants/*.mount"):
        yield point_of(link.name)


def point_of(unit: str) -> str:
    r"""The mount point that the name of a unit means.

    >>> point_of(r"mnt-fast\x2ddata.mount")
    '/mnt/fast-data'
    """
    path = unit.removesuffix(".mount").replace("-", "/")
    return "/" + re.sub(r"\\x([0-9a-f]{2})", lambda match: chr(int(match[1], 16)), path).strip("/")
