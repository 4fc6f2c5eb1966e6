"""Files of /proc/PID that cannot block on the memory of a stuck process: stat, status and cgroup.

Nothing here reads cmdline, environ, maps, fd, exe or cwd.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

KILLED = 1 << 8  # SIGKILL in a mask of signals
STATES = frozenset("RSDZTtXxKWPI")
ENDED = "ZXx"
VANISHED = (FileNotFoundError, ProcessLookupError)  # a process may end while it is read


class Stat(NamedTuple):
    """What /proc/PID/stat says: name, state letter, flags, start in clock ticks since boot, and the parent's pid."""

    comm: str
    state: str
    flags: int
    start: int
    parent: int = 0


def pid_folders(proc: Path) -> Iterator[Path]:
    """Yield the folder of each process. Raises OSError when /proc itself cannot be read."""
    return (path for path in proc.iterdir() if path.name.isascii() and path.name.isdigit())


def living_thread(process: Path) -> Path | None:
    """Return the folder of a thread that has not ended, the process' own if its leader lives; None when all have ended.

    A leader may have ended while another thread lives on, and a cgroup hierarchy of version 1 then shows "/" for it.
    Raises OSError and ValueError where that cannot be read.
    """
    if read_stat(process).state not in ENDED:
        return process
    return next((task for task in sorted((process / "task").iterdir()) if _lives(task)), None)


def living(process: Path) -> Path | None:
    """Return what `living_thread` does; None also where that cannot be read."""
    with suppress(OSError, ValueError):
        return living_thread(process)
    return None


def _lives(task: Path) -> bool:
    try:
        return read_stat(task).state not in ENDED
    except VANISHED:
        return False


def read_stat(task: Path) -> Stat:
    """Read a thread's stat file, or a process'. Raises OSError and ValueError."""
    return parse_stat(text_of(task / "stat"))


def read_cgroup(task: Path) -> str:
    """Return a thread's cgroup file: of one that has not ended (see living_thread). Raises OSError."""
    return text_of(task / "cgroup")


def parse_stat(text: str) -> Stat:
    """Read a stat file; the name may hold blanks and parentheses. Raises ValueError."""
    head, _, tail = text.rpartition(")")
    comm = head.partition("(")[2]
    fields = tail.split()
    sound = len(fields) >= 20 and fields[0] in STATES and re.fullmatch(r"[0-9]{1,10} \(.*", head, flags=re.DOTALL)
    if not sound:
        raise ValueError("stat")
    return Stat(comm, fields[0], _number(fields[6]), _number(fields[19]), _number(fields[1]))


def is_killed(status: str) -> bool:
    """Return whether SIGKILL is pending, for the thread or its process. Raises ValueError."""
    masks = [_field(status, name) for name in ("SigPnd", "ShdPnd")]
    if not all(re.fullmatch(r"[0-9a-f]{1,16}", mask) for mask in masks):
        raise ValueError("status")
    return any(int(mask, 16) & KILLED for mask in masks)


def switches_of(status: str) -> int:
    """Return how often the thread has given up its processor. Raises ValueError."""
    return sum(_number(_field(status, f"{kind}_ctxt_switches")) for kind in ("voluntary", "nonvoluntary"))


def _field(status: str, name: str) -> str:
    match = re.search(rf"^{name}:(.*)$", status, re.MULTILINE)
    if not match:
        raise ValueError(f"status has no {name}")
    return match[1].strip()


def word(text: str) -> str:
    """Return a name that a program chose as one harmless word; "unknown" for none (wchan is 0 where it is hidden)."""
    plain = re.sub(r"[^A-Za-z0-9_.:/@+()-]+", "_", text.strip())[:64]
    return plain if plain not in ("", "0") else "unknown"


def _number(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,20}", text):
        raise ValueError(text)
    return int(text)


def text_of(path: Path) -> str:
    """Return what a file holds. Raises OSError."""
    return path.read_bytes().decode(errors="replace")
