"""Threads that SIGKILL does not end, read from /proc, and the Pods that they belong to.

Only files are read that cannot block on the memory of a stuck process: stat, status, wchan, stack and cgroup, never
cmdline, environ, maps, fd, exe or cwd.
"""

import re
from pathlib import Path
from typing import NamedTuple

KILLED = 1 << 8  # SIGKILL in a mask of signals
STATES = frozenset("RSDZTtXxKWPI")
ENDED = "ZXx"
KERNEL_THREAD = 0x00200000  # PF_KTHREAD
VANISHED = (FileNotFoundError, ProcessLookupError)  # a process may end while it is read

POD = re.compile(
    r"(?:^|[/-])pod([0-9a-fA-F]{8}(?:[-_]?[0-9a-fA-F]{4}){3}[-_]?[0-9a-fA-F]{12})(?=\.slice|[/:]|$| \(deleted\))"
)
CONTAINER = re.compile(r"(?<![0-9a-f])([0-9a-f]{64})(?![0-9a-f])")


class Stat(NamedTuple):
    """What /proc/PID/stat says: name, state letter, flags, and start in clock ticks since boot."""

    comm: str
    state: str
    flags: int
    start: int


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
    for folder in sorted(path for path in proc.iterdir() if path.name.isascii() and path.name.isdigit()):
        try:
            leader = read_stat(folder)
            read += 1
            if leader.state in "DZ" and not leader.flags & KERNEL_THREAD:
                found, odd = _stuck(folder, leader)
                threads += found
                garbled += odd
        except VANISHED:
            continue
        except (OSError, ValueError):
            garbled.append(f"{folder.name}/stat")
    return Scan(tuple(threads), read, tuple(garbled))


def _stuck(folder: Path, leader: Stat) -> tuple[list[Thread], list[str]]:
    found, odd = [], []
    for task in sorted((folder / "task").iterdir()):
        try:
            thread = _thread(task, int(folder.name), leader)
        except VANISHED:
            continue
        except (OSError, ValueError):
            odd.append(f"{folder.name}/task/{task.name}")
        else:
            found += [thread] if thread else []
    return found, odd


def _thread(task: Path, pid: int, leader: Stat) -> Thread | None:
    """Return the thread, or None when it is not stuck. Raises ValueError when a file makes no sense."""
    stat = read_stat(task)
    if stat.state != "D":
        return None
    killed, switches = parse_status(_text(task / "status"))
    if not killed:
        return None
    pod, container = parse_cgroup(read_cgroup(task))
    wchan = word(_maybe(task / "wchan"))
    return Thread(pid, int(task.name), stat.start, word(leader.comm), wchan, switches, pod, container)


def living_thread(process: Path) -> Path | None:
    """Return the folder of a thread that has not ended, the process' own if its leader lives; None when all have ended.

    A leader may have ended while another thread lives on, and a cgroup hierarchy of version 1 then shows "/" for it.
    Raises OSError and ValueError where that cannot be read.
    """
    if read_stat(process).state not in ENDED:
        return process
    return next((task for task in sorted((process / "task").iterdir()) if _lives(task)), None)


def _lives(task: Path) -> bool:
    try:
        return read_stat(task).state not in ENDED
    except VANISHED:
        return False


def read_stat(task: Path) -> Stat:
    """Read a thread's stat file, or a process'. Raises OSError and ValueError."""
    return parse_stat(_text(task / "stat"))


def read_cgroup(task: Path) -> str:
    """Return a thread's cgroup file: of one that has not ended (see living_thread). Raises OSError."""
    return _text(task / "cgroup")


def parse_stat(text: str) -> Stat:
    """Read a stat file; the name may hold blanks and parentheses. Raises ValueError."""
    head, _, tail = text.rpartition(")")
    comm = head.partition("(")[2]
    fields = tail.split()
    sound = len(fields) >= 20 and fields[0] in STATES and re.fullmatch(r"[0-9]{1,10} \(.*", head, flags=re.DOTALL)
    if not sound:
        raise ValueError("stat")
    return Stat(comm, fields[0], _number(fields[6]), _number(fields[19]))


def parse_status(text: str) -> tuple[bool, int]:
    """Return whether SIGKILL is pending, for the thread or its process, and the context switches. Raises ValueError."""
    fields = {name: value.strip() for name, _, value in (line.partition(":") for line in text.split("\n"))}
    try:
        pending = [fields[name] for name in ("SigPnd", "ShdPnd")]
        switches = [fields[name] for name in ("voluntary_ctxt_switches", "nonvoluntary_ctxt_switches")]
    except KeyError as error:
        raise ValueError(f"status has no {error}") from None
    if not all(re.fullmatch(r"[0-9a-f]{1,16}", mask) for mask in pending):
        raise ValueError("status")
    return any(int(mask, 16) & KILLED for mask in pending), sum(_number(one) for one in switches)


def parse_cgroup(text: str) -> tuple[str, str]:
    """Return the Pod's uid (32 hex digits) and the container's id, "" each where there is none. Raises ValueError.

    The outermost Pod counts: the API server of this node knows no Pod inside of it. The leading parts of a path may be
    cut (a cgroup namespace of our own), so nothing is anchored to kubepods.
    """
    lines = [line for line in text.split("\n") if line]
    if not lines or not all(re.fullmatch(r"[0-9]+:[^:]*:/.*", line) for line in lines):
        raise ValueError("cgroup")
    for line in lines:
        match = POD.search(line.split(":", 2)[2])
        if match:
            containers = [] if "conmon" in line else CONTAINER.findall(line)  # CRI-O's monitor is not the container
            return bare(match[1]), containers[-1] if containers else ""
    return "", ""


def bare(uid: str) -> str:
    """Return a uid in the form in which uids are compared: kubelets write them with -, with _ or without."""
    return uid.replace("-", "").replace("_", "").lower()


def dashed(uid: str) -> str:
    """Return 32 hex digits as the API server writes a uid."""
    return "-".join((uid[:8], uid[8:12], uid[12:16], uid[16:20], uid[20:]))


def word(text: str) -> str:
    """Return a name that a program chose as one harmless word; "unknown" for none (wchan is 0 where it is hidden)."""
    plain = re.sub(r"[^A-Za-z0-9_.:/@+()-]+", "_", text.strip())[:64]
    return plain if plain not in ("", "0") else "unknown"


def stack(proc: Path, thread: Thread) -> list[str]:
    """Return the innermost functions in which the kernel waits, [] where they may not be read."""
    lines = _maybe(proc / str(thread.pid) / "task" / str(thread.tid) / "stack").split("\n")
    return [re.sub(r"^\[<[0-9a-f]*>\] ", "", line)[:60] for line in lines if line][:8]


def _number(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,20}", text):
        raise ValueError(text)
    return int(text)


def _text(path: Path) -> str:
    return path.read_bytes().decode(errors="replace")


def _maybe(path: Path) -> str:
    try:
        return _text(path)
    except OSError:
        return ""
