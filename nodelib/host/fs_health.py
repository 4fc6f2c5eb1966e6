"""Whether file systems are damaged or shut: one judgement for the node's own and for volumes of Pods."""

import argparse
import errno
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

from nodelib.contract.detector import Detector, Findings, Run, conclude, explain
from nodelib.contract.memory import Scope
from nodelib.contract.npd import Verdict
from nodelib.host.filesystems import (
    KINDS,
    STORY,
    Errors,
    Filesystem,
    FileSystems,
    boot_time,
    broken,
    read_btrfs,
    read_ext4,
    read_mounts,
    story_of_ext4,
)
from nodelib.host.mountinfo import GARBLED
from nodelib.kernel.kmsg import Log, read_new

SHUT = {"emergency_ro", "shutdown"}
LOGGED = ("xfs", "btrfs")  # of which the log is believed: a name that one of them had may be another's by now

# The child: argv is [folder of each XFS, answer file]. Nothing is imported that costs.
CHILD = """
import os, sys
codes = []
def say(done):
    with open(sys.argv[-1] + ".draft", "w") as answer:
        answer.write('{"codes": %s, "done": %s}' % (codes, "true" if done else "false"))
    os.replace(sys.argv[-1] + ".draft", sys.argv[-1])
for path in sys.argv[1:-1]:
    try:
        os.stat(path)
        codes.append(0)
    except OSError as error:
        codes.append(error.errno)
    say(False)
say(True)
"""


class FsWatch(NamedTuple):
    """Which file systems a detector looks at: volumes of Pods, or all others, of these kinds; what it says of health.

    `none`: where there is nothing to look at.
    """

    name: str
    condition: str
    volumes: bool
    fine: str
    none: str
    kinds: tuple[str, ...] = KINDS


class Known(NamedTuple):
    """What was so when a file system was first seen in this boot: seconds since boot, writable, errors of btrfs."""

    at: float
    writable: bool
    errors: int | None = None


class FsMemory(NamedTuple):
    """What is known of this boot. `cursor`: last record of the log; `broken`: lines that say that one was given up."""

    cursor: int | None = None
    known: Mapping[str, Known] = {}
    broken: Mapping[str, str] = {}


class Signs(NamedTuple):
    """What one run saw of one file system. `why`: "" or what could not be read.

    `ext4`, `btrfs`: counters, None where there are none; `stat`: error number of XFS's root folder, 0 for none, None
    for not asked; `log`: the kernel's line that says that it has given up, "" for none.
    """

    ext4: Errors | None = None
    btrfs: int | None = None
    stat: int | None = None
    log: str = ""
    why: str = ""


def judge_one(filesystem: Filesystem, seen: Signs, known: Known, boot: int | None) -> tuple[Verdict, str]:
    """Return the verdict of one file system and its words. `boot`: seconds since 1970, None when nobody knows."""
    if fault := next((words for words, holds in _faults(filesystem, seen, known, boot).items() if holds), ""):
        return Verdict.FAULT, fault
    if seen.ext4 and seen.ext4.total and boot is None:
        return Verdict.UNKNOWN, "has met errors, and /proc/stat does not report if since boot"
    if seen.stat:
        return Verdict.UNKNOWN, f"cannot be asked ({errno.errorcode.get(seen.stat, seen.stat)})"
    return (Verdict.UNKNOWN, seen.why) if seen.why else (Verdict.OK, "")


def _faults(filesystem: Filesystem, seen: Signs, known: Known, boot: int | None) -> dict[str, bool]:
    """Return each fault and whether it is one, the one that tells most first."""
    from_when = None if boot is None else int(boot + known.at) if filesystem.volume else boot
    grown = seen.btrfs is not None and known.errors is not None and seen.btrfs > known.errors
    errors = seen.btrfs if seen.btrfs is not None else seen.ext4.total if seen.ext4 and boot is not None else 0
    new = seen.ext4 is not None and from_when is not None and seen.ext4.total > 0 and seen.ext4.last >= from_when
    read_only = "ro" in filesystem.options
    logged = bool(seen.log) and (read_only if filesystem.kind == "btrfs" else seen.stat != 0)
    shut = bool(filesystem.options & SHUT) or seen.stat == errno.EIO or logged
    return {
        "was shut by the kernel": shut,
        "has met errors since boot": new or grown,
        "has errors from before this boot: nobody has checked it": errors > 0 and not filesystem.volume,
        "has become read-only": read_only and known.writable and not filesystem.volume,
    }


def judge(
    mounts: FileSystems, seen: Mapping[str, Signs], known: Mapping[str, Known], boot: int | None, why: str
) -> dict[str, Verdict]:
    """Return the verdict of each thing that was seen, by key; `why`: "" or why the kernel's log cannot be read."""
    verdicts = {GARBLED: Verdict.UNKNOWN} if mounts.garbled else {}
    if why:
        verdicts[why] = Verdict.UNKNOWN
    for filesystem in mounts.found:
        verdict, words = judge_one(filesystem, seen[filesystem.key], known[filesystem.key], boot)
        verdicts[f"{filesystem.name} {words}"] = verdict
    return verdicts


def look(
    options: argparse.Namespace, filesystem: Filesystem, answers: Mapping[str, Any], log: Mapping[str, str]
) -> Signs:
    """Read all that the kernel shows of one file system."""
    code, why = answers.get(filesystem.key, (None, ""))
    ext4 = btrfs = None
    try:
        ext4 = read_ext4(options.sys, filesystem) if filesystem.kind.startswith("ext") else None
        btrfs = read_btrfs(options.sys, filesystem) if filesystem.kind == "btrfs" else None
    except (OSError, ValueError) as error:
        why = f"cannot be judged: {error} cannot be read"
    return Signs(ext4, btrfs, code, log.get(filesystem.device, "") if filesystem.kind in LOGGED else "", why)


def stat(options: argparse.Namespace, name: str, mounts: FileSystems) -> dict[str, tuple[int | None, str]]:
    """Ask for the root folder of each XFS; return the error number, None where there is no answer, and why."""
    asked = {
        filesystem.key: filesystem.top[0] for filesystem in mounts.found if filesystem.kind == "xfs" and filesystem.top
    }
    if not asked:
        return {}
    from nodelib.host.child_process import ask  # subprocess costs more than all the rest, and few nodes have XFS

    paths = [f"{options.proc.absolute()}/1/root{point}" for point in asked.values()]
    command = [sys.executable, "-I", "-S", "-c", CHILD, *paths]
    answer = ask(command, options.state, name, options.deadline)
    why = (
        f"has not answered since {answer.silent_since}"
        if answer.silent_since
        else f"cannot be asked: {answer.why or 'no answer'}"
    )
    return read_codes([*asked], answer.answers.get("codes"), why)


def read_codes(keys: list[str], answer: Any, why: str) -> dict[str, tuple[int | None, str]]:
    """Read what the child said of `keys`, in order; whoever comes after one that hangs was not asked, this is `why`."""
    codes = answer if isinstance(answer, list) and all(type(code) is int for code in answer) else []
    return {key: (codes[index], "") if index < len(codes) else (None, why) for index, key in enumerate(keys)}


def remember(
    mounts: FileSystems, before: Mapping[str, Known], seen: Mapping[str, Signs], now: float
) -> dict[str, Known]:
    """Return what each file system was like at first sight; one that was unmounted is forgotten."""
    fresh = {
        filesystem.key: Known(now, "ro" not in filesystem.options, seen[filesystem.key].btrfs)
        for filesystem in mounts.found
    }
    return {key: before.get(key, first) for key, first in fresh.items()}


def evidence(options: argparse.Namespace, mounts: FileSystems, line: str, log: Log) -> dict[str, Any]:
    """Return what a person asks for first; bounded, lest it be cut elsewhere."""
    ill = [filesystem for filesystem in mounts.found if filesystem.name in line][:2]
    return {
        "filesystems": [
            {
                "device": filesystem.device,
                "source": filesystem.source[:60],
                "points": [point[-80:] for point in filesystem.points[:2]],  # the end of a volume's names it
                "options": ",".join(sorted(filesystem.options))[:100],
                "last error": story_of_ext4(options.sys, filesystem.device)[:120],
            }
            for filesystem in ill
        ],
        "kernel": [entry.text[:110] for entry in log.lines if STORY.search(entry.text)][-4:],
    }


def detector(watch: FsWatch) -> Detector[FsMemory]:
    """Return the detector that watches these file systems."""
    return Detector(watch.name, watch.condition, lambda run: check(run, watch), FsMemory, Scope.KNOWN_BOOT)


def check(run: Run[FsMemory], watch: FsWatch) -> Findings:
    """One run: read mounts, counters and log, judge, remember."""
    options = run.options
    mounts, booted = read_mounts(options.proc, options.sys).of(watch.volumes, watch.kinds), boot_time(options.proc)
    log = read_new(options.dev, run.last.cursor)
    given_up, answers = broken(log.lines, run.last.broken), stat(options, watch.name, mounts)
    seen = {filesystem.key: look(options, filesystem, answers, given_up) for filesystem in mounts.found}
    known = remember(mounts, run.last.known, seen, run.now)
    verdict, line = conclude(judge(mounts, seen, known, booted, log.why), watch.fine if mounts.found else watch.none)
    views = {"booted": booted, "kernel log": log.why or "read", "lines of it were lost": log.lost}
    each = {
        filesystem.name: {"now": seen[filesystem.key], "at first": known[filesystem.key]} for filesystem in mounts.found
    }
    return Findings(
        verdict,
        line,
        FsMemory(log.cursor, known, given_up),
        evidence=lambda: evidence(options, mounts, line, log),
        explain=lambda: explain(views, each, verdict),
    )
