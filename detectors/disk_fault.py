#!/usr/bin/env -S python3 -I -S -B
"""Condition DiskFault: a disk of this node fails, has failed, or is gone.

Looked at are NVMe controllers on PCI and SCSI, SATA, SAS and virtual disks, and arrays of md. Faults:

  disk X has many I/O errors    5 in the kernel's log within an hour, or timeouts of its controller
  disk X was given up           the kernel could not reset it, or shows it as dead or offline; or as anything else than
                                live or running in two runs in a row
  disk X (SERIAL) is gone       it was there in this boot, and belongs to the node (SATA, SAS, NVMe that is no volume of
                                a cloud)
  N disks expected, M present   of disks that belong to the node (--expected-disks)
  SMART of X: ...               its own critical warning, but for temperature (NVMe; asked every 10 minutes)
  array X is degraded           md lacks a member and does not rebuild; while it rebuilds that is "cannot tell"
  array X is broken             it lacks so many that it has stopped

No fault: errors of loop devices, device mapper, RAM and network disks, which only stand for others; an order that a
disk does not know (discard); an array that is checked. Errors count until the next boot, until another disk (by its
serial number) has the name, or until the kernel finds the disk anew.

Remedy: DiskFault: a reboot cures few disks. Move the work off the node and have the disk replaced: model and serial
number are in <state>/evidence/disk_fault.json. Where a person has taken a disk out on purpose without a reboot: rm
<state>/disk_fault.json. "is degraded": mdadm --detail /dev/X, then mdadm --add a new member. "is broken": the data is
lost unless a member comes back: mdadm --assemble --force, else make it anew from a backup.
"Cannot tell": "SMART ... cannot be asked", "kernel log cannot be", "disks cannot be read": run node-problem-detector
privileged, with the node's /dev and /sys. "have not reported their SMART data since": a controller hangs: `nvme
smart-log` on the node, reboot where that hangs, too. "does not report its state", "is degraded and rebuilds", "(seen
once)": wait, and look again with --explain. Lines of the log overwritten unread: make its buffer larger (log_buf_len=).

Exit codes: 0 no fault, 1 fault, 2 cannot tell.
"""

import os.path
import sys

sys.path.append(os.path.realpath(f"{__file__}/../.."))  # where nodelib/ is; python3 -I leaves it out

from nodelib.state import slots

if __name__ == "__main__":
    slots.take()  # before all that costs memory

import argparse
import errno
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from nodelib.contract.detector import Detector, Findings, Run, conclude, explain, fields, main, parser
from nodelib.contract.memory import Scope
from nodelib.contract.npd import Verdict
from nodelib.host.attributes import text
from nodelib.host.disks import ARRAY_STATES, Array, Disk, present, read_arrays, read_disks, read_guests
from nodelib.host.smart import PROGRAM as SMART
from nodelib.host.smart import is_told, judge_page
from nodelib.kernel.disk_log import STORY, Blamed, blame, stands
from nodelib.kernel.kmsg import Line, Log, read_new

NAME = "disk_fault"
FINE = "no disk has a fault"
SMART_EVERY = 600.0  # seconds: who asks a disk more often slows it down
WELL = ("live", "running", "")
LOST = ("dead", "offline", "transport-offline")
REBUILDS = ("recover", "resync", "reshape")


class Memory(NamedTuple):
    """What outlasts a run. `disks`: name by serial number of disks that belong to the node; `ill`: in no good state.

    `guests`: names of what does not belong to the node: volumes, removable disks, disks on a network.
    """

    disks: Mapping[str, str] = {}
    guests: frozenset[str] = frozenset()
    blamed: Mapping[str, Blamed] = {}
    ill: frozenset[str] = frozenset()
    smart: Mapping[str, Any] = {}
    asked_at: float | None = None
    cursor: int | None = None


class DiskReadings(NamedTuple):
    """What one run saw. `disks`: None when they could not be read; `unreadable`: what could not be read and why.

    `smart_silent_since`: since when SMART is awaited, "" when it is not.
    """

    disks: tuple[Disk, ...] | None
    arrays: tuple[Array, ...]
    smart: Mapping[str, Any]
    smart_silent_since: str
    unreadable: tuple[str, ...]
    guests: frozenset[str] = frozenset()


def judge(seen: DiskReadings, memory: Memory, expected: int | None) -> tuple[Verdict, str]:
    """Turn what was seen, and what is remembered, into a verdict and its line."""
    verdicts = dict.fromkeys(seen.unreadable, Verdict.UNKNOWN)
    for disk in seen.disks or ():
        verdict, words = judge_state(disk, memory.ill)
        verdicts[f"disk {disk.name} {words}"] = verdict
    for array in seen.arrays:
        verdict, words = judge_array(array)
        verdicts[f"array {array.name} {words}"] = verdict
    verdicts |= {f"disk {name} {one.words}": Verdict.FAULT for name, one in memory.blamed.items() if one.words}
    verdicts |= judge_smart(seen)
    if seen.disks is not None:
        verdicts |= dict.fromkeys(missing(seen.disks, memory.disks, expected), Verdict.FAULT)
    return conclude(verdicts, FINE if seen.disks else "this node has no disk")


def missing(disks: tuple[Disk, ...], known: Mapping[str, str], expected: int | None) -> list[str]:
    """Return what is not there, of the disks that belong to the node; `known`: name by serial number."""
    here, built_in = present(disks), sum(disk.built_in for disk in disks)
    gone = [(who, name) for who, name in known.items() if who not in here]
    texts = [f"disk {name}{'' if who == name else f' ({who})'} is gone" for who, name in gone]
    return [*texts, *([f"{expected} disks expected, {built_in} present"] if built_in < (expected or 0) else [])]


def judge_state(disk: Disk, ill_before: frozenset[str]) -> tuple[Verdict, str]:
    """Return what the kernel's state of a disk means: a reset may be under way, it is believed when seen twice."""
    if disk.state in WELL:
        return Verdict.OK, "is well"
    if disk.state == "?":
        return Verdict.UNKNOWN, "does not report its state"
    if disk.state in LOST or disk.serial in ill_before:
        return Verdict.FAULT, "was given up"
    return Verdict.UNKNOWN, f"is {disk.state} (seen once)"


def judge_array(array: Array) -> tuple[Verdict, str]:
    """Return what the state of an array means."""
    if array.state == "broken":
        return Verdict.FAULT, "is broken"
    if array.state not in ARRAY_STATES:
        return Verdict.UNKNOWN, "does not report its state"
    if not array.degraded:
        return Verdict.OK, "is whole"
    return (Verdict.UNKNOWN, "is degraded and rebuilds") if array.action in REBUILDS else (Verdict.FAULT, "is degraded")


def judge_smart(seen: DiskReadings) -> dict[str, Verdict]:
    """Return what controllers say of themselves; one that refuses the question has nothing against it."""
    verdicts = {
        f"SMART of {name}: {words}": Verdict.FAULT for name, page in seen.smart.items() for words in judge_page(page)
    }
    for name, page in seen.smart.items():
        if not is_told(page):
            verdicts[f"SMART of {name} cannot be asked (no answer)"] = Verdict.UNKNOWN
        elif page.get("errno") in (errno.EACCES, errno.EPERM):
            verdicts[f"SMART of {name} cannot be asked ({errno.errorcode[page['errno']]})"] = Verdict.UNKNOWN
    if seen.smart_silent_since:
        verdicts[f"NVMe controllers have not reported their SMART data since {seen.smart_silent_since}"] = (
            Verdict.UNKNOWN
        )
    return verdicts


def ask_smart(
    options: argparse.Namespace, disks: Iterable[Disk], memory: Memory, now: float
) -> tuple[Mapping[str, Any], str, bool]:
    """Return what controllers said, now or within SMART_EVERY, since when they are awaited, and whether it is new."""
    paths = [options.dev / disk.name for disk in disks if disk.name.startswith("nvme")]
    asked = [str(path.absolute()) for path in paths if path.exists()]
    if not asked or (memory.asked_at is not None and 0 <= now - memory.asked_at < SMART_EVERY):
        return (memory.smart if asked else {}), "", False
    from nodelib.host.child_process import ask  # subprocess costs more than all the rest, and few runs ask

    answer = ask([sys.executable, "-I", "-S", "-B", str(SMART), *asked], options.state, NAME, options.deadline)
    pages = {name: page for name, page in answer.answers.items() if isinstance(page, dict)}
    unsaid = {} if answer.silent_since else {Path(path).name: {} for path in asked}
    return {**unsaid, **memory.smart, **pages}, answer.silent_since, not (answer.silent_since or answer.why)


def look(options: argparse.Namespace, memory: Memory, log: Log, now: float) -> tuple[DiskReadings, bool]:
    """Read every view; also return whether SMART was asked with success."""
    why = [log.why] if log.why else []
    disks: tuple[Disk, ...] | None = None
    arrays: tuple[Array, ...] = ()
    guests: set[str] = set()
    try:
        disks = read_disks(options.sys)
        guests = read_guests(options.sys, disks)
        arrays = read_arrays(options.sys)
    except (OSError, ValueError) as error:
        why.append(f"disks cannot be read: {error}")
    smart, hung, fresh = ask_smart(options, disks or (), memory, now)
    names = {disk.name for disk in disks or ()}
    pages = {name: page for name, page in smart.items() if name in names}
    return DiskReadings(disks, arrays, pages, hung, tuple(why), frozenset(guests)), fresh


def remember(memory: Memory, seen: DiskReadings, lines: Iterable[Line]) -> Memory:
    """Return the memory with what this run saw of disks and read in the log; `ill` stays that of the run before."""
    here = {disk.name: disk.serial for disk in seen.disks or ()}
    blamed = blame(memory.blamed, lines, {**{name: who for who, name in memory.disks.items()}, **here})
    known = {**memory.disks, **{disk.serial: disk.name for disk in seen.disks or () if disk.built_in}}
    guests = memory.guests | seen.guests | {disk.name for disk in seen.disks or () if not disk.built_in}
    if seen.disks is not None:
        blamed = {name: signs for name, signs in blamed.items() if stands(name, signs, here, guests)}
    return memory._replace(disks=known, guests=guests - set(known.values()), blamed=blamed)


def evidence(options: argparse.Namespace, seen: DiskReadings, line: str, log: Log) -> dict[str, Any]:
    """Return what the maker of a disk asks for first; bounded, lest it be cut elsewhere."""
    ill = [disk for disk in seen.disks or () if f" {disk.name} " in f"{line} " or f" {disk.name}:" in line][:3]
    folders = {
        disk.name: options.sys / ("class/nvme" if disk.name.startswith("nvme") else "block") / disk.name for disk in ill
    }
    return {
        "disks": [
            {
                "name": disk.name,
                "who": disk.serial[:60],
                "state": disk.state,
                "model": (text(folders[disk.name] / "model") or text(folders[disk.name] / "device/model") or "")[:40],
                "firmware": (text(folders[disk.name] / "firmware_rev") or "")[:16],
                "smart": seen.smart.get(disk.name, {}),
            }
            for disk in ill
        ],
        "kernel": [entry.text[:110] for entry in log.lines if STORY.search(entry.text)][-4:],
    }


def check(run: Run[Memory]) -> Findings:
    """One run: read disks, log and SMART, judge, remember."""
    options, log = run.options, read_new(run.options.dev, run.last.cursor)
    seen, fresh = look(options, run.last, log, run.now)
    memory = remember(run.last, seen, log.lines)
    verdict, line = judge(seen, memory, options.expected_disks)
    checks = {"blamed by the log": str(memory.blamed), "seen in this boot": str(memory.disks)}
    return Findings(
        verdict,
        line,
        memory._replace(
            ill=frozenset(disk.serial for disk in seen.disks or () if disk.state not in (*WELL, "?")),
            smart=seen.smart,
            asked_at=run.now if fresh else memory.asked_at,
            cursor=log.cursor,
        ),
        evidence=lambda: evidence(options, seen, line, log),
        explain=lambda: explain({**fields(seen), "lines of the log were lost": log.lost}, checks, verdict),
    )


def parse(arguments: list[str]) -> argparse.Namespace:
    """Return the options."""
    options = parser(__doc__, 10.0, "the SMART of NVMe controllers")
    options.add_argument(
        "--expected-disks",
        type=_count,
        metavar="N",
        help="disks that belong to this node (default: those seen since boot)",
    )
    return options.parse_args(arguments)


def _count(value: str) -> int:
    if not value.isascii() or not value.isdigit():
        raise argparse.ArgumentTypeError(f"{value!r} is no number of disks: give one like 8, or leave the option out")
    return int(value)


DETECTOR = Detector(NAME, "DiskFault", check, Memory, Scope.KNOWN_BOOT)


if __name__ == "__main__":
    main(parse(sys.argv[1:]), DETECTOR)
