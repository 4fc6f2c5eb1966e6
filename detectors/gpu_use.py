#!/usr/bin/env -S python3 -I -S -B
"""Condition GpuUse: which Pods have used the GPUs of this node, as NVML tells. True means: this is known.

It judges nothing. The janitor has it as a second source beside Prometheus: a Pod that has used a GPU by either of them
is not idle. For example `gpus=8 used=3f2a1b0c used-until=9c0d11e2@20260110T0012Z others-until=20260109T2303Z`:

  gpus          GPUs that NVML lists
  used          Pods, by the start of their uid, that use a GPU or did within the last hour
  used-until    Pods that did before that, and the end of the minute (UTC) in which they were last seen to
  others-until  until then another Pod may have used one. Since then every GPU was looked at, at least every 5 minutes,
                and nobody else used one. ? where nobody can tell: a GPU in MIG mode does not tell of its use

A GPU is in use where a sample shows a kernel, memory that is read or written, or video that is coded; NVML keeps those
of 17 seconds or more. It counts for each Pod that has a process on that GPU, as its cgroup says: of a GPU that is
shared (time-slicing, MPS) nobody can tell which of them it was, nor whether it was a program of another Pod that has
ended since. Use of a GPU on which no Pod has a process, or several have, may have been of any other Pod. A Pod that
has a process on a GPU and no use is not named, and no more is one that has a GPU and no process on it.

The line changes at most once in 30 minutes in the long run, of whatever happens. News of use comes at once, but for
the second within 30 minutes. A GPU that is lost, NVML that does not answer, and processes that are hidden (run
node-problem-detector with hostPID) are "cannot tell", at once; that lasts for 30 minutes at least. After a boot, or
after 5 minutes in which nobody looked, others-until begins anew.

Exit codes: 0 there is no GPU, 1 told, 2 cannot tell.
"""

import os.path
import sys

sys.path.append(os.path.realpath(f"{__file__}/../.."))  # where nodelib/ is; python3 -I leaves it out

from nodelib.state import slots

if __name__ == "__main__":
    slots.take()  # before all that costs memory

import argparse
import time
from collections.abc import Mapping
from typing import NamedTuple

from nodelib.contract.detector import Detector, Findings, Run, explain, main
from nodelib.contract.npd import Verdict
from nodelib.nvml.client import parser
from nodelib.nvml.gpu_owners import Owner, pids, read_owners, sees_host
from nodelib.nvml.results import GpuReadings, NvmlGpu, absent, doubts, look, views
from nodelib.nvml.use_report import Published, Seen, Uses, doubt, looked, report, short, tell, words

SHAPES = {
    "processes": {"pid": "numbers", "kind": "texts", "memory": "numbers"},
    "use": {"highest": "number", "samples": "number"},
    "MIG": {"current": "number"},
}
NEEDED = ("processes", "use")


class Memory(NamedTuple):
    """What was seen of Pods so far, and what was told of it."""

    uses: Uses = Uses()
    published: Published = Published()


def see(gpu: NvmlGpu, owners: Mapping[int, Owner | None]) -> Seen:
    """Return the Pods on one GPU, and whether it was in use; one whose processes are not told has no Pods."""
    use = gpu.facts.get("use")
    users = [owners.get(pid) for pid in pids([gpu])]
    pods = frozenset(short(owner.pod) for owner in users if owner and owner.pod)
    tells = use is not None and "processes" in gpu.facts and not gpu.facts.get("MIG", {}).get("current")
    return Seen(
        pods, use["highest"] > 0 if use and tells else None, strange=not all(owner and owner.pod for owner in users)
    )


def unseen(seen: GpuReadings, owners: Mapping[int, Owner | None], *, on_host: bool) -> str:
    """Return why this look says nothing of some GPU, "" where it is whole."""
    reasons = doubts(seen, NEEDED)
    if owners and not on_host:
        reasons.append("whose the processes on GPUs are is hidden from here (run with hostPID)")
    elif any(owner is None for owner in owners.values()):
        reasons.append("a process on a GPU cannot be read in /proc")
    return "; ".join(reasons)


def next_memory(before: Memory, gpus: tuple[Seen, ...], why: str, now: float, wall: float) -> Memory:
    """Return what is known and told after a look, which says nothing where `why` is not ""."""
    if why:
        return Memory(before.uses, doubt(before.published, why, now))
    uses = looked(before.uses, gpus, now, wall)
    return Memory(uses, tell(before.published, report(uses, gpus, wall), now))


def check(run: Run[Memory]) -> Findings:
    """One run: look, find whose the processes are, remember, tell."""
    options, seen = run.options, look(run.options, SHAPES)
    if nothing := absent(seen):
        return Findings(Verdict.OK, nothing, Memory())
    owners = read_owners(options.proc, pids(seen.answering))
    gpus = tuple(see(gpu, owners) for gpu in seen.answering)
    why = unseen(seen, owners, on_host=sees_host(options.proc))
    wall = time.time() if options.wall is None else options.wall
    memory = next_memory(run.last, gpus, why, run.now, wall)
    verdict = Verdict.FAULT if memory.published.known else Verdict.UNKNOWN  # FAULT is True: it is told
    shown = {**views(seen), "owners": owners, "gpus now": gpus, "uses": memory.uses}
    checks = {"now": why or words(report(memory.uses, gpus, wall)), "told": memory.published.line}
    return Findings(verdict, memory.published.line, memory, explain=lambda: explain(shown, checks, verdict))


def parse(arguments: list[str]) -> argparse.Namespace:
    """Return the options."""
    options = parser(__doc__)
    options.add_argument("--wall", type=float, help="Unix seconds, instead of the clock")
    return options.parse_args(arguments)


DETECTOR = Detector("gpu_use", "GpuUse", check, Memory)


if __name__ == "__main__":
    main(parse(sys.argv[1:]), DETECTOR)
