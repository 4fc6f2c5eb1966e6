"""A node's /proc made of files: mounts of process 1, and processes with threads and cgroups; and a run over it."""

import os
import sys
from collections.abc import Iterable
from pathlib import Path

from tests.detectors.node import DETECTORS, Ran, run_detector

CONTAINER = "0123456789abcdef" * 4
UID = "8f3c2a10-1111-2222-3333-444455556666"
STATS = "\tRPC iostats version: 1.1  p/v: 100003/4 (nfs)\n\txprt:\ttcp 0 1 1 0 0 10 10 0 10 0\n\tper-op statistics\n"


def pod_cgroup(uid: str = UID) -> str:
    """Return the cgroup file of a container of the Pod, as containerd with systemd writes it."""
    name = f"kubepods-burstable-pod{uid.replace('-', '_')}.slice"
    return f"0::/kubepods.slice/kubepods-burstable.slice/{name}/cri-containerd-{CONTAINER}.scope\n"


def stat_line(pid: int, comm: str, state: str, start: int = 500, flags: int = 0x400000, parent: int = 1) -> str:
    """Return a stat file."""
    rest = f"0 0 0 0 0 0 0 0 20 0 2 0 {start} 0 0 {' '.join(['0'] * 28)}"
    return f"{pid} ({comm}) {state} {parent} 1 1 0 -1 {flags} {rest}\n"


def status_text(state: str, killed: bool, switches: int = 7) -> str:
    """Return the lines of a status file that matter, among some that do not."""
    mask = "0000000000000100" if killed else "0000000000000000"
    return (
        f"Name:\tx\nState:\t{state} (x)\nSigPnd:\t{'0' * 16}\nShdPnd:\t{mask}\nSigBlk:\t{'0' * 16}\n"
        f"voluntary_ctxt_switches:\t{switches}\nnonvoluntary_ctxt_switches:\t1\n"
    )


class ProcTree:
    """The files of one node; every path is below `root`."""

    def __init__(self, root: Path):
        self.root, self.proc, self.state = root, root / "proc", root / "state"
        self.write("proc/sys/kernel/random/boot_id", "one\n")
        self.mountinfo = ["22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw"]
        self.mountstats: dict[str, str] = {}
        self.process(1, "systemd", "S", "0::/init.scope\n")
        self.write_mounts()

    def write(self, path: str, text: str) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def write_mounts(self) -> None:
        self.write("proc/1/mountinfo", "\n".join(self.mountinfo) + "\n")
        blocks = "device /dev/sda1 mounted on / with fstype ext4\n" + "".join(self.mountstats.values())
        self.write("proc/1/mountstats", blocks)

    def mount(self, point: str, source: str, options: str, device: str = "0:52", kind: str = "nfs4") -> Path:
        """Mount NFS; return the folder that stands for it."""
        number = 100 + len(self.mountinfo)
        self.mountinfo.append(f"{number} 22 {device} / {point} rw,relatime shared:9 - {kind} {source} rw,{options}")
        self.count(point, source, done=5)
        folder = self.proc / "1/root" / point.lstrip("/")
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def count(self, point: str, source: str, done: int, errors: int = 0, timeouts: int = 0) -> None:
        """Say how the mount's operations fare: `done` ended well, `errors` did not, each with 100 bytes or none."""
        row = f"{done + errors} {done + errors} {timeouts} 0 {done * 100} 0 0 0 {errors}"
        self.mountstats[point] = (
            f"device {source} mounted on {point} with fstype nfs4 statvers=1.1\n\topts:\trw\n{STATS}"
            f"\t        NULL: 1 1 0 44 24 0 0 0 0\n\t      STATFS: {row}\n\n"
        )
        self.write_mounts()

    def process(self, pid: int, comm: str, state: str, cgroup: str, *, start: int = 500) -> None:
        """Add a process whose leader is in `state`, with one thread that is it."""
        self.write(f"proc/{pid}/stat", stat_line(pid, comm, state, start))
        self.thread(pid, pid, comm, state, cgroup, start=start)

    def thread(
        self, pid: int, tid: int, comm: str, state: str, cgroup: str, *, start: int = 500, killed: bool = False,
        switches: int = 7, wchan: str = "0",
    ) -> None:  # fmt: skip
        """Add or change a thread."""
        folder = f"proc/{pid}/task/{tid}"
        self.write(f"{folder}/stat", stat_line(tid, comm, state, start))
        self.write(f"{folder}/status", status_text(state, killed, switches))
        self.write(f"{folder}/cgroup", cgroup)
        self.write(f"{folder}/wchan", wchan)

    def stuck(self, pid: int, uid: str = UID, wchan: str = "nfs_wait_bit_killable", **more) -> None:
        """Add a process that was killed: its leader is a zombie, its second thread does not end."""
        self.process(pid, "python3", "Z", pod_cgroup(uid))
        self.thread(pid, pid + 1, "pt_main_thread", "D", pod_cgroup(uid), killed=True, wchan=wchan, **more)

    def command(self, program: str, *options: str) -> list[str]:
        return [sys.executable, "-I", "-S", "-B", str(DETECTORS / f"{program}.py"), *self.arguments(*options)]

    def arguments(self, *options: str) -> list[str]:
        return [*(f"--{name}={self.root / name}" for name in ("proc", "sys", "state")), *options]

    def run(self, program: str, *options: str, env: Iterable[tuple[str, str]] = (), forked: bool = True) -> Ran:
        """Run a detector as node-problem-detector would; not `forked`: as a process, as are its children."""
        environment = {"PATH": os.environ["PATH"], **dict(env)}
        return run_detector(program, *self.arguments(*options), env=environment, forked=forked)
