"""The NVIDIA driver: versions of the module that is loaded and of the libraries on disk, and the way to its NVML.

Judges nothing.
"""

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from nodelib.host.root import within

CONTAINER = "run/nvidia/driver"  # where a driver in a container shows its own root to the node
INSTALLER = "run/nvidia/nvidia-driver.pid"  # written by its program as long as it runs
FOLDERS = (
    *("usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib64", "usr/lib", "lib64", "usr/lib/nvidia"),
    *("usr/local/nvidia/lib64", "home/kubernetes/bin/nvidia/lib64", "opt/nvidia/lib64", "usr/lib/wsl/lib"),
    *("usr/lib/nvidia/tesla", "usr/local/glibc/usr/lib"),  # Bottlerocket, Talos
)
# Where nvidia-smi is on hosts that keep it out of the way, and its libraries: Container-Optimized OS; Bottlerocket.
TOOLS = (
    ("home/kubernetes/bin/nvidia/bin/nvidia-smi", "home/kubernetes/bin/nvidia/lib64"),
    ("usr/libexec/nvidia/tesla/bin/nvidia-smi", "usr/lib/nvidia/tesla"),
)
NVML = "libnvidia-ml.so.1"
VERSION = r"[0-9]{3,4}\.[0-9]{1,4}(?:\.[0-9]{1,4})?"
MODULE = re.compile(rf"^NVRM version:.*?\s({VERSION})(?:\s|$)")
LIBRARY = re.compile(rf"^libnvidia-ml\.so\.({VERSION})$")


class Module(NamedTuple):
    """What /proc says of the loaded module. `version`: "" for none; `why` it is unknown, else ""."""

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
    match = MODULE.match(text)
    return Module(match[1], text[:200]) if match else Module(text=text[:200], why="it names none")


def release(version: str) -> tuple[int, ...]:
    """Return a version in an order, () for one that is not known.

    >>> release("580.82.07") > release("580.65"), release("")
    (True, ())
    """
    return tuple(int(part) for part in version.split(".")) if re.fullmatch(VERSION, version) else ()


def roots(proc: Path, named: Path | None) -> list[Path]:
    """Return where the driver's files may lie: in `named`, else as a container shows them, else in the node's root."""
    node = proc / "1/root"
    return [named] if named else [node / CONTAINER, node]


def contained(proc: Path) -> str:
    """Return the root of the driver's programs where they are in a container, by the node's own path; else ""."""
    inside = roots(proc, None)[0]
    try:
        return f"/{CONTAINER}" if _library(inside, NVML) else ""
    except OSError:
        return ""


def smi_of_node(proc: Path) -> tuple[str, ...]:
    """Return the command that is nvidia-smi in the node's own namespaces, where no container has the driver."""
    for program, libraries in TOOLS:
        try:
            if within(proc / "1/root", program).is_file():
                return ("env", f"LD_LIBRARY_PATH=/{libraries}", f"/{program}")
        except OSError:
            continue
    return ("nvidia-smi",)


def is_installing(proc: Path) -> bool:
    """Tell whether the program of a driver in a container runs, which loads its driver, or builds it first."""
    try:
        pid = within(proc / "1/root", INSTALLER).read_text()[:16].strip()
    except OSError:
        return False
    return pid.isascii() and pid.isdigit() and (proc / pid).exists()


def is_loaded(proc: Path) -> bool:
    """Tell whether a kernel module of the driver is loaded."""
    return (proc / "driver/nvidia/version").exists()


def libraries(roots: Iterable[Path]) -> dict[str, str]:
    """Return the version of each library that libnvidia-ml.so.1 may be, by path, of the first root that has any."""
    for root in roots:
        folders = (root / folder for folder in FOLDERS)
        versions = {str(folder / name): version for folder in folders for name, version in _versions(folder).items()}
        if versions:
            return versions
    return {}


def _versions(folder: Path) -> dict[str, str]:
    """Return what libnvidia-ml.so.1 is; where it is a file and no link (in a container), what lies beside it."""
    link = folder / NVML
    try:
        if link.is_symlink():
            names = [link.readlink().name]
        else:
            names = [path.name for path in folder.iterdir()] if link.exists() else []
    except OSError:
        return {}
    return {name: match[1] for name in names if (match := LIBRARY.match(name))}


def enter(roots: Sequence[Path], node: Path, more: Sequence[str] = ()) -> None:
    """Let NVML and its devices be those of the node: a container that was started before the driver has none.

    The library is loaded from the first of `roots` that has it, and `more` of the driver's libraries from the same
    root, so that whoever asks for them by their names is given these. Then paths begin in that root, or in `node` where
    that root has no devices. Nothing happens on the node itself, where a library or devices are not to be found, and
    where we may not.
    """
    try:
        root, library = next(pair for root in roots if root.exists() and (pair := (root, _library(root, NVML)))[1])
        place = next(one for one in (root, node) if (one / "dev/nvidiactl").exists() and not one.samefile("/"))
        import ctypes  # few programs need it

        # Before the step, so that what they need besides comes from where Python's comes from.
        for path in (library, *(_library(root, name) for name in more)):
            if path:
                ctypes.CDLL(str(path))
        os.chroot(place)
    except (OSError, StopIteration):
        return


def _library(root: Path, name: str) -> Path | None:
    paths = (within(root, f"{folder}/{name}") for folder in FOLDERS)
    return next((path for path in paths if path.is_file()), None)
