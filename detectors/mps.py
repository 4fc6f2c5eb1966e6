#!/usr/bin/env -S python3 -I -S -B
"""Condition MpsUnhealthy: the daemon of NVIDIA's Multi-Process Service, by which Pods share a GPU, has ended or hangs.

Looked at are the processes nvidia-cuda-mps-control and nvidia-cuda-mps-server by their names, parents and states; no
GPU is touched and no daemon is asked. A fault is what is so for three runs in a row and for most of a minute:

  the MPS control daemon does not run      it did in this boot, or --required says that it should: programs that start
                                           now do not get the GPU, or get it without their limits. Its DaemonSet, or
                                           its unit, must start it again: delete its Pod, or restart the unit
  an MPS process hangs in the kernel       state D; every program that shares the GPU hangs with it: drain, reset-gpu,
                                           then reboot

A node on which no MPS daemon has run in this boot, and that is not --required to have one, is fine. Told as "cannot
tell": one of the above that has not lasted yet; a /proc that cannot be read.

Exit codes: 0 MPS works or is not used, 1 fault, 2 cannot tell.
"""

import os.path
import sys

sys.path.append(os.path.realpath(f"{__file__}/../.."))  # where nodelib/ is; python3 -I leaves it out

from nodelib.state import slots

if __name__ == "__main__":
    slots.take()  # before all that costs memory

import argparse
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

from nodelib.contract.detector import Detector, Findings, Run, conclude, explain, main, parser
from nodelib.contract.npd import Verdict
from nodelib.host.proc_files import ENDED, Stat, pid_folders, read_stat
from nodelib.state.debounce import Streak, lasts, stand

COMM = "nvidia-cuda-mps"  # of both programs: the kernel keeps 15 letters of a name
RUNS, SECONDS = 3, 50.0  # three runs a minute apart take two, less what timers are early
ABSENT, HANGS = "the MPS control daemon does not run", "an MPS process hangs in the kernel"


class Memory(NamedTuple):
    """Whether a control daemon ran in this boot, keys of the servers of the last run, and since when what is wrong."""

    ran: bool = False
    servers: Collection[str] = ()
    wrong: Mapping[str, Streak] = {}


class Process(NamedTuple):
    """One process of MPS. `key`: pids are used again, so the start is part of it."""

    key: str
    server: bool
    hangs: bool


def processes(stats: Mapping[int, Stat], servers: Collection[str]) -> list[Process]:
    """Those of MPS that have not ended. A server is the child of a control daemon, or was in an earlier run."""
    mine = {pid: stat for pid, stat in stats.items() if stat.comm == COMM and stat.state not in ENDED}
    processes_of_mps = []
    for pid, stat in mine.items():
        key = f"{pid}:{stat.start}"
        processes_of_mps.append(Process(key, stat.parent in mine or key in servers, stat.state == "D"))
    return processes_of_mps


def wrong(running: Collection[Process], wanted: bool) -> list[str]:
    """What is wrong now, for however short. `wanted`: a control daemon ran in this boot, or was declared."""
    rows = ((wanted and all(each.server for each in running), ABSENT), (any(each.hangs for each in running), HANGS))
    return [text for holds, text in rows if holds]


def judge(running: list[Process], wanted: bool, standing: Mapping[str, Streak], now: float) -> tuple[Verdict, str]:
    """Turn processes into a verdict and its line. `standing`: since when each thing is wrong."""
    verdicts = {}
    for text in wrong(running, wanted):
        lasting = lasts(standing.get(text), now, SECONDS, RUNS)
        verdicts[text if lasting else f"{text}, not for long yet"] = Verdict.FAULT if lasting else Verdict.UNKNOWN
    return conclude(verdicts, "the MPS control daemon runs" if wanted else "no MPS is used on this node")


def look(proc: Path) -> dict[int, Stat]:
    """All processes by pid. Raises OSError where /proc cannot be read."""
    stats = {}
    for folder in pid_folders(proc):
        try:
            stats[int(folder.name)] = read_stat(folder)
        except (OSError, ValueError):  # it has ended
            continue
    return stats


def check(run: Run[Memory]) -> Findings:
    """One run: look, remember who ran and since when something is wrong, judge."""
    running = processes(look(run.options.proc), run.last.servers)
    ran = run.last.ran or any(not each.server for each in running)
    wanted = ran or run.options.required
    standing = stand(wrong(running, wanted), run.last.wrong, run.now)
    verdict, line = judge(running, wanted, standing, run.now)
    return Findings(
        verdict,
        line,
        Memory(ran, [each.key for each in running if each.server], standing),
        evidence=dict,
        explain=lambda: explain({each.key: each for each in running}, {"ran in this boot": str(ran)}, verdict),
    )


def parse(arguments: list[str]) -> argparse.Namespace:
    """Return the options."""
    options = parser(__doc__)
    options.add_argument("--required", action="store_true", help="this node must have an MPS control daemon")
    return options.parse_args(arguments)


DETECTOR = Detector("mps", "MpsUnhealthy", check, Memory)


if __name__ == "__main__":
    main(parse(sys.argv[1:]), DETECTOR)
