"""The kernel's own account of its clock: adjtimex(2), which anybody may read."""

import ctypes
import json
import os
import struct
from pathlib import Path
from typing import Any, NamedTuple

UNSYNC, NANO = 0x0040, 0x2000  # bits of the status (timex.h)
HEAD = struct.Struct("@Illlli")  # modes, offset, freq, maxerror, esterror, status: how struct timex begins
BYTES = 512  # struct timex has about 208


class Reading(NamedTuple):
    """How far off the clock may be, in seconds. `unsynced`: nobody vouches for the three."""

    offset: float
    esterror: float
    maxerror: float
    unsynced: bool


def read_kernel() -> Reading:
    """Ask the kernel. Raises OSError where it does not report."""
    buffer = ctypes.create_string_buffer(BYTES)  # modes 0: nothing is set
    if ctypes.CDLL(None, use_errno=True).adjtimex(buffer) < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), "adjtimex")
    _, offset, _, maxerror, esterror, status = HEAD.unpack_from(buffer)
    return reading(offset, maxerror, esterror, status)


def reading(offset: int, maxerror: int, esterror: int, status: int) -> Reading:
    """Turn the kernel's units into seconds: microseconds, the offset's nanoseconds where NANO is set."""
    unit = 1e9 if status & NANO else 1e6
    return Reading(offset / unit, esterror / 1e6, maxerror / 1e6, bool(status & UNSYNC))


def read_file(path: Path) -> Reading:
    """Read {"offset", "maxerror", "esterror", "status"} in the kernel's units. Raises OSError, or ValueError."""
    value: Any = json.loads(path.read_bytes())
    content = value if isinstance(value, dict) else {}
    numbers: list[Any] = [content.get(name) for name in ("offset", "maxerror", "esterror", "status")]
    if not all(type(number) is int and abs(number) < 1 << 63 for number in numbers):
        raise ValueError(f"{path} is no reading of the clock")
    return reading(*numbers)
