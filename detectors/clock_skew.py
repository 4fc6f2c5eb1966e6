#!/usr/bin/env -S python3 -I -S -B
"""Condition ClockSkew: nobody keeps this node's clock right, or it is off by more than a second.

The kernel is asked for its own account of the clock (adjtimex), which chronyd, ntpd, systemd-timesyncd and phc2sys
write. No time server is asked, so an error that all of these share is not seen. Faults:

  the clock is not synchronised       the kernel says so, and that it may be off by its most (16 s), for --patience
  nobody has corrected the clock ...  it may be off by more than --most although somebody once vouched for it, for
                                      --patience: the time service has stopped or reaches no server
  the clock is off by more than ...   the time service itself estimates so, for two minutes

A bare "not synchronised" is none as long as the error it goes with is small: chronyd without `rtcsync` keeps the clock
right and says so all the same. Just after boot, and while a service starts, it is "cannot tell" for a while.

Remedy: restart the time service (`systemctl restart chronyd`, or ntpd, systemd-timesyncd); "no time service runs":
start one. Then see whether it reaches its servers (`chronyc sources`, `ntpq -p`, `timedatectl timesync-status`). A
clock that is off by seconds is set at once by `chronyc makestep`. On many nodes at once: look at the time servers. A
service that asks less often than once an hour needs a larger --most. An account of the kernel's that makes no sense, or
that we may not ask for, is "cannot tell": run node-problem-detector on the node's own kernel, not in a sandbox.

Exit codes: 0 the clock is kept, 1 it is not, 2 cannot tell.
"""

import os.path
import sys

sys.path.append(os.path.realpath(f"{__file__}/../.."))  # where nodelib/ is; python3 -I leaves it out

from nodelib.state import slots

if __name__ == "__main__":
    slots.take()  # before all that costs memory

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from nodelib.contract.detector import Detector, Findings, Run, explain, fields, main, parser
from nodelib.contract.npd import Verdict
from nodelib.kernel.timex import Reading, read_file, read_kernel
from nodelib.state.debounce import Streak, lasts, stand

LIMIT = 16.0  # the most that the kernel counts up to, 500 ppm a second (NTP_PHASE_LIMIT)
OFF_SECONDS = 120.0  # a service that starts may find a large error, and mends it at once
SERVICES = ("chronyd", "ntpd", "ntpsec", "openntpd", "phc2sys", "ptp4l", "systemd-timesyn", "timemaster")
UNSYNCED = "the clock is not synchronised"
FORGOTTEN = "nobody has corrected the clock for a long time"
OFF = "the clock is off by more than a second"


class Memory(NamedTuple):
    """Since when something is wrong, by its key."""

    wrong: Mapping[str, Streak] = {}


def sign(seen: Reading, most: float) -> str:
    """Return what is wrong, "" for nothing; `most`: by how many seconds the clock may be off."""
    if seen.unsynced and seen.maxerror >= LIMIT:
        return UNSYNCED
    if abs(seen.offset) > 1.0 or 1.0 < seen.esterror < LIMIT:  # the limit: nobody has told, as with phc2sys
        return OFF
    return FORGOTTEN if seen.maxerror > most else ""


def judge(
    wrong: str, standing: Mapping[str, Streak], patience: float, services: str, now: float
) -> tuple[Verdict, str]:
    """Turn a sign into a verdict and its line; `services`: what runs to keep the clock."""
    if not wrong:
        return Verdict.OK, "the clock is kept"
    if lasts(standing.get(key(wrong)), now, OFF_SECONDS if wrong == OFF else patience, 2):
        return Verdict.FAULT, f"{wrong}; {services}"
    return Verdict.UNKNOWN, f"{wrong}, not for long yet; {services}"


def key(wrong: str) -> str:
    """Return what a sign is remembered by: a clock that is not kept goes through two of them."""
    return "off" if wrong == OFF else "not kept"


def services(proc: Path) -> str:
    """Return which time services run."""
    found = set()
    for folder in proc.iterdir():
        if folder.name.isdecimal():
            try:
                found.add((folder / "comm").read_text(errors="replace").strip())
            except OSError:
                continue  # it has ended meanwhile
    running = sorted(found & set(SERVICES))
    return f"{', '.join(running)} runs" if running else "no time service runs"


def check(run: Run[Memory]) -> Findings:
    """One run: ask the kernel, remember since when something is wrong, judge."""
    options = run.options
    seen = read_file(options.timex) if options.timex else read_kernel()
    if min(seen.maxerror, seen.esterror) < 0:
        raise ValueError(f"the kernel's account of the clock makes no sense: {seen}")
    wrong = sign(seen, options.most)
    standing = stand([key(wrong)] if wrong else [], run.last.wrong, run.now)
    running = services(options.proc) if wrong or options.explain else ""
    verdict, line = judge(wrong, standing, options.patience, running, run.now)
    return Findings(
        verdict,
        line,
        Memory(standing),
        evidence=lambda: {"reading": seen._asdict()},
        explain=lambda: explain({**fields(seen), "services": running}, {"wrong since": standing}, verdict),
    )


def positive(text: str) -> float:
    """Read a number of seconds."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0")
    return number


def parse(arguments: list[str]) -> argparse.Namespace:
    """Return the options."""
    options = parser(__doc__)
    options.add_argument(
        "--most", type=positive, default=1.0, metavar="SECONDS", help="how far off it may be (%(default)s)"
    )
    options.add_argument(
        "--patience",
        type=positive,
        default=900.0,
        metavar="SECONDS",
        help="how long it may stay without anybody to keep it (%(default)s)",
    )
    options.add_argument("--timex", type=Path, metavar="FILE", help="a reading as JSON, instead of the kernel's")
    return options.parse_args(arguments)


DETECTOR = Detector("clock_skew", "ClockSkew", check, Memory)


if __name__ == "__main__":
    main(parse(sys.argv[1:]), DETECTOR)
