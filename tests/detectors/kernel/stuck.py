"""Processes that wait for a frozen disk and cannot be killed, in cgroups named like those of Pods."""

import os
import random
import signal
import string
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from nodelib.host.proc_files import is_killed, parse_stat
from tests.detectors.proc_tree import CONTAINER
from tests.kubelet.cgroups import Cgroup

SECONDS = 20.0
COMM = Path(sys.executable).name[:15]  # what the kernel calls a victim
# Joins a cgroup (argv 1, "" for none), says so, because that takes a moment in state D, too, and then writes to a file
# (argv 2): a thread of its own (argv 3) or its first one.
VICTIM = """
import sys, threading
if sys.argv[1]:
    with open(sys.argv[1], "w") as own:
        own.write("0")
print("joined", flush=True)
def write():
    open(sys.argv[2], "w").close()
if sys.argv[3] == "thread":
    one = threading.Thread(target=write)
    one.start()
    one.join()
else:
    write()
"""


def wait_for(condition: Callable[[], object], seconds: float = SECONDS) -> None:
    """Wait until the condition is true; fails after `seconds`."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, f"not in {seconds:g} s"
        time.sleep(0.01)


def children_of(word: str) -> list[int]:
    """The pids of the processes that were started with this word as an argument and have not ended."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            found += [int(folder.name)] if word.encode() in words else []
    return found


def is_unkillable(pid: int) -> bool:
    """Whether SIGKILL has reached the first thread of a process and it waits in D all the same."""
    folder = Path(f"/proc/{pid}/task/{pid}")
    return parse_stat((folder / "stat").read_text()).state == "D" and is_killed((folder / "status").read_text())


class Victim:
    """A process that writes to `path`. `kind`: "leader" or "thread", who of its threads writes."""

    def __init__(self, path: Path, cgroup: Path | None = None, kind: str = "leader"):
        self.kind = kind
        join = str(cgroup / "cgroup.procs") if cgroup else ""
        command = [sys.executable, "-I", "-S", "-c", VICTIM, join, str(path), kind]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
        self.pid = self.process.pid

    def states(self) -> str:
        """The states of its leader and of its other threads."""
        tasks = sorted(Path(f"/proc/{self.pid}/task").iterdir(), key=lambda task: int(task.name))
        return "".join(parse_stat((task / "stat").read_text()).state for task in tasks)

    def waits(self) -> None:
        """Wait until it waits."""
        assert self.process.stdout.readline() == b"joined\n"
        wait_for(lambda: self.states() == {"leader": "D", "thread": "SD"}[self.kind])

    def kill(self) -> None:
        """Send SIGKILL once it waits, and wait until that has done all that it can do here."""
        self.waits()
        os.kill(self.pid, signal.SIGKILL)
        wait_for(lambda: self.states() == {"leader": "D", "thread": "ZD"}[self.kind] and self._doomed())

    def end(self) -> None:
        """Kill it and wait for its end, which comes when its disk is free again."""
        self.process.kill()
        self.process.wait(SECONDS)
        self.process.stdout.close()

    def _doomed(self) -> bool:
        task = max(int(task.name) for task in Path(f"/proc/{self.pid}/task").iterdir())
        return is_killed(Path(f"/proc/{self.pid}/task/{task}/status").read_text())


def hierarchies() -> dict[str, Path]:
    """The folders of one cgroup hierarchy of each version ("v1", "v2") in which this process may make cgroups."""
    found: dict[str, Path] = {}
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields, _, rest = line.partition(" - ")
        point, (kind, _, options) = Path(fields.split()[4]), rest.split(" ", 2)
        usable = kind == "cgroup2" or (kind == "cgroup" and "pids" in options.split(","))
        if usable and os.access(point, os.W_OK) and not os.statvfs(point).f_flag & os.ST_RDONLY:
            found.setdefault({"cgroup": "v1", "cgroup2": "v2"}[kind], point)
    return found


# Where a container's processes are, below the root of the hierarchy: as written by the two drivers of a kubelet.
FORMS: dict[str, Callable[[str], str]] = {
    "systemd": lambda uid: (
        f"kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{uid.replace('-', '_')}.slice/"
        f"cri-containerd-{CONTAINER}.scope"
    ),
    "cgroupfs": lambda uid: f"kubepods/burstable/pod{uid}/{CONTAINER}",
}


@contextmanager
def pod_cgroups(version: str, form: str, *uids: str) -> Iterator[list[Path]]:
    """A real cgroup for a container of each Pod, below one as a kubelet with a cgroup root of its own would make it.

    Whoever is in them must have ended by the end.
    """
    group = Cgroup(f"{''.join(random.choices(string.ascii_lowercase, k=8))}-kubepods")
    folders = [hierarchies()[version] / group.name / FORMS[form](uid) for uid in uids]
    group.make()
    try:
        for folder in folders:
            folder.mkdir(parents=True)
        yield folders
    finally:
        group.remove()
