#!/usr/bin/env -S python3 -I -S -B
"""Condition DetectorStale: a detector of this node has stopped running.

node-problem-detector goes on sending the last value of a Condition, with fresh heartbeats, when the detector behind it
is stuck. So every detector leaves a mark when it finishes a run, whatever it found, and this one says when a mark is
older than three intervals of its detector. It reads nothing but small files in the state folder and cannot hang.
First it writes a file there and removes it. If that fails, no detector can leave a mark, and it reports that.

A mark that is missing is "cannot tell" until the detector has had three intervals to write one. "no detector declared":
name each with its interval, --detector NAME=SECONDS. "nothing can be written to FOLDER": the state folder is full, or
read-only: make room there, then every detector leaves its mark again.

Remedy: look at the detector's output in the log of the node-problem-detector Pod, and for its process on the node
(state D means that the kernel does not let it go). Nothing is repaired because of this Condition; while it is True or
Unknown, what the node's other Conditions say is not trusted.

Exit codes: 0 every detector runs, 1 one has stopped, 2 cannot tell.
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
from typing import Any, NamedTuple

from nodelib.contract.detector import Detector, Findings, Run, clock, main, parser
from nodelib.contract.npd import Verdict, mark_path, read_json, write_json

INTERVALS = 3  # one missed run is a busy node, a run may last one interval and a half, three are a stopped detector


class Memory(NamedTuple):
    """Since when, in this boot, each missing mark has been looked for."""

    awaited: Mapping[str, float] = {}


def judge(
    intervals: Mapping[str, float], marks: Mapping[str, float], awaited: Mapping[str, float], now: float
) -> tuple[Verdict, str]:
    """Turn marks into a verdict and its line; all times in seconds since boot.

    Args: `intervals` by detector; `marks`: when each last finished, in this boot; `awaited`: since when a mark that is
    missing has been looked for. A stopped detector outranks one that has not run yet.
    """
    stale = sorted(name for name in intervals if _age(name, marks, awaited, now) > INTERVALS * intervals[name])
    if stale:
        return Verdict.FAULT, f"DetectorStale: {', '.join(stale)} stopped running"
    missing = sorted(set(intervals) - set(marks))
    if missing:
        return Verdict.UNKNOWN, f"{', '.join(missing)} not yet run since boot"
    if not intervals:
        return Verdict.UNKNOWN, "no detector declared (--detector NAME=SECONDS)"
    return Verdict.OK, "every detector runs"


def _age(name: str, marks: Mapping[str, float], awaited: Mapping[str, float], now: float) -> float:
    return now - marks.get(name, awaited.get(name, now))


def read_marks(state: Path, names: Mapping[str, Any], boot: str) -> dict[str, float]:
    """Return when each detector last finished; marks of another boot and unreadable ones are left out."""
    marks = {}
    for name in names:
        mark = read_json(mark_path(state, name))
        finished = mark.get("finished_at")
        if isinstance(finished, int | float) and mark.get("boot_id") == boot:
            marks[name] = float(finished)
    return marks


def check(run: Run[Memory]) -> Findings:
    """Read the marks and judge them."""
    intervals = dict(run.options.detector)
    read = read_marks(run.options.state, intervals, run.boot)
    now = clock(run.options)  # after the marks: a detector that finishes meanwhile is not one from the future
    marks = {name: finished for name, finished in read.items() if finished <= now}
    awaited = {name: run.last.awaited.get(name, now) for name in set(intervals) - set(marks)}
    verdict, line = doubted(*judge(intervals, marks, awaited, now), unwritable(run.options.state))
    return Findings(verdict, line, Memory(awaited), explain=lambda: explain(intervals, marks, now))


def doubted(verdict: Verdict, line: str, why: str) -> tuple[Verdict, str]:
    """Return verdict and line with `why` no detector can leave a mark, "" where each can."""
    if not why:
        return verdict, line
    return (Verdict.UNKNOWN, why) if verdict is Verdict.OK else (verdict, f"{why}; {line}")


def unwritable(state: Path) -> str:
    """Return why no detector can leave a mark, "" where each can."""
    trial = mark_path(state, "trial")
    try:
        write_json(trial, {})
        trial.unlink()
    except OSError as error:
        return f"nothing can be written to {state} ({error.strerror})"
    return ""


def explain(intervals: Mapping[str, float], marks: Mapping[str, float], now: float) -> None:
    """Print how old each mark is."""
    for name, seconds in sorted(intervals.items()):
        seen = f"finished {now - marks[name]:.0f} s ago" if name in marks else "no mark in this boot"
        print(f"{name}: every {seconds:g} s, {seen}")


def interval(text: str) -> tuple[str, float]:
    """Read NAME=SECONDS."""
    name, _, seconds = text.partition("=")
    if not name or float(seconds) <= 0:
        raise ValueError(text)
    return name, float(seconds)


def parse(arguments: list[str]) -> argparse.Namespace:
    """Return the options."""
    options = parser(__doc__)
    options.add_argument(
        "--detector",
        type=interval,
        action="append",
        default=[],
        metavar="NAME=SECONDS",
        help="a detector of this node and how often it runs; may be given many times",
    )
    return options.parse_args(arguments)


DETECTOR = Detector("detector_stale", "DetectorStale", check, Memory)


if __name__ == "__main__":
    main(parse(sys.argv[1:]), DETECTOR)
