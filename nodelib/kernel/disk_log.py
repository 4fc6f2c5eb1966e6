"""What the kernel's log has against disks: errors, timeouts, and those that it has given up."""

import re
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from nodelib.host.disks import NVME, OTHERS
from nodelib.kernel.kmsg import Line

MOST_ERRORS, WINDOW = 5, 3600.0  # the kernel tells at most 10 errors in 5 seconds: more is not needed to be sure

ERROR = re.compile(  # since 5.16 and before; an order that a disk does not know (discard) is no failure of it
    r"(?:blk_update_request: |end_request: |print_req_error: )?(?:I/O|critical medium|protection|timeout) error, "
    r"dev (?P<device>[a-z]+[a-z0-9]*),? sector [0-9]+\b(?! op 0x[359]:)"
)
TIMEOUT = re.compile(r"nvme (?P<device>nvme[0-9]+): I/O .*timeout, (?:reset controller|disable controller|aborting)")
NO_PATH = re.compile(r"(?:block )?(?P<device>nvme[0-9a-z]+): no (?:available|usable) path - failing I/O")
GIVEN_UP = re.compile(
    r"nvme (?P<device>nvme[0-9]+): (?:Disabling device after reset failure|Removing after probe failure"
    r"|Device not ready; aborting (?:reset|initialisation)|Identify Controller failed)"
)
PROBED = re.compile(r"nvme (?P<device>nvme[0-9]+): pci function ")
ATTACHED = re.compile(r"sd [0-9:]+: \[(?P<device>sd[a-z]+)\] Attached ")
WORDS = (
    (ERROR, "error"),
    (TIMEOUT, "error"),
    (NO_PATH, "error"),
    (GIVEN_UP, "given up"),
    (PROBED, "new"),
    (ATTACHED, "new"),
)
STORY = re.compile(
    r"I/O error|medium error|protection error|nvme nvme[0-9]+: |md/raid|md[0-9]+: |sd [0-9:]+: |ata[0-9.]+: "
)


class Blamed(NamedTuple):
    """What the log has against a disk. `who`: its serial number then, "" where it was not there any more.

    `times`: of its errors in seconds since boot, the newest ones; `words`: "" or what is certain since.
    """

    who: str
    times: tuple[float, ...] = ()
    words: str = ""


def unit(device: str) -> str:
    """Return the disk that a device of the log is or is on: a namespace's controller, a partition's disk; "" for none.

    >>> unit("nvme1n1p2"), unit("sda1"), unit("dm-0"), unit("mmcblk0p1")
    ('nvme1', 'sda', '', 'mmcblk0')
    """
    if paths := re.fullmatch(r"nvme[0-9]+c([0-9]+)n[0-9]+", device):  # a path of a namespace with several
        return f"nvme{paths[1]}"
    match = re.fullmatch(rf"({NVME})(?:n[0-9]+(?:p[0-9]+)?)?|({OTHERS})(?:p?[0-9]+)?", device)
    return (match[1] or match[2]) if match else ""


def read_log(lines: Iterable[Line]) -> list[tuple[str, float, str]]:
    """Return (disk, seconds since boot, "error", "given up" or "new") for each line that tells of a disk."""
    signs = []
    for line in lines:
        for pattern, word in WORDS:
            match = pattern.match(line.text)
            if match and unit(match["device"]):
                signs.append((unit(match["device"]), line.at, word))
    return signs


def many(times: Iterable[float], most: int, window: float) -> bool:
    """Whether `most` of the times lie within `window` seconds of each other.

    >>> many([0, 10, 20], 3, 20), many([0, 10, 21], 3, 20)
    (True, False)
    """
    ordered = sorted(times)
    return any(late - early <= window for early, late in zip(ordered, ordered[most - 1 :], strict=False))


def blame(before: Mapping[str, Blamed], lines: Iterable[Line], who: Mapping[str, str]) -> dict[str, Blamed]:
    """Add what new lines say of disks; `who`: serial number by name of those that are there, or were before."""
    blamed = dict(before)
    for name, at, word in read_log(lines):
        last = blamed.pop(name, None) or Blamed(who.get(name, ""))
        times = (*last.times, at)[-MOST_ERRORS:]
        errors = "has many I/O errors" if many(times, MOST_ERRORS, WINDOW) else ""
        if word != "new":
            blamed[name] = Blamed(last.who, times, "was given up" if word == "given up" else last.words or errors)
    return blamed


def stands(name: str, blamed: Blamed, here: Mapping[str, str], guests: Collection[str]) -> bool:
    """Whether the log still counts: not for another disk of that name, nor for one that came and went with a Pod.

    Args: `here`: serial number by name of the disks that are there; `guests`: names of what may leave.
    """
    return here[name] == blamed.who if name in here else name not in guests
