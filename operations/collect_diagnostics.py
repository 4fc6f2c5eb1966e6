#!/usr/bin/env python3
"""Collect what is known of a sick node before anything disturbs it, because a reboot destroys it. Changes nothing.

The answer is one JSON object of at most 4096 bytes: boot id and kernel, what the detectors kept as evidence, GPUs by
PCI address with UUID and serial number, and the kernel's last lines about GPUs and PCIe. When it does not fit, the
oldest kernel lines go first, then GPUs; "truncated" says so. What could not be read is named under "unreadable".

Nothing here can hang it for long: NVML is asked by a child with a deadline, the kernel log is read without blocking.
"""

import sys

sys.path.insert(0, __file__.rpartition("/")[0] or ".")  # python -I leaves a program's own folder out

import json
import os
import re
import select
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from _operation import MESSAGE_BYTES, Environment, main

NVML_SECONDS = 20.0
LOG_SECONDS = 5.0
LOG_BYTES = 8 << 20  # no kernel keeps a larger buffer unless told to
TAIL_BYTES = 256 << 10
LINES, LINE_CHARS = 40, 240
TELLING = re.compile(r"NVRM|\bXid\b|\bSXid\b|AER|PCIe Bus Error|pciehp|DPC:|fallen off the bus|nvidia")
NVML_QUESTION = """
import json, pynvml as n
n.nvmlInit()
for i in range(n.nvmlDeviceGetCount()):
    gpu = {"index": i}
    try:
        h = n.nvmlDeviceGetHandleByIndex(i)
        gpu["address"] = n.nvmlDeviceGetPciInfo(h).busId
        gpu["uuid"] = n.nvmlDeviceGetUUID(h)
        gpu["serial"] = n.nvmlDeviceGetSerial(h)
    except n.NVMLError as error:
        gpu["error"] = error.value
    print(json.dumps({k: v.decode() if isinstance(v, bytes) else v for k, v in gpu.items()}), flush=True)
"""


def collect(environment: Environment, dry_run: bool) -> str:
    """Return the JSON text; reading only, a dry run differs in that nothing is left as termination message."""
    root, unreadable = Path(environment.host_root), {}

    def part(name: str, read: Callable[[], Any], otherwise: Any) -> Any:
        try:
            return read()
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            unreadable[name] = f"{type(error).__name__}: {error}"[:120]
            return otherwise

    fixed = {
        "bootID": part("bootID", lambda: (root / "proc/sys/kernel/random/boot_id").read_text().strip(), None),
        "kernel": part("kernel", lambda: (root / "proc/sys/kernel/osrelease").read_text().strip(), None),
    }
    folder = root / "run/remediator/detectors/evidence"
    files = sorted(folder.glob("*.json"))  # none at all: no detector sees a fault
    read = [part(path.name, lambda path=path: read_evidence(path), None) for path in files]
    evidence = [found for found in read if found]
    gpus = merge(part("pci", lambda: read_pci(root), []), part("driver", lambda: read_driver(root), []))
    gpus = merge(gpus, part("nvml", ask_nvml, []))
    lines = part("kernelLines", lambda: read_kernel_lines(root), [])
    return fit({**fixed, "unreadable": unreadable}, [("detectors", evidence), ("gpus", gpus), ("kernelLines", lines)])


def fit(fixed: dict[str, Any], parts: list[tuple[str, list[Any]]], limit: int = MESSAGE_BYTES) -> str:
    """Return `fixed` and as much of `parts` as fits in `limit` bytes of JSON.

    Earlier parts outrank later ones, and in each part later entries outrank earlier ones; entries keep their order.
    "truncated" is true when something was left out. `fixed` itself must fit.
    """
    found: dict[str, Any] = {**fixed, **{name: [] for name, _ in parts}, "truncated": False}  # the longer word
    for name, entries in parts:
        for entry in reversed(entries):
            found[name].insert(0, entry)
            if len(encode(found)) > limit:
                del found[name][0]
                found["truncated"] = True
                break
    return encode(found)


def encode(value: dict[str, Any]) -> str:
    """Return compact ASCII JSON: one character is one byte."""
    return json.dumps(value, separators=(",", ":"))


def read_evidence(path: Path) -> Any:
    """Return what a detector kept at the first sight of a fault. Raises ValueError when it is no JSON, or too much."""
    with path.open("rb") as file:
        return json.loads(file.read(MESSAGE_BYTES))


def read_pci(root: Path) -> list[dict[str, Any]]:
    """Return NVIDIA's display functions on PCI; "fallen" when the configuration space reads all ones."""
    found = []
    for folder in sorted((root / "sys/bus/pci/devices").iterdir()):
        vendor, kind = ((folder / name).read_text().strip() for name in ("vendor", "class"))
        if vendor == "0x10de" and kind.startswith(("0x0300", "0x0302")):
            fallen = (folder / "config").read_bytes()[:4] == b"\xff" * 4
            found.append({"address": folder.name, **({"fallen": True} if fallen else {})})
    return found


def read_driver(root: Path) -> list[dict[str, Any]]:
    """Return the GPUs that the kernel module lists, with their UUIDs."""
    found = []
    for folder in sorted((root / "proc/driver/nvidia/gpus").iterdir()):
        uuid = re.search(r"^GPU UUID:\s*(\S+)", (folder / "information").read_text(errors="replace"), re.MULTILINE)
        found.append({"address": folder.name.lower(), **({"uuid": uuid[1]} if uuid else {})})
    return found


def merge(known: list[dict[str, Any]], more: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return `known` with what `more` says of the same address; what has no address, or a new one, is added."""
    found = {gpu["address"]: dict(gpu) for gpu in known if "address" in gpu}
    others = [gpu for gpu in (*known, *more) if "address" not in gpu]
    for gpu in more:
        if "address" in gpu:
            found.setdefault(gpu["address"], {}).update(gpu)
    return [*found.values(), *others]


def ask_nvml() -> list[dict[str, Any]]:
    """Return what NVML says of each GPU. The child has a session of its own and is left behind when it does not answer.

    Raises OSError when it says nothing at all.
    """
    child = subprocess.Popen(
        [sys.executable, "-I", "-c", NVML_QUESTION],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert child.stdout is not None
    text = b"".join(read_until(child.stdout.fileno(), time.monotonic() + NVML_SECONDS))
    if child.poll() is None:
        child.terminate()
    gpus = [json.loads(line) for line in text.splitlines()]
    if not gpus:
        raise OSError("NVML listed no GPU")
    return [{**gpu, **({"address": short(gpu["address"])} if "address" in gpu else {})} for gpu in gpus]


def short(address: str) -> str:
    """Return NVML's spelling of a PCI address as sysfs has it."""
    domain, _, rest = address.lower().partition(":")
    return f"{int(domain, 16):04x}:{rest}"


def read_until(descriptor: int, until: float) -> Iterator[bytes]:
    """Yield what comes from a pipe until its end or the time is over."""
    while (left := until - time.monotonic()) > 0 and select.select([descriptor], [], [], left)[0]:
        chunk = os.read(descriptor, 65536)
        if not chunk:
            return
        yield chunk


def read_kernel_lines(root: Path) -> list[str]:
    """Return the kernel's last lines about GPUs and PCIe, oldest first, from its buffer or else from the log file."""
    try:
        records = b"".join(read_buffer(root / "dev/kmsg")).decode(errors="replace").splitlines()
        lines = [record.partition(";")[2] for record in records if not record.startswith(" ")]
    except OSError:
        with (root / "var/log/kern.log").open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - TAIL_BYTES))
            lines = log.read(TAIL_BYTES).decode(errors="replace").splitlines()
    return [" ".join(line.split())[:LINE_CHARS] for line in lines if TELLING.search(line)][-LINES:]


def read_buffer(path: Path) -> Iterator[bytes]:
    """Yield the records of /dev/kmsg, one a read, until there is no more."""
    descriptor, until, size = os.open(path, os.O_RDONLY | os.O_NONBLOCK), time.monotonic() + LOG_SECONDS, 0
    try:
        while time.monotonic() < until and size < LOG_BYTES:
            try:
                record = os.read(descriptor, 8192)
            except BlockingIOError:
                return
            except BrokenPipeError:
                continue  # the record was overwritten while we read; the next read goes on with the oldest
            if not record:
                return
            size += len(record)
            yield record
    finally:
        os.close(descriptor)


if __name__ == "__main__":
    main(collect, __doc__, MESSAGE_BYTES)
