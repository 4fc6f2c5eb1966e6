"""Processes of this node's Pods, read from files of /proc that no stuck process can block."""

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from nodelib.contract.operation import Refused

SIGKILL = 1 << 8  # in a mask of signals
ENDED = "ZXx"
UID = r"[0-9a-f]{8}(?:[-_]?[0-9a-f]{4}){3}[-_]?[0-9a-f]{12}"
POD = re.compile(rf"(?:[a-z-]*kubepods[a-z-]*-)?pod({UID})(?:\.slice)?", re.IGNORECASE)
# What may stand before a Pod in a path: this kubelet's own groups, or what a cgroup namespace cut off. Behind anything
# else (docker-….scope, lxc.payload) there is a cluster inside a container, whose Pods this node's kubelet never knew.
ABOVE = re.compile(r"\.\.|kubelet(?:\.slice)?|(?:[a-z]+-)*kubepods(?:-[a-z]+)?(?:\.slice)?|burstable|besteffort")


class Process(NamedTuple):
    """Who it is: pids are used again, so the start (clock ticks since boot) is part of it. `pod`: 32 hex digits."""

    pid: int
    start: int
    name: str
    pod: str


def bare(uid: str) -> str:
    """A Pod's uid in one spelling: static Pods have none with dashes, cgroups may have underscores."""
    return uid.replace("-", "").replace("_", "").lower()


def pod_of(cgroup: str) -> str:
    """Return the one Pod of this node that a cgroup file names, the outermost; "" for none, or for more than one.

    >>> pod_of("0::/kubepods/burstable/pod12345678-1234-1234-1234-123456789abc/4f")
    '12345678123412341234123456789abc'
    >>> pod_of("0::/docker/4f/kubepods/pod12345678-1234-1234-1234-123456789abc/5e")
    ''
    """
    found = {_pod_of(line.split(":", 2)[-1]) for line in cgroup.splitlines()} - {""}
    return found.pop() if len(found) == 1 else ""


def _pod_of(path: str) -> str:
    for segment in path.removesuffix(" (deleted)").strip("/").split("/"):
        found = POD.fullmatch(segment)
        if found:
            return bare(found[1])
        if not ABOVE.fullmatch(segment):
            return ""
    return ""


def read(proc: Path, pid: int) -> Process | None:
    """Return a process that has not ended, of whatever Pod; None when there is none any more."""
    folder = proc / str(pid)
    try:
        name, _, start = _stat(folder)
        thread = living(folder)
        return Process(pid, start, name, pod_of((thread / "cgroup").read_text(errors="replace"))) if thread else None
    except (OSError, ValueError, IndexError):
        return None


def living(folder: Path) -> Path | None:
    """Return the folder of a thread of a process that has not ended, its leader if it lives; None when all have.

    A leader may have ended while another thread lives on. Of the ended one no cgroup of version 1 is shown any more.
    """
    if _lives(folder):
        return folder
    with contextlib.suppress(OSError):
        return next(filter(_lives, sorted((folder / "task").iterdir())), None)
    return None


def _lives(task: Path) -> bool:
    with contextlib.suppress(OSError, ValueError, IndexError):  # one that vanishes hides no other
        return _stat(task)[1] not in ENDED
    return False


def of_pods(proc: Path) -> Iterator[Process]:
    """Yield each process that belongs to a Pod of this node."""
    for folder in proc.iterdir():
        if folder.name.isdecimal() and (process := read(proc, int(folder.name))) and process.pod:
            yield process


def is_stuck(proc: Path, process: Process) -> bool:
    """Whether SIGKILL waits for a thread that sleeps in the kernel and does not heed it."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        tasks = (proc / str(process.pid) / "task").iterdir()
        return any(_stat(task)[1] == "D" and _is_killed(task) for task in tasks)
    return False


def require_own(proc: Path) -> None:
    """Raise Refused unless `proc` counts processes as we do: else a pid in it means another process to the kernel."""
    try:
        ours = int((proc / "self/stat").read_text().split(" ", 1)[0])
    except (OSError, ValueError) as error:
        raise Refused(f"the node's processes cannot be read: {error}") from error
    if ours != os.getpid():
        raise Refused("the Pod does not see the node's processes: give its template hostPID: true")


def _stat(folder: Path) -> tuple[str, str, int]:
    """Name, state letter and start; the name may hold blanks and parentheses."""
    head, _, tail = (folder / "stat").read_text(errors="replace").rpartition(")")
    fields = tail.split()
    return head.partition("(")[2], fields[0], int(fields[19])


def _is_killed(task: Path) -> bool:
    fields = dict(line.partition(":")[::2] for line in (task / "status").read_text(errors="replace").splitlines())
    return any(int(fields.get(name, "0"), 16) & SIGKILL for name in ("SigPnd", "ShdPnd"))
