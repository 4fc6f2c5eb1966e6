#!/usr/bin/env -S python3 -I -S -B
"""Condition MemoryEcc: the main memory or a processor of this node has lost data since boot.

Faults: an uncorrected error that EDAC has counted (/sys/devices/system/edac), or one in the kernel's log: of EDAC, of
the firmware (APEI, severity recoverable or fatal, of memory or a processor), a page of memory that was lost (Memory
failure), a process that met one (machine check). A fault stands until the next boot, whatever resets the counters.

No fault: a lost page of a GPU whose memory is part of the node's (GH200, GB200): behind "no uncorrected memory errors"
"a page of a GPU's memory was lost", and GpuEccFault says what to do. Nor corrected errors. A DIMM with more than 100 of
them an hour is named in the line behind "no uncorrected memory errors": have it looked at before it fails. Nor is an
event from before the boot (BERT), nor PCIe's (PcieLinkDegraded). A node whose memory reports nothing (no EDAC driver,
virtual machines) is fine unless the log tells.

Remedy: MemoryEcc: take the work off the node and reboot it: the firmware tests the memory and maps bad rows out. Where
it comes back, replace the DIMM that the line names, or run the maker's memory test where it names none (dmidecode -t
memory and ras-mc-ctl --layout tell the slot). Labels, counts and lines of the log are in
<state>/evidence/memory_ecc.json.
"Cannot tell": "nobody can tell whether it is a GPU's": mount the node's /sys/devices/system/memory. "kernel log cannot
be", "EDAC cannot be read": run node-problem-detector privileged, with the node's /dev and /sys. Lines of the log
overwritten unread: make its buffer larger (log_buf_len= in the kernel's command line).

Exit codes: 0 no uncorrected error, 1 fault, 2 cannot tell.
"""

import os.path
import sys

sys.path.append(os.path.realpath(f"{__file__}/../.."))  # where nodelib/ is; python3 -I leaves it out

from nodelib.state import slots

if __name__ == "__main__":
    slots.take()  # before all that costs memory

import argparse
import os
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from nodelib.contract.detector import Detector, Findings, Run, conclude, explain, main, parser
from nodelib.contract.memory import Scope
from nodelib.contract.npd import Verdict
from nodelib.kernel.edac import LOST, STORY, Part, read_log, read_parts
from nodelib.kernel.kmsg import Log, read_new
from nodelib.kernel.page_owner import GPU, UNKNOWN, page_owner

FINE, NO_EDAC = "no uncorrected memory errors", "this node does not report memory errors (no EDAC)"
MOST_CORRECTED, HOUR = 100, 3600.0
VERDICTS = {LOST[GPU]: Verdict.OK, LOST[UNKNOWN]: Verdict.UNKNOWN}  # of all else that is told: a fault


class Rate(NamedTuple):
    """How a part's corrected errors come: their count at `at` (seconds since boot); if the hour before had many."""

    at: float
    total: int
    many: bool


class Memory(NamedTuple):
    """What is known of this boot: the last record of the log that was read, uncorrected errors, rates by part."""

    cursor: int | None = None
    told: Collection[str] = ()
    rates: Mapping[str, Rate] = {}


def rate(part: Part, last: Rate | None, now: float) -> Rate:
    """Return what to remember of a part. An hour begins anew when it is over, and when the counters were reset."""
    if last is None or part.corrected < last.total or now < last.at:
        return Rate(now, part.corrected, False)
    if now - last.at < HOUR:
        return last
    return Rate(now, part.corrected, (part.corrected - last.total) * HOUR > MOST_CORRECTED * (now - last.at))


def has_many(part: Part, known: Rate) -> bool:
    """Whether a part has more corrected errors than MOST_CORRECTED in this hour or had in the last."""
    return known.many or part.corrected - known.total > MOST_CORRECTED


def judge(
    parts: Collection[Part], told: Collection[str], rates: Mapping[str, Rate], doubts: Collection[str]
) -> tuple[Verdict, str]:
    """Turn counters and log into a verdict and its line.

    Args: `told`: the uncorrected errors of this boot; `rates`: by name of the part; `doubts`: what could not be read.
    """
    found = {**dict.fromkeys(doubts, Verdict.UNKNOWN), **{text: VERDICTS.get(text, Verdict.FAULT) for text in told}}
    many = sorted({part.name for part in parts if part.name in rates and has_many(part, rates[part.name])})
    notes = [text for text in told if VERDICTS.get(text) is Verdict.OK]
    notes += [f"many corrected ones: {', '.join(many)}"] if many else []
    return conclude(found, "; ".join([FINE if parts else NO_EDAC, *notes]))


def uncorrected(parts: Collection[Part]) -> list[str]:
    """Return a text for each part that has lost data."""
    return [f"uncorrected memory error on {part.name}" for part in parts if part.uncorrected]


def look(options: argparse.Namespace) -> tuple[tuple[Part, ...], list[str]]:
    """Return the parts that EDAC tells of, and why it cannot be read."""
    try:
        return read_parts(options.sys), []
    except (OSError, ValueError) as error:
        return (), [f"EDAC cannot be read: {error}"]


def evidence(parts: Collection[Part], log: Log) -> dict[str, Any]:
    """Return the parts that have lost data, and the kernel's words; bounded, lest it be cut elsewhere."""
    return {
        "parts": [part._asdict() for part in parts if part.uncorrected][:4],
        "kernel": [one.text[:110] for one in log.lines if STORY.search(one.text)][-4:],
    }


def check(run: Run[Memory]) -> Findings:
    """One run: read counters and log, judge, remember the faults of this boot."""
    options = run.options
    log, (parts, doubts) = read_new(options.dev, run.last.cursor), look(options)
    owner = page_owner(options.sys, options.proc, os.sysconf("SC_PAGE_SIZE"))
    told = sorted({*run.last.told, *uncorrected(parts), *read_log(log.lines, owner)})
    rates = {part.name: rate(part, run.last.rates.get(part.name), run.now) for part in parts}
    verdict, line = judge(parts, told, rates, [*([log.why] if log.why else []), *doubts])
    views = {"parts": len(parts), "kernel log": log.why or "read", "lines of it were lost": log.lost}
    checks = {part.name: f"{part.corrected} corrected, {part.uncorrected} uncorrected" for part in parts}
    return Findings(
        verdict,
        line,
        Memory(log.cursor, told, rates),
        evidence=lambda: evidence(parts, log),
        explain=lambda: explain(views, {**checks, "uncorrected in this boot": "; ".join(told)}, verdict),
    )


DETECTOR = Detector("memory_ecc", "MemoryEcc", check, Memory, Scope.KNOWN_BOOT)


if __name__ == "__main__":
    main(parser(__doc__).parse_args(), DETECTOR)
