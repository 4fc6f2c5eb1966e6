"""Threads that SIGKILL does not end, read from /proc, and the Pods that they belong to.

Only files are read that cannot block on the memory of a stuck process: stat, status, wchan, stack and cgroup, never
cmdline, environ, maps, fd, exe or cwd.
"""

import re
from pathlib import Path
from typing import NamedTuple

from nodelib.host.cgroups import parse_cgroup
from nodelib.host.proc_files import (
    VANISHED,
    Stat,
    is_killed,
    pid_folders,
    read_cgroup,
    read_stat,
    switches_of,
    text_of,
    word,
)

KERNEL_THREAD = 0x00200000  # PF_KTHREAD


class Thread(NamedTuple):
    """A thread in state D with SIGKILL pending. `pod`: 32 hex digits, "" for none; `switches`: context switches."""

    pid: int
    tid: int
    start: int
    comm: str
    wchan: str
    switches: int
    pod: str
    container: str

    @property
    def key(self) -> str:
        """Who it is: pids are used again, so the start is part of it."""
        return f"{self.pid}/{self.tid}/{self.start}"


class Scan(NamedTuple):
    """`read`: how many processes could be read; `garbled`: the paths of files that make no sense or cannot be read."""

    threads: tuple[Thread, ...]
    read: int
    garbled: tuple[str, ...]


def scan(proc: Path) -> Scan:
    """Look at every process. Raises OSError when /proc itself cannot be read.

    The threads of a process are looked at when its leader is in D, or is a zombie: the leader may have ended while
    another thread is stuck. A leader that lives on in another state has not been killed.
    """
    threads: list[Thread] = []
    garbled: list[str] = []
    read = 0
    for folder in sorted(pid_folders(proc)):
        try:
            leader = read_stat(folder)
            read += 1
            if leader.state in "DZ" and not leader.flags & KERNEL_THREAD:
                stuck, odd = _stuck(folder, leader)
                threads += stuck
                garbled += odd
        except VANISHED:
            continue
        except (OSError, ValueError):
            garbled.append(f"{folder.name}/stat")
    return Scan(tuple(threads), read, tuple(garbled))


def _stuck(folder: Path, leader: Stat) -> tuple[list[Thread], list[str]]:
    stuck, odd = [], []
    for task in sorted((folder / "task").iterdir()):
        try:
            thread = _thread(task, int(folder.name), leader)
        except VANISHED:
            continue
        except (OSError, ValueError):
            odd.append(f"{folder.name}/task/{task.name}")
        else:
            stuck += [thread] if thread else []
    return stuck, odd


def _thread(task: Path, pid: int, leader: Stat) -> Thread | None:
    """Return the thread, or None when it is not stuck. Raises ValueError when a file makes no sense."""
    stat = read_stat(task)
    if stat.state != "D":
        return None
    status = text_of(task / "status")
    if not is_killed(status):
        return None
    switches = switches_of(status)
    pod, container = parse_cgroup(read_cgroup(task))
    wchan = word(_maybe(task / "wchan"))
    return Thread(pid, int(task.name), stat.start, word(leader.comm), wchan, switches, pod, container)


def stack(proc: Path, thread: Thread) -> list[str]:
    """Return the innermost functions in which the kernel waits, [] where they may not be read."""
    lines = _maybe(proc / str(thread.pid) / "task" / str(thread.tid) / "stack").split("\n")
    return [re.sub(r"^\[<[0-9a-f]*>\] ", "", line)[:60] for line in lines if line][:8]


def _maybe(path: Path) -> str:
    try:
        return text_of(path)
    except OSError:
        return ""
