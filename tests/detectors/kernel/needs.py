"""What a test of real kernel things needs of the machine, and the exact reason for which it is skipped elsewhere."""

import os
import shutil
import sys
from pathlib import Path

import pytest


def _program(name: str) -> str:
    return "" if shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin") else f"no {name}"


def _root() -> str:
    if sys.platform != "linux":
        return "needs Linux"
    if os.geteuid():
        return "needs root: mounts file systems, makes cgroups"
    fields = [line.split() for line in Path("/proc/self/status").read_text().splitlines()]
    powers = next(int(words[1], 16) for words in fields if words[:1] == ["CapEff:"])
    return "" if powers >> 21 & 1 else "needs CAP_SYS_ADMIN, which this container's root lacks"


def _device(path: str, what: str) -> str:
    try:
        os.close(os.open(path, os.O_RDWR))
    except OSError as error:
        return f"no {what}: {path}: {error.strerror}"
    return ""


def _disk() -> str:
    return _program("mkfs.ext4") or _program("mount") or _device("/dev/loop-control", "loop devices")


CHECKS = {"disk": _disk, "fuse": lambda: _device("/dev/fuse", "FUSE")}


def lacks(*needs: str) -> str:
    """Return why a test that needs these (keys of CHECKS; root always) cannot run here, "" where it can."""
    return _root() or next(filter(None, (CHECKS[need]() for need in needs)), "")


def needs(*names: str) -> list[pytest.MarkDecorator]:
    """Return the marks of tests that need these, for `pytestmark`."""
    why = lacks(*names)
    return [pytest.mark.cluster, pytest.mark.skipif(bool(why), reason=why)]
