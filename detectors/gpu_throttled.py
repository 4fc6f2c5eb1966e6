#!/usr/bin/env -S python3 -I -S -B
"""Condition GpuThrottled: the hardware of a GPU has held its clocks down for most of the last ten minutes.

A job that runs on many GPUs runs as fast as its slowest one, so this costs far more than one GPU. Faults, and what
cures them:

  thermal slowdown (cooling)           too hot: look at fans, filters, heat sink, airflow and the air of the room
  hotter than its slowdown limit (cooling)   the same, seen at its temperature
  power brake (power supply)           the node's power supply asks for less load: look at PSUs, their cables, the feed;
                                       on many nodes at once it is the rack's or the room's power
  hardware slowdown (power, seating)   neither of these causes is told: look at the GPU's power connectors and its
                                       seat in the slot, then at both of the above

None of it is cured by software: drain the node and have a person look. Serial number, UUID and what was seen are in
<state>/evidence/gpu_throttled.json.

A fault is 6 of the last 10 minutes of one kind, told by the GPU's own time counters, or where it has none by the bit
that is set at the moment of a run: the line says "known by samples only" then. Drivers before 575 count no time, and of
those between 580.65 and 580.82 nobody knows how. It ends when less than 2 of 10 minutes are left. What software does on
purpose is none: a power cap, idle clocks, clocks that somebody has set, slowing down at a temperature that the driver
heeds. A GPU that is slow while less than 6 minutes are known of it (after a boot) is "cannot tell". A GPU that does not
report its clocks (MIG, virtual ones) has no fault that could be seen here.

A GPU that is lost and an NVML that does not answer are "cannot tell": GpuLost tells of them. "no permission" is cured
by running as root. Another code with "does not report its ...", or NVML that cannot be asked or makes no sense:
--explain shows what it says; driver and pynvml (nvidia-ml-py) must fit each other.

Exit codes: 0 no fault, 1 fault, 2 cannot tell.
"""

import os.path
import sys

sys.path.append(os.path.realpath(f"{__file__}/../.."))  # where nodelib/ is; python3 -I leaves it out

from nodelib.state import slots

if __name__ == "__main__":
    slots.take()  # before all that costs memory

from collections.abc import Mapping, Set
from typing import Any, NamedTuple

from nodelib.contract.detector import Detector, Findings, Run, explain, main
from nodelib.contract.npd import Verdict
from nodelib.nvml.client import parser
from nodelib.nvml.results import GpuReadings, NvmlGpu, absent, doubts, look, views
from nodelib.nvml.throttle import ThrottlePast, advance, counters, signs

LONG = 360.0  # seconds of the window: gpud takes 0.6 samples a minute over 10 minutes for a fault
SHORT = 120.0  # seconds below which a fault has ended

SHAPES = {
    "clocks": {"reasons": "number"},
    "slow time": {"heat": "number?", "brake": "number?"},
    "heat margin": {"margin": "number?", "limit": "number?"},
}


class Kind(NamedTuple):
    """A way of being slow, by its name in nodelib.nvml.throttle. `remedy`: what to look at."""

    name: str
    words: str
    remedy: str


KINDS = (
    Kind("heat", "thermal slowdown", "cooling"),
    Kind("margin", "hotter than its slowdown limit", "cooling"),
    Kind("brake", "power brake", "power supply"),
    Kind("slowdown", "hardware slowdown", "power, seating"),
)


class Memory(NamedTuple):
    """What is known from run to run: each GPU's past, by uuid, and the faults that stand, as (kind, uuid)."""

    gpus: Mapping[str, ThrottlePast] = {}
    standing: Set[tuple[str, str]] = frozenset()


def remember(before: Memory, seen: GpuReadings, now: float) -> Memory:
    """Return what is known after this run. Of a GPU that does not answer nothing new is known."""
    pasts = {
        **before.gpus,
        **{gpu.uuid: advance(before.gpus.get(gpu.uuid), gpu.facts, now) for gpu in seen.answering},
    }
    standing = {
        (kind.name, uuid)
        for uuid, past in pasts.items()
        for kind in KINDS
        if past.slow(kind.name) >= (SHORT if (kind.name, uuid) in before.standing else LONG)
    }
    return Memory(pasts, standing)


def judge(seen: GpuReadings, memory: Memory) -> tuple[Verdict, str]:
    """Turn what is known into a verdict and its line: any fault outranks any doubt, any doubt outranks health."""
    unsure = [*doubts(seen, ["clocks"]), *told(seen, too_new(seen, memory), " just now, for how long is not known yet")]
    for verdict, found in ((Verdict.FAULT, told(seen, memory.standing)), (Verdict.UNKNOWN, unsure)):
        if found:
            return verdict, "; ".join([*found, *sampled(seen)])
    return Verdict.OK, absent(seen) or "; ".join(["no GPU is held down by its hardware", *sampled(seen)])


def sampled(seen: GpuReadings) -> list[str]:
    """Return, as at most one text, that the time of being slow is not counted but guessed from run to run."""
    guessed = bool(seen.driver) and not counters(seen.driver) and any("clocks" in gpu.facts for gpu in seen.answering)
    return [f"known by samples only: driver {seen.driver} is not known to count slow time"] if guessed else []


def told(seen: GpuReadings, faults: Set[tuple[str, str]], more: str = "") -> list[str]:
    """Return a text for each kind of fault, naming the GPUs that have it."""
    named = [(kind, [gpu.name for gpu in seen.answering if (kind.name, gpu.uuid) in faults]) for kind in KINDS]
    return [f"{kind.words} ({kind.remedy}){more}: {', '.join(names)}" for kind, names in named if names]


def too_new(seen: GpuReadings, memory: Memory) -> set[tuple[str, str]]:
    """Return the kinds of slowness that are there now on GPUs of which too little is known to say that it is short."""
    new = [gpu for gpu in seen.answering if memory.gpus[gpu.uuid].observed < LONG]
    return {(kind, gpu.uuid) for gpu in new for kind in signs(gpu.facts)}


def evidence(seen: GpuReadings, memory: Memory) -> list[dict[str, Any]]:
    """Return who the slow GPUs are, and how many seconds of the window they were slow."""
    return [
        {**gpu.who, "seconds_slow": {kind.name: round(past.slow(kind.name)) for kind in KINDS if past.slow(kind.name)}}
        for gpu, past in _faulty(seen, memory)
    ][:6]


def _faulty(seen: GpuReadings, memory: Memory) -> list[tuple[NvmlGpu, ThrottlePast]]:
    bad = {uuid for _, uuid in memory.standing}
    return [(gpu, memory.gpus[gpu.uuid]) for gpu in seen.answering if gpu.uuid in bad]


def check(run: Run[Memory]) -> Findings:
    """One run: look, remember, judge."""
    seen = look(run.options, SHAPES)
    memory = remember(run.last, seen, run.now)
    verdict, line = judge(seen, memory)
    standing = ", ".join(map(" ".join, sorted(memory.standing)))
    return Findings(
        verdict,
        line,
        memory,
        evidence=lambda: {"gpus": evidence(seen, memory)},
        explain=lambda: explain({**views(seen), **memory.gpus}, {"standing": standing}, verdict),
    )


DETECTOR = Detector("gpu_throttled", "GpuThrottled", check, Memory)


if __name__ == "__main__":
    main(parser(__doc__).parse_args(), DETECTOR)
