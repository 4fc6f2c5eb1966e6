"""Whose a process on a GPU is, read from /proc: a Pod's, the node's own, or nobody's any more.

NVML tells pids of the pid namespace that it is asked from, so they are of use only in that of the node.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from nodelib.host.cgroups import parse_cgroup
from nodelib.host.proc_files import VANISHED, living_thread, read_cgroup, read_stat, word
from nodelib.nvml.results import NvmlGpu

HOST_PIDS = "pid:[4026531836]"  # of the kernel's first pid namespace, a number that is part of its ABI
COMM_CHARS = 15  # the kernel keeps no more of a process' name


class Owner(NamedTuple):
    """Who a pid is. `pod`: 32 hex digits, "" for none; `start`: in clock ticks since boot, -1 once it has ended."""

    pid: int
    start: int = -1
    comm: str = ""
    pod: str = ""
    container: str = ""
    cgroup: str = ""

    @property
    def ended(self) -> bool:
        """Whether there is no such process, or only what is left of it until its parent asks."""
        return self.start < 0

    @property
    def key(self) -> str:
        """Who it is: pids are used again, so the start is part of it."""
        return f"{self.pid}/{self.start}"


def pids(gpus: Iterable[NvmlGpu]) -> set[int]:
    """Return the pids that NVML tells of."""
    return {pid for gpu in gpus for pid in gpu.facts.get("processes", {}).get("pid", [])}


def read_owners(proc: Path, wanted: Iterable[int]) -> dict[int, Owner | None]:
    """Return who each pid is, None where its files make no sense or cannot be read."""
    return {pid: _read(proc, pid) for pid in wanted}


def _read(proc: Path, pid: int) -> Owner | None:
    folder = proc / str(pid)
    try:
        stat, thread = read_stat(folder), living_thread(folder)
        if thread is None:
            return Owner(pid)
        text = read_cgroup(thread)
        pod, container = parse_cgroup(text)
    except VANISHED:
        return Owner(pid) if (proc / "1/stat").exists() else None  # else other users' processes are hidden from us
    except (OSError, ValueError):
        return None
    return Owner(pid, stat.start, word(stat.comm), pod, container, text.strip().rpartition("\n")[2][:60])


def sees_host(proc: Path) -> bool:
    """Tell whether this process is in the pid namespace of the node."""
    try:
        return str((proc / "self/ns/pid").readlink()) == HOST_PIDS
    except OSError:
        return False


def is_allowed(owner: Owner, allowed: Iterable[str]) -> bool:
    """Tell whether a process of no Pod may use a GPU: by its name, as far as the kernel keeps it."""
    return owner.comm in {word(name[:COMM_CHARS]) for name in allowed}


def shares_memory(proc: Path, gpus: Iterable[NvmlGpu]) -> Mapping[str, bool]:
    """Return by uuid whether the kernel uses a GPU's memory as its own (Grace Hopper): nothing follows from its use."""
    return {gpu.uuid: _is_online(proc / "driver/nvidia/gpus" / gpu.address / "numa_status") for gpu in gpus}


def _is_online(path: Path) -> bool:
    try:
        fields = [line.partition(":") for line in path.read_bytes()[:4096].decode("ascii", "replace").splitlines()]
    except OSError:
        return False
    return any(name.strip().lower() == "status" and value.strip() == "online" for name, _, value in fields)
