"""What this machine shows of its GPUs, why a test can say nothing here, and programs run on it."""

import ctypes
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = "libnvidia-ml.so.1"
NVML_SECONDS, PROGRAM_SECONDS = 100.0, 200.0
HOST_PIDS = "pid:[4026531836]"  # of the kernel's first pid namespace, a number that is part of its ABI
LIST = """
import json, pynvml as n
n.nvmlInit()
text = lambda value: value.decode() if isinstance(value, bytes) else value
gpus = [n.nvmlDeviceGetHandleByIndex(i) for i in range(n.nvmlDeviceGetCount())]
print(json.dumps([[text(n.nvmlDeviceGetPciInfo(g).busId), text(n.nvmlDeviceGetUUID(g))] for g in gpus]))
"""


class Gpu(NamedTuple):
    """One GPU as NVML lists it: `bus_id` 00000000:3B:00.0."""

    bus_id: str
    uuid: str

    @property
    def address(self) -> str:
        """Its PCI address as sysfs has it."""
        return self.bus_id[-12:].lower()


class Ran(NamedTuple):
    code: int
    line: str
    err: str


def lacks() -> str:
    """Return why there is no GPU to test on, "" where there is one."""
    if sys.platform != "linux":
        return "needs Linux"
    try:
        ctypes.CDLL(LIBRARY)  # loading it asks the driver nothing
    except OSError:
        return f"no {LIBRARY}: the NVIDIA driver is not installed, or its libraries are not in this container"
    if not Path("/dev/nvidiactl").exists():
        return "no /dev/nvidiactl: the NVIDIA driver is not loaded, or this container was given no GPU"
    if importlib.util.find_spec("pynvml") is None:
        return "no module pynvml: pip install nvidia-ml-py"
    return ""


def list_gpus() -> list[Gpu]:
    """Return the GPUs that NVML lists. Raises RuntimeError where it does not answer."""
    command = [sys.executable, "-c", LIST]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=NVML_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"NVML has not answered within {NVML_SECONDS:g} s: this node is not healthy") from None
    if done.returncode:
        raise RuntimeError(f"NVML cannot be asked: {done.stderr.strip().rpartition(chr(10))[2]}")
    return [Gpu(*one) for one in json.loads(done.stdout)]


def _pci(_: list[Gpu]) -> str:
    return "" if _on_pci() else "no NVIDIA GPU under /sys/bus/pci/devices (a sandbox hides the PCI bus)"


def _on_pci() -> list[Path]:
    folders = Path("/sys/bus/pci/devices").glob("*")
    return [
        one for one in folders
        if (one / "vendor").read_text().strip() == "0x10de"
        and (one / "class").read_text().startswith(("0x0300", "0x0302"))
        and (one / "driver").exists() and (one / "driver").resolve().name == "nvidia"
    ]  # fmt: skip


def _driver(_: list[Gpu]) -> str:
    there = any(Path("/proc/driver/nvidia/gpus").glob("*/information"))
    return "" if there else "no /proc/driver/nvidia/gpus (a sandbox hides what the driver lists)"


def _whole(gpus: list[Gpu]) -> str:
    count = len(_on_pci())
    return "" if len(gpus) >= count else f"this container was given {len(gpus)} of the node's {count} GPUs"


def _pids(_: list[Gpu]) -> str:
    try:
        found = str(Path("/proc/self/ns/pid").readlink())
    except OSError as error:
        found = str(error)
    return "" if found == HOST_PIDS else "the node's processes are hidden: a pid namespace of its own (--pid=host)"


def _log(_: list[Gpu]) -> str:
    try:
        with Path("/dev/kmsg").open("rb", buffering=0) as log:
            os.set_blocking(log.fileno(), False)
            log.read(8192)
    except OSError as error:
        return (
            f"the kernel's log cannot be read: /dev/kmsg: {error.strerror} (root, CAP_SYSLOG, -v /dev/kmsg:/dev/kmsg)"
        )
    return ""


def _files(_: list[Gpu]) -> str:
    try:
        os.listdir("/proc/1/root")  # noqa: PTH208 - the link itself may be closed to us
    except OSError as error:
        return f"the node's files are hidden: /proc/1/root: {error.strerror} (--privileged)"
    return ""


def _root(_: list[Gpu]) -> str:
    return "" if os.geteuid() == 0 else "not root: the driver keeps some counters from other users"


VIEWS: Mapping[str, Callable[[list[Gpu]], str]] = {
    "PCI": _pci,
    "driver": _driver,
    "every GPU": _whole,
    "pids": _pids,
    "files": _files,
    "kernel log": _log,
    "root": _root,
}


def run(program: str, *options: str, **variables: str) -> Ran:
    """Run detectors/... or operations/... as it is run on a node, with these variables besides ours."""
    command = [sys.executable, "-I", "-S", "-B", str(ROOT / f"{program}.py"), *options]
    env = {**os.environ, **variables}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=PROGRAM_SECONDS, check=False)
    return Ran(done.returncode, done.stdout.strip(), done.stderr.strip())
