"""Who holds a device of the NVIDIA driver open, read from the links in /proc/PID/fd.

A link is only read, never followed, and no memory map is looked at. Still it is done by a child (this very file, run
as a program) that is left behind when it does not end: a stuck process must not take the one that looks with it.
"""

import contextlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.append(os.path.realpath(f"{__file__}/../../.."))  # where nodelib/ is: this file is a program, too

from nodelib.contract.operation import Refused
from nodelib.host.cgroups import pod_of
from nodelib.host.commands import ends_by
from nodelib.host.proc_files import living, pid_folders, read_cgroup

LOOK_SECONDS = 60.0
MINOR = re.compile(r"^Device Minor:\s*(\d+)\s*$", re.MULTILINE)
DEVICE = re.compile(r"/dev/nvidia[^/]*(?:/.*)?")
SERVICE = re.compile(r"/system\.slice/(?:[^/]+/)*([^/]+)\.service(?:/|$)")


class User(NamedTuple):
    """A process that has `device` open; `pod` (32 hex digits) and `service` are "" where it belongs to none."""

    pid: int
    name: str
    device: str
    pod: str
    service: str


def users(proc: Path) -> list[User]:
    """Return who holds a device of the driver. Raises Refused when that cannot be determined in time."""
    output = os.memfd_create("output")
    try:
        child = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__, str(proc)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            start_new_session=True,
            cwd="/",
        )
        ended = ends_by(child, time.monotonic() + LOOK_SECONDS)
        lines = [json.loads(line) for line in os.pread(output, 1 << 22, 0).splitlines()]
    finally:
        os.close(output)
    last = next((line["at"] for line in reversed(lines) if "at" in line), 0)
    if not ended:
        child.kill()
        raise Refused(f"cannot determine who holds the GPUs: looking at pid {last} takes more than {LOOK_SECONDS:g} s")
    if child.returncode:
        raise Refused(f"cannot determine who holds the GPUs: looking ended with {child.returncode} at pid {last}")
    return sorted(User(**line) for line in lines if "device" in line)


def named(holders: Sequence[User]) -> str:
    """Who they are and what they hold, in words."""
    who = dict.fromkeys((user.pid, user.name, user.pod) for user in holders)
    return "; ".join(
        f"{name} (pid {pid}{f' of Pod {pod}' if pod else ''}) holds "
        f"{', '.join(user.device for user in holders if user.pid == pid)}"
        for pid, name, pod in who
    )


def files_of(proc: Path, addresses: Iterable[str]) -> re.Pattern[str]:
    """Match the device files of the GPUs at these addresses (0000:1c:00.0); of any, where the driver names none."""
    folder = proc / "driver/nvidia/gpus"
    try:
        matches = [
            MINOR.search((folder / address / "information").read_text(errors="replace")) for address in addresses
        ]
    except OSError:
        matches = [None]
    minors = "|".join(match[1] for match in matches if match) if all(matches) else r"\d+"
    return re.compile(f"/dev/nvidia(?:{minors})")


def _look(proc: Path) -> Iterator[dict[str, object]]:
    for folder in sorted(pid_folders(proc)):
        yield {"at": int(folder.name)}
        try:
            for device in _devices(folder):
                group = read_cgroup(living(folder) or folder)
                service = SERVICE.search(group)
                yield {
                    "pid": int(folder.name),
                    "name": (folder / "comm").read_text(errors="replace").strip(),
                    "device": device,
                    "pod": pod_of(group),
                    "service": service[1] if service else "",
                }
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended meanwhile


def _devices(folder: Path) -> list[str]:
    """What one process has open; where its leader has ended, what its other threads have."""
    targets = _targets(folder / "fd")
    if not targets:
        targets = {target for task in (folder / "task").iterdir() for target in _targets(task / "fd")}
    return sorted(target for target in targets if DEVICE.fullmatch(target))


def _targets(folder: Path) -> set[str]:
    targets = set()
    with contextlib.suppress(FileNotFoundError, ProcessLookupError), os.scandir(folder) as links:
        for link in links:
            with contextlib.suppress(FileNotFoundError):  # closed meanwhile
                targets.add(str(Path(link.path).readlink()))
    return targets


if __name__ == "__main__":
    for user in _look(Path(sys.argv[1])):
        print(json.dumps(user), flush=True)
