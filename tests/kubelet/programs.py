"""The programs that run containers: this machine's, else Debian's, unpacked into the cache and never installed."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from deploy.images.programs import cache

PACKAGES = ("containerd", "runc")
PROGRAMS = ("containerd", "containerd-shim-runc-v2", "ctr", "runc")
TOOLS = ("ip", "mount", "nsenter", "unshare")
FOLDERS = ("usr/bin", "usr/sbin")


class Missing(Exception):
    """A real node cannot run here; the message says why."""


def path() -> str:
    """A PATH on which all programs of a node are found. Raises Missing where one is not and cannot be fetched."""
    if sys.platform != "linux" or os.geteuid() != 0:
        raise Missing("a real node needs root on Linux")
    for tool in TOOLS:
        if not shutil.which(tool):
            raise Missing(f"a real node needs {tool} on PATH (iproute2, util-linux)")
    here = os.environ.get("PATH", os.defpath)
    if _complete(here):
        return here
    unpacked = fetched("containerd", PACKAGES)
    found = os.pathsep.join([*(str(unpacked / folder) for folder in FOLDERS), here])
    if not _complete(found):
        raise Missing(f"the packages {' and '.join(PACKAGES)} lack one of {', '.join(PROGRAMS)}")
    return found


def _complete(found: str) -> bool:
    return all(shutil.which(program, path=found) for program in PROGRAMS)


def fetched(name: str, packages: Sequence[str]) -> Path:
    """The folder of this name with the unpacked packages, which appears only when it is complete. Raises Missing."""
    folder = cache() / name
    if folder.is_dir():
        return folder
    if not shutil.which("apt-get"):
        raise Missing(f"{' and '.join(packages)} are not on PATH, and there is no apt-get to fetch them with")
    cache().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache(), prefix=".fetching-") as temporary:
        made = Path(temporary) / name
        made.mkdir()
        _run(Path(temporary), "apt-get", "download", *packages)
        for package in Path(temporary).glob("*.deb"):
            _run(made, "dpkg", "-x", str(package), str(made))
        if not folder.exists():
            made.rename(folder)
    return folder


def _run(where: Path, *command: str) -> None:
    done = subprocess.run(command, cwd=where, capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["it printed nothing"])[-1]
        raise Missing(f"`{' '.join(command[:3])}` failed (try `apt-get update`): {said}")
