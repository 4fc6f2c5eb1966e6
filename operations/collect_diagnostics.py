#!/usr/bin/env -S python3 -I -S -B
"""Collect what is known of an unhealthy node before anything disturbs it, since a reboot destroys it. Changes nothing.

The answer is one JSON object of at most 4096 bytes: boot id and kernel, the machine's model and serial numbers, what
the detectors kept as evidence, GPUs by PCI address with UUID, serial number, part number and InfoROM version, and the
kernel's last lines about GPUs, PCIe, memory, disks and network. When it does not fit, the oldest kernel lines go
first, then GPUs; "truncated" says so. What could not be read is named under "unreadable".

With the variable BUNDLE everything is kept whole, too: the kernel's log, the files of the detectors, a dump of NVML,
`nvidia-smi -q`, the report of nvidia-bug-report.sh where the node has it (in safe mode, at most a minute; 100 seconds
where NVML does not tell whether somebody computes), and the event log of the BMC (SEL) where the node has ipmitool.
BUNDLE is a folder of the node, in which the newest five are kept, or a URL to PUT to, in which {node} and {name} are
replaced; "bundle" in the answer says where it is, and "bundleSha256" what it is. With the variable BUNDLE_URL, a URL
that is signed for one object and a few minutes, it is sent there, and kept in BUNDLE only where that did not go well.

What asks the driver may wedge a GPU when it is killed in the middle of a call: it has 100 seconds, more than a driver
waits for a GPU's own processor, or is not begun; who stops this program waits until it has ended, as long as the Pod's
grace allows. The report is only made where nobody computes. Where NVML does not
answer, the driver is not asked again. Nothing is kept on the node when a detector has seen a fault of its disks, or on
a disk that is nearly full.

PARAMETERS: none. It ends with exit 0 whatever could not be read; exit 1 is an error of its own.

Nothing here can hang it for long: NVML, the node's programs and the bundle's target are asked by children with a
deadline, the kernel log is read without blocking.
"""

import os.path
import sys

sys.path.append(os.path.realpath(f"{__file__}/../.."))  # where nodelib/ is; python3 -I leaves it out

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from nodelib.contract.operation import MESSAGE_BYTES, Environment, finishing, main, say
from nodelib.host.bundle import URLS, deliver, pack, seconds_for
from nodelib.host.commands import GRACE, KILLING, run
from nodelib.host.driver import smi_of_node
from nodelib.host.machine import read_machine
from nodelib.kernel.kernel_log import read_lines, telling
from nodelib.nvml.gpu_list import NVML_SECONDS, ask_nvml, in_use, merge, read_driver, read_pci

SMI_SECONDS, REPORT_SECONDS, SEL_SECONDS, SHORT_SECONDS = 100.0, 60.0, 15.0, 2.0
ENDING = GRACE + KILLING  # seconds until a program that is told to end has, or is left behind
AROUND_REPORT = 2 * SHORT_SECONDS + 3 * ENDING  # finding the script and deleting what it wrote
ALL_SECONDS = 170.0  # to read and to bring it away; the template gives three minutes
NO_TIME = "no time is left for it"
REPORT = "nvidia-bug-report.sh"
OF_DISKS = ("disk_fault", "filesystem_damage", "filesystem_error", "volume_error")  # detectors
FILES = ("proc/1/mountinfo", "proc/modules", "proc/meminfo", "proc/cmdline", "proc/driver/nvidia/version")


class Found:
    """What was read so far, and why some of it was not."""

    def __init__(self) -> None:
        self.unreadable: dict[str, str] = {}

    def part(self, name: str, read: Callable[[], Any], otherwise: Any) -> Any:
        """Read one part; one that cannot be read is named and hides no other."""
        try:
            return read()
        except (OSError, ValueError) as error:
            self.unreadable[name] = f"{type(error).__name__}: {error}"[:120]
            return otherwise


def collect(environment: Environment, dry_run: bool) -> str:
    """Return the JSON text; reading only, a dry run differs in that nothing is kept and no message is left."""
    targets = [target for name in ("BUNDLE_URL", "BUNDLE") if (target := os.environ.get(name, ""))]
    root, found, until = Path(environment.host_root), Found(), time.monotonic() + reading_seconds(targets)
    fixed: dict[str, Any] = {
        "bootID": found.part("bootID", lambda: (root / "proc/sys/kernel/random/boot_id").read_text().strip(), None),
        "kernel": found.part("kernel", lambda: (root / "proc/sys/kernel/osrelease").read_text().strip(), None),
        "machine": read_machine(root),
    }
    kept = read_kept(root / "run/remediator/detectors/evidence", found)
    known = merge(found.part("pci", lambda: read_pci(root), []), found.part("driver", lambda: read_driver(root), []))
    with finishing():
        listed, answered = found.part("nvml", ask_nvml, ([], True))
    if not answered:
        found.unreadable["nvml"] = f"it has not answered within {NVML_SECONDS:g} s"
    whole = merge(known, listed)
    gpus = [{key: value for key, value in gpu.items() if key != "more"} for gpu in whole]
    log = found.part("kernelLines", lambda: read_lines(root), [])
    entries = [("detectors", kept), ("gpus", gpus), ("kernelLines", telling(log))]

    def answer() -> str:
        return fit({**fixed, "unreadable": found.unreadable}, entries)

    if targets and dry_run:
        fixed["bundle"] = f"would be kept or sent: {unsigned(targets[0])}"
    elif targets:
        say(environment.termination_log, answer())  # should it be stopped in the rest, or killed
        parts = {"nvml.json": encode(whole), "kernel.log": "\n".join(log), "found.json": encode(dict(entries))}
        parts |= driver_reports(root, environment.attempt, in_use(listed), until) if answered else {}
        parts |= event_log(until)
        packed = pack(whole_parts(root, parts), time.time())
        fixed |= {"bundle": place(environment, targets, packed, kept, found)}
        fixed |= {"bundleSha256": hashlib.sha256(packed).hexdigest()} if fixed["bundle"] else {}
    return answer()


def reading_seconds(targets: Iterable[str]) -> float:
    """Return how long the node may be read, so that each target can be given the bundle after that."""
    return ALL_SECONDS - sum(map(seconds_for, targets))


def whole_parts(root: Path, parts: Mapping[str, str | bytes]) -> dict[str, bytes]:
    """Return the parts with what is too long for the answer besides."""
    whole = {name: part.encode() if isinstance(part, str) else part for name, part in parts.items()}
    for path in [*(root / name for name in FILES), *(root / "run/remediator/detectors").rglob("*.json")]:
        try:
            whole[str(path.relative_to(root))] = path.read_bytes()
        except OSError as error:
            whole[f"{path.relative_to(root)}.unreadable"] = str(error).encode()
    return whole


def place(environment: Environment, targets: list[str], packed: bytes, kept: list[Any], found: Found) -> str | None:
    """Keep or send the bundle and return where it is: at the first target that takes it, None where none does."""
    for name, target in zip(("bundle", "bundle, then on the node"), targets, strict=False):
        where = found.part(name, lambda target=target: keep(environment, target, packed, kept), None)
        if where:
            return str(where)
    return None


def keep(environment: Environment, target: str, packed: bytes, kept: list[Any]) -> str:
    """Keep or send the bundle there and return where it is. Raises OSError."""
    require_sound_disk(target, kept)
    root = Path(environment.host_root)
    return deliver(packed, target, environment.attempt or "by-hand", environment.node, root)


def unsigned(target: str) -> str:
    """Return a target without what signs it."""
    return target.partition("?")[0]


def require_sound_disk(target: str, kept: list[Any]) -> None:
    """Raise OSError where the bundle would go to a disk of a node whose disks have a fault."""
    names = {str(evidence.get("detector")) for evidence in kept if isinstance(evidence, dict)}
    faults = sorted(names.intersection(OF_DISKS))
    if faults and not target.startswith(URLS):
        raise OSError(f"not kept on this node, whose disk has a fault ({', '.join(faults)}): set BUNDLE to a URL")


def driver_reports(root: Path, attempt: str, used: bool | None, until: float) -> dict[str, str | bytes]:
    """Return what the driver's own programs say; of a GPU that somebody computes on not what takes long."""
    if until - time.monotonic() < SMI_SECONDS + ENDING:
        return {"nvidia-smi.txt": f"not asked: {NO_TIME}"}
    with finishing():
        smi = run((*smi_of_node(root / "proc"), "-q"), SMI_SECONDS)
    reports: dict[str, str | bytes] = {"nvidia-smi.txt": smi.text}
    if used:
        return reports | {"nvidia-bug-report.txt": "not made: somebody computes on a GPU"}
    patience = REPORT_SECONDS if used is False else SMI_SECONDS  # who may compute on a GPU has its driver left in peace
    if smi.code is None:
        return reports | {"nvidia-bug-report.txt": f"not made: nvidia-smi did not end within {SMI_SECONDS:g} s"}
    if until - time.monotonic() < patience + AROUND_REPORT:
        return reports | {"nvidia-bug-report.txt": f"not made: {NO_TIME}"}
    return reports | bug_report(root, attempt, patience)


def bug_report(root: Path, attempt: str, seconds: float) -> dict[str, str | bytes]:
    """Return the report of the driver's own script; {} where the node does not have it or it does not end."""
    if run(("sh", "-c", f"command -v {REPORT}"), SHORT_SECONDS).code != 0:
        return {}
    path = f"/run/remediator/{attempt or 'by-hand'}.report.gz"
    try:
        with finishing():
            result = run((REPORT, "--safe-mode", "--output-file", path), seconds)
        return {"nvidia-bug-report.log.gz": (root / path.lstrip("/")).read_bytes()}
    except OSError:
        return {"nvidia-bug-report.txt": result.text}
    finally:
        run(("rm", "-f", path), SHORT_SECONDS)


def event_log(until: float) -> dict[str, str | bytes]:
    """Return what the BMC wrote down (SEL), as the node's own ipmitool tells it: it needs no password there."""
    if until - time.monotonic() < SEL_SECONDS + ENDING:
        return {"sel.txt": f"not read: {NO_TIME}"}
    told = run(("ipmitool", "sel", "elist"), SEL_SECONDS)
    return {"sel.txt": told.text if told.code == 0 else f"not read: {told.last}"}


def read_kept(folder: Path, found: Found) -> list[Any]:
    """Return what the detectors kept at the first sight of a fault, the newest last: it outranks the others."""
    files = sorted(folder.glob("*.json"))  # none at all: no detector sees a fault
    kept = [one for path in files if (one := found.part(path.name, lambda path=path: read_evidence(path), None))]
    return sorted(kept, key=lambda one: str(one.get("first_seen", "")) if isinstance(one, dict) else "")


def read_evidence(path: Path) -> Any:
    """Return what one detector kept. Raises ValueError when it is no JSON, or too much."""
    with path.open("rb") as file:
        return json.loads(file.read(MESSAGE_BYTES))


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


def encode(value: Any) -> str:
    """Return compact ASCII JSON: one character is one byte."""
    return json.dumps(value, separators=(",", ":"))


if __name__ == "__main__":
    main(collect, __doc__, MESSAGE_BYTES)
