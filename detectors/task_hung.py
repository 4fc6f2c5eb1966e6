#!/usr/bin/env -S python3 -I -S -B
"""Condition TaskHung: tasks of this node hang in the kernel again and again.

The kernel looks every two minutes for threads that have waited in state D all the time, and tells of them in its log.
The fault is "tasks hang": it did so in three of its rounds within ten minutes (or as long as three rounds take), or so
often in that time that it says no more of them in this boot. It is over when an hour has passed since then. Fewer are
no fault: one slow moment of a disk or a file server.

Remedy: TaskHung: nothing is to be done to the node yet. Look where the tasks wait, in <state>/evidence/task_hung.json
and by cat /proc/PID/stack: nfs_ a file server (NfsStale, NfsUnavailable), xfs_, jbd2_ or io_schedule a disk
(DiskFault), nv the GPU driver. UnkillableProcess tells of what outlives its Pod, which only a reboot ends.
"Cannot tell": "the kernel says no more of hung tasks": it tells of ten in a boot, and nobody knows of more; echo 10 >
/proc/sys/kernel/hung_task_warnings lets it go on. "kernel log cannot be": run node-problem-detector privileged, with
the node's /dev. Lines of the log overwritten unread: make its buffer larger (log_buf_len=).

Exit codes: 0 no fault, 1 fault, 2 cannot tell.
"""

import os.path
import sys

sys.path.append(os.path.realpath(f"{__file__}/../.."))  # where nodelib/ is; python3 -I leaves it out

from nodelib.state import slots

if __name__ == "__main__":
    slots.take()  # before all that costs memory

import argparse
import re
from collections.abc import Mapping
from pathlib import Path

from nodelib.contract.detector import main, parser
from nodelib.contract.npd import Verdict
from nodelib.kernel.kernel_events import WINDOW, Aside, EventKind, KernelWatch, KindMemory, detector

HANG, HOUR = "tasks hang", 3600.0
BUDGET = 10  # lines that the kernel writes in a boot, unless hung_task_warnings was set
HUNG = re.compile(r"^INFO: task .{1,64}:[0-9]+ blocked (?:\S+ ){0,6}?for more than [0-9]+ seconds")
BLIND, SILENT = "the kernel does not look for hung tasks", "the kernel says no more of hung tasks in this boot"


def number(path: Path) -> int | None:
    """Return the number in a file of the kernel, None where there is none."""
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def rounds(options: argparse.Namespace, signs: tuple[EventKind, ...]) -> tuple[EventKind, ...]:
    """Return the sign with a window in which the kernel looks three times."""
    between = number(options.proc / "sys/kernel/hung_task_timeout_secs") or 0
    return tuple(sign._replace(window=max(WINDOW, 3.0 * between)) for sign in signs)


def settings(options: argparse.Namespace, seen: Mapping[str, KindMemory], now: float) -> Aside:
    """Return what the kernel would not tell: a fault where it told all that it may within one window, lately."""
    folder = options.proc / "sys/kernel"
    if not number(folder / "hung_task_timeout_secs"):
        return Aside(notes=[BLIND])
    if number(folder / "hung_task_warnings") != 0:
        return Aside()
    hung, (sign,) = seen.get(HANG, KindMemory()), rounds(options, SIGNS)
    used_up = hung.count >= BUDGET and hung.last - hung.times[0] <= sign.window and now - hung.last < HOUR
    return Aside({HANG: Verdict.FAULT} if used_up else {SILENT: Verdict.UNKNOWN})


SIGNS = (EventKind(HANG, HUNG, 3, HOUR),)
WATCH = KernelWatch("task_hung", "TaskHung", SIGNS, "no task hangs again and again", settings, tune=rounds)
DETECTOR = detector(WATCH)


if __name__ == "__main__":
    main(parser(__doc__).parse_args(), DETECTOR)
