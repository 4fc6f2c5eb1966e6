"""Lines of /proc/PID/mountinfo: text in, values out. Reading that file touches no mount and cannot hang."""

import re
from typing import NamedTuple

HEAD = re.compile(r"[0-9]+ [0-9]+ [0-9]+:[0-9]+ [^ ]+ /[^ ]* r[ow]")  # how each line begins
GARBLED = "mountinfo has lines that make no sense"


class MountLine(NamedTuple):
    """One mount. `device`: major:minor of its super block; `root`: the folder in it that is mounted at `point`;
    `source`: as it was mounted; `options`: of the mount; `super_options`: of the super block; `follows`: whether it
    came, and goes, with a mount of another namespace.
    """

    point: str
    device: str
    root: str
    kind: str
    source: str
    options: str
    super_options: str
    follows: bool


def parse(text: str) -> tuple[list[MountLine], int]:
    """Return the mounts in their order, and how many lines make no sense."""
    mounts, garbled = [], 0
    for line in text.removesuffix("\n").split("\n"):
        try:
            mounts.append(parse_line(line))
        except ValueError:
            garbled += 1
    return mounts, garbled


def parse_line(line: str) -> MountLine:
    """Read one line. Raises ValueError when it is none of mountinfo."""
    fields = line.split(" ")
    dash = fields.index("-", 6)
    kind, source, super_options = fields[dash + 1 : dash + 4]
    if not HEAD.match(line) or not kind or super_options[:2] not in ("rw", "ro"):
        raise ValueError(line)
    device, root, point, options = fields[2:6]
    follows = any(field.startswith("master:") for field in fields[6:dash])
    return MountLine(unescape(point), device, unescape(root), kind, unescape(source), options, super_options, follows)


def unescape(text: str) -> str:
    r"""Undo the octal escapes of /proc: \040 is a blank."""
    return re.sub(r"\\([0-3][0-7]{2})", lambda match: chr(int(match[1], 8)), text)
