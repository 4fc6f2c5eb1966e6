"""Processes of this node's Pods, read from files of /proc that no stuck process can block."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from nodelib.contract.operation import Refused
from nodelib.host.cgroups import pod_of
from nodelib.host.proc_files import is_killed, living_thread, pid_folders, read_cgroup, read_stat, text_of


class Process(NamedTuple):
    """Who it is: pids are used again, so the start (clock ticks since boot) is part of it. `pod`: 32 hex digits."""

    pid: int
    start: int
    name: str
    pod: str


def read(proc: Path, pid: int) -> Process | None:
    """Return a process that has not ended, of whatever Pod; None when there is none any more."""
    folder = proc / str(pid)
    try:
        stat, thread = read_stat(folder), living_thread(folder)
        return Process(pid, stat.start, stat.comm, pod_of(read_cgroup(thread))) if thread else None
    except (OSError, ValueError):
        return None


def of_pods(proc: Path) -> Iterator[Process]:
    """Yield each process that belongs to a Pod of this node."""
    for folder in pid_folders(proc):
        if (process := read(proc, int(folder.name))) and process.pod:
            yield process


def is_stuck(proc: Path, process: Process) -> bool:
    """Whether SIGKILL waits for a thread that sleeps in the kernel and does not heed it."""
    with contextlib.suppress(OSError, ValueError):
        tasks = (proc / str(process.pid) / "task").iterdir()
        return any(read_stat(task).state == "D" and is_killed(text_of(task / "status")) for task in tasks)
    return False


def require_own(proc: Path) -> None:
    """Raise Refused unless `proc` counts processes as we do: else a pid in it means another process to the kernel."""
    try:
        ours = int((proc / "self/stat").read_text().split(" ", 1)[0])
    except (OSError, ValueError) as error:
        raise Refused(f"the node's processes cannot be read: {error}") from error
    if ours != os.getpid():
        raise Refused("the Pod does not see the node's processes: give its template hostPID: true")
