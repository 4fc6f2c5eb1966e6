#!/usr/bin/env -S python3 -I -S -B
"""Condition GpuMemoryWorn: a GPU cannot put bad memory out of use any more. It has to be replaced.

Faults:

  row remap failed                     spare rows have run out (Xid 64)
  memory that cannot be repaired       the driver itself says so (newer drivers)
  SRAM error threshold exceeded        too many uncorrected errors in caches and registers
  too many retired pages               60 of the 64 that a GPU before Ampere can retire

Neither a reset nor a reboot cures it, and the jobs that run are not in danger: give the node no new work, let them end,
run the maker's field diagnostic, and have the GPU replaced. The maker asks for serial number, UUID and counters:
<state>/evidence/gpu_worn.json, and nvidia-bug-report.sh, which collect-diagnostics runs.

A GPU that has no such counters (GeForce, MIG, ECC off) has no fault that could be seen here. A GPU that is lost and an
NVML that does not answer are "cannot tell": GpuLost tells of them. "no permission" is cured by running as root. Another
code with "does not report its ...", or NVML that cannot be asked or makes no sense: --explain shows what it says;
driver and pynvml (nvidia-ml-py) must fit each other.

Exit codes: 0 no fault, 1 fault, 2 cannot tell.
"""

import os.path
import sys

sys.path.append(os.path.realpath(f"{__file__}/../.."))  # where nodelib/ is; python3 -I leaves it out

from nodelib.state import slots

if __name__ == "__main__":
    slots.take()  # before all that costs memory

from nodelib.contract.detector import Detector, Findings, Nothing, Run, explain, main
from nodelib.contract.npd import Verdict
from nodelib.nvml.client import parser
from nodelib.nvml.memory_signs import NEEDED, SHAPES, WORN, faulty, odd, told
from nodelib.nvml.results import GpuReadings, absent, doubts, look, views


def judge(seen: GpuReadings) -> tuple[Verdict, str]:
    """Turn what was read into a verdict and its line: any fault outranks any doubt, any doubt outranks health."""
    for verdict, texts in ((Verdict.FAULT, told(WORN, seen)), (Verdict.UNKNOWN, [*doubts(seen, NEEDED), *odd(seen)])):
        if texts:
            return verdict, "; ".join(texts)
    return Verdict.OK, absent(seen) or "the memory of no GPU is worn out"


def check(run: Run[Nothing]) -> Findings:
    """One run: look and judge."""
    seen = look(run.options, SHAPES)
    verdict, line = judge(seen)
    return Findings(
        verdict,
        line,
        evidence=lambda: {"gpus": faulty(WORN, seen.gpus)},
        explain=lambda: explain(views(seen), checks(seen), verdict),
    )


def checks(seen: GpuReadings) -> dict[str, str]:
    """Return what each sign and the doubts say, by name."""
    shown = {sign.words: ", ".join(gpu.name for gpu in seen.gpus if sign.shows(gpu)) for sign in WORN}
    return {**shown, "doubts": "; ".join([*doubts(seen, NEEDED), *odd(seen)])}


DETECTOR = Detector("gpu_worn", "GpuMemoryWorn", check)


if __name__ == "__main__":
    main(parser(__doc__).parse_args(), DETECTOR)
