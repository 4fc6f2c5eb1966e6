"""Versions of the NVIDIA driver: of the kernel module that is loaded, and of the libraries on disk. Judges nothing."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

CONTAINER = "run/nvidia/driver"  # where a driver in a container shows its own root to the node
FOLDERS = (
    *("usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib64", "usr/lib", "lib64", "usr/lib/nvidia"),
    *("usr/local/nvidia/lib64", "home/kubernetes/bin/nvidia/lib64", "opt/nvidia/lib64", "usr/lib/wsl/lib"),
)
VERSION = r"[0-9]{3,4}\.[0-9]{1,4}(?:\.[0-9]{1,4})?"
MODULE = re.compile(rf"^NVRM version:.*?\s({VERSION})(?:\s|$)")
LIBRARY = re.compile(rf"^libnvidia-ml\.so\.({VERSION})$")


class Module(NamedTuple):
    """What /proc says of the loaded module. `version`: "" for none; `why` it cannot be told, else ""."""

    version: str = ""
    text: str = ""
    why: str = ""


def module(proc: Path) -> Module:
    """Return the version of the kernel module that is loaded."""
    try:
        lines = (proc / "driver/nvidia/version").read_bytes()[:4096].decode("ascii", "replace").splitlines()
    except FileNotFoundError:
        return Module() if (proc / "sys").exists() else Module(why=f"{proc} is no /proc")
    except OSError as error:
        return Module(why=error.strerror or type(error).__name__)
    text = next((line for line in lines if line.startswith("NVRM")), "")
    found = MODULE.match(text)
    return Module(found[1], text[:200]) if found else Module(text=text[:200], why="it names none")


def libraries(roots: Iterable[Path]) -> dict[str, str]:
    """Return the version of each library that libnvidia-ml.so.1 may be, by path, of the first root that has any."""
    for root in roots:
        folders = (root / folder for folder in FOLDERS)
        found = {str(folder / name): version for folder in folders for name, version in _versions(folder).items()}
        if found:
            return found
    return {}


def _versions(folder: Path) -> dict[str, str]:
    """Return what libnvidia-ml.so.1 is; where it is a file and no link (in a container), what lies beside it."""
    link = folder / "libnvidia-ml.so.1"
    try:
        if link.is_symlink():
            names = [link.readlink().name]
        else:
            names = [path.name for path in folder.iterdir()] if link.exists() else []
    except OSError:
        return {}
    return {name: found[1] for name in names if (found := LIBRARY.match(name))}
