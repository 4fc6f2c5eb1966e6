#!/usr/bin/env -S python3 -I -S -B
"""Condition GpuEccFault: a GPU waits for a reset that puts bad memory out of use. It works meanwhile.

Faults, which a reset of the GPU or a reboot clears. Wait until the node is idle, and give it no new work:

  uncorrected memory errors since the driver loaded   the job that met them has ended; where an error was not contained
                                                      the driver says so (Xid 95, GpuXid; GpuRecoveryRequired)
  row remap pending, page retirement pending          the jobs on it are safe
  the driver asks to drain and reset                  its own word for the same (NVML field 230)

GpuMemoryWorn reports memory that is worn out. GpuMemoryWarning reports what needs no repair and a person should know.
Serial number, UUID and counters as they were at first sight are in <state>/evidence/gpu_ecc.json.

No faults, and only told by --explain and a run by hand:

  many corrected memory errors                        nothing: no data is lost, and the GPU itself puts a row out of use
                                                      that needs correction again and again. Ten a minute, over five to
                                                      ten minutes, are many; drivers log Xid 92, which the maker says to
                                                      ignore. With other signs of the same GPU they support a claim
  few spare rows left                                 nothing yet: the next errors there make a remap fail
  ECC is off                                          switch it on (nvidia-smi -e 1) and reset, where that is not wanted

A GPU that has no such counters (GeForce, MIG, ECC off) has no fault that could be seen here. A GPU that is lost and an
NVML that does not answer are "cannot tell": GpuLost tells of them. "no permission" is cured by running as root.
Another code with "does not report its ...", or NVML that cannot be asked or makes no sense: --explain shows what it
says; driver and pynvml (nvidia-ml-py) must fit each other.

Exit codes: 0 no fault, 1 fault, 2 cannot tell.
"""

import os.path
import sys

sys.path.append(os.path.realpath(f"{__file__}/../.."))  # where nodelib/ is; python3 -I leaves it out

from nodelib.state import slots

if __name__ == "__main__":
    slots.take()  # before all that costs memory

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from nodelib.contract.detector import Detector, Findings, Run, explain, main
from nodelib.contract.npd import Verdict
from nodelib.nvml.client import parser
from nodelib.nvml.ecc import Sample, Samples, often, sampled
from nodelib.nvml.memory_signs import NEEDED, SHAPES, WAITING, WARNINGS, MemorySign, fact, faulty, odd, told
from nodelib.nvml.results import GpuReadings, absent, doubts, look, views

FAULTS = WAITING


class Memory(NamedTuple):
    """Samples of corrected errors that runs of this boot took, by UUID."""

    corrected: Mapping[str, Sequence[Sample]] = {}


def judge(seen: GpuReadings, samples: Samples | None = None) -> tuple[Verdict, str]:
    """Turn what was read into a verdict and its line: any fault outranks any doubt, any doubt outranks health."""
    doubtful = [*doubts(seen, NEEDED), *odd(seen)]
    for verdict, texts in ((Verdict.FAULT, told(FAULTS, seen)), (Verdict.UNKNOWN, doubtful)):
        if texts:
            return verdict, "; ".join(texts)
    return Verdict.OK, "; ".join([absent(seen) or "no GPU has a memory fault", *told(warnings(samples or {}), seen)])


def warnings(samples: Samples) -> tuple[MemorySign, ...]:
    """Return the signs that are no faults."""
    many = MemorySign("many corrected memory errors", "", lambda gpu: often(samples.get(gpu.uuid, ())))
    return (many, *WARNINGS)


def check(run: Run[Memory]) -> Findings:
    """One run: look, judge, and count corrected errors for later runs."""
    seen, past = look(run.options, SHAPES), run.last.corrected
    counts = {gpu.uuid: fact(gpu, "corrected errors", "volatile") for gpu in seen.answering}
    samples = {**past, **{uuid: sampled(past.get(uuid, ()), run.now, n) for uuid, n in counts.items()}}
    verdict, line = judge(seen, samples)
    return Findings(
        verdict,
        line,
        Memory(samples),
        evidence=lambda: {"gpus": faulty(FAULTS, seen.gpus)},
        explain=lambda: explain({**views(seen), "corrected errors": samples}, checks(seen, samples), verdict),
    )


def checks(seen: GpuReadings, samples: Samples) -> dict[str, str]:
    """Return what each sign and each doubt says, by its name."""
    all_signs = (*FAULTS, *warnings(samples))
    signs = {sign.words: ", ".join(gpu.name for gpu in seen.gpus if sign.shows(gpu)) for sign in all_signs}
    return {**signs, "doubts": "; ".join([*doubts(seen, NEEDED), *odd(seen)])}


DETECTOR = Detector("gpu_ecc", "GpuEccFault", check, Memory)


if __name__ == "__main__":
    main(parser(__doc__).parse_args(), DETECTOR)
