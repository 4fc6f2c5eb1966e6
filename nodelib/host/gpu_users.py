"""Who has GPUs open on a node that is drained, and how those let go that are ended without harm.

A drain leaves the Pods of DaemonSets and static Pods, and of these the device plugin and DCGM have every GPU open all
the time. Their processes are ended; the kubelet starts them again, at once the first time, later after 10, 20 and 40 s:
one of these gaps is wide enough. Nobody else is ended: no process of no Pod, none of this very Pod, none that runs
Pods, none of the driver's own, and none that only asks the driver and has not done so for long.
"""

import math
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from nodelib.contract.operation import Refused
from nodelib.host.cgroups import pod_of
from nodelib.host.device_users import User, named, users
from nodelib.host.proc_files import text_of
from nodelib.host.processes import Process, read, require_own
from nodelib.host.terminate import end

TRIES = 5
ASKED = 90.0  # seconds after SIGTERM: a process that is killed in a call of the driver may wedge a GPU
KILLED = 10.0  # seconds after SIGKILL
# As /proc has them: a name is cut after 15 characters.
DRIVERS = ("nvidia-persiste", "nv-fabricmanage", "nvidia-imex")
# Ended in a call of the driver they may wedge a GPU. They end by themselves within the grace of collect-diagnostics,
# also those of a Pod that is being deleted; one that is older asks again and again (dmon, pmon, -l).
GRACE = 110.0  # seconds
ASKERS = ("nvidia-smi", "nvidia-debugdum", "nvidia-bug-repo")
SPARED = (*DRIVERS, "systemd", "kubelet", "containerd", "containerd-shim", "dockerd", "crio", "conmon", "runc", "crun")

T = TypeVar("T")
Counts = Callable[[User], bool]  # whether it matters that this process holds this device


def is_drained() -> bool:
    """Whether the template says that only Pods are left that a drain leaves."""
    return os.environ.get("DRAINED") == "true"


def may_end(process: User | Process, own: str, age: float) -> bool:
    """Whether a process may be ended on a drained node; `own` is the Pod that asks, "" where it cannot be seen."""
    spared = process.name in SPARED or is_answered(process, age)
    return bool(process.pod) and process.pod != own and not spared


def is_answered(process: User | Process, age: float) -> bool:
    """Whether it only asks the driver, and ends by itself soon; `age` in seconds."""
    return process.name in ASKERS and age < GRACE


class Clients(NamedTuple):
    """Who holds GPUs. `drained`: processes of Pods may be ended; `seconds` that others are given to let go."""

    proc: Path
    drained: bool
    seconds: float

    def holders(self, counts: Counts) -> tuple[list[User], list[User]]:
        """Return who may be ended, and who else holds a GPU. Raises Refused when that cannot be determined."""
        counted = [user for user in users(self.proc) if counts(user)]
        ours = [user for user in counted if self.is_ours(user)]
        return ours, [user for user in counted if user not in ours]

    def is_ours(self, process: User | Process | None) -> bool:
        """Whether this process may be ended here."""
        if not self.drained or process is None:
            return False
        return may_end(process, own_pod(self.proc), age(self.proc, process.pid))

    def asking(self, counts: Counts) -> list[User]:
        """Who only asks the driver, and is ended only where it goes on to. Raises Refused as `holders` does."""
        others = self.holders(counts)[1] if self.drained else []
        asking = [user for user in others if is_answered(user, age(self.proc, user.pid))]
        return [user for user in asking if may_end(user, own_pod(self.proc), math.inf)]

    def let_answer(self, counts: Counts) -> None:
        """Wait for those: each of them has let go then, or is old enough to be ended."""
        still(lambda: self.asking(counts), GRACE)

    def turns(self, counts: Counts) -> Iterator[str]:
        """Yield "" as soon as nobody holds a GPU, or in words who does: TRIES times, over `seconds` and what ends take.

        Processes of Pods are ended for it, unless somebody else is in the way. Raises Refused.
        """
        for turn in range(TRIES):
            if turn:
                time.sleep(self.seconds / (TRIES - 1))
            yield self.free(counts)

    def free(self, counts: Counts) -> str:
        """End who may be ended, unless somebody else holds a GPU; return who holds one then, in words."""
        self.let_answer(counts)
        ours, others = self.holders(counts)
        if others or not ours:
            return named(others)
        require_own(self.proc)
        print(f"ending what holds a GPU: {named(ours)}", flush=True)
        asked = end(self.proc, lambda: self.processes(counts), signal.SIGTERM, ASKED)
        # Whoever came since is asked in the next turn.
        end(self.proc, lambda: [left for left in self.processes(counts) if left in asked], signal.SIGKILL, KILLED)
        ours, others = self.holders(counts)
        return named(sorted([*ours, *others]))

    def processes(self, counts: Counts) -> list[Process]:
        """Return who may be ended, as a signal needs to know them."""
        held = {(user.pid, user.pod) for user in self.holders(counts)[0]}
        known = [(pod, read(self.proc, pid)) for pid, pod in held]
        return sorted(process for pod, process in known if process and process.pod == pod)


def age(proc: Path, pid: int) -> float:
    """Since how many seconds a process runs; endless where nobody can tell."""
    process = read(proc, pid)
    try:
        up = float(text_of(proc / "uptime").split(" ", 1)[0])
    except (OSError, ValueError):
        return math.inf
    return up - process.start / os.sysconf("SC_CLK_TCK") if process else math.inf


def own_pod(proc: Path) -> str:
    """The Pod that this program runs in, "" where its cgroup namespace hides that, or by hand. Raises Refused."""
    try:
        return pod_of((proc / "self/cgroup").read_text())
    except OSError as error:
        raise Refused(f"cannot determine which Pod this is, so no process is ended: {error}") from error


def still(look: Callable[[], Sequence[T]], seconds: float) -> Sequence[T]:
    """Return what `look` finds: nothing, as soon as it finds nothing, or what it finds after `seconds`.

    Whoever asks NVML has the GPUs open for a second, and a detector asks every minute.
    """
    until = time.monotonic() + seconds
    while (left := look()) and time.monotonic() < until:
        time.sleep(min(1.0, seconds / 10))
    return left
