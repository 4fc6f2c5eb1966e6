#!/usr/bin/env -S python3 -I -S -B
"""Condition GpuEccFault: a GPU has lost data in its memory, or waits for a reset to put bad memory out of use.

Faults, and what cures them:

  uncorrected memory errors since the driver loaded   reset the GPU (its memory's contents are not to be trusted)
  row remap pending, page retirement pending          reset the GPU; the jobs on it are safe, so wait until it is idle
  row remap failed                                    replace the GPU: spare rows have run out
  memory that cannot be repaired                      replace the GPU: the driver itself says so (since 590)
  SRAM error threshold exceeded                       replace the GPU
  too many retired pages                              replace the GPU: 60 of the 64 that it can retire

A reset or a reboot clears the first two kinds. The third comes back: run the maker's field diagnostic and have the GPU
replaced; serial number, UUID and counters as they were at first sight are in <state>/evidence/gpu_ecc.json.

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

from argparse import Namespace
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from nodelib.contract.detector import clock, explain, keep_evidence, main
from nodelib.contract.npd import Verdict, boot_id, read_json, write_json
from nodelib.nvml.client import parser
from nodelib.nvml.ecc import QUESTIONS, Sample, often, sampled
from nodelib.nvml.results import Gpu, GpuReadings, absent, doubts, look, views

NAME = "gpu_ecc"
MOST_PAGES = 60  # a card has room for 64 retired pages (NVIDIA, GPU memory error management: row remapping)
COUNTER_CHARS = 800  # evidence must fit into the 4096 characters that collect-diagnostics has for all that it finds
INVALID_ARGUMENT = 2
RESET, REPLACE = "reset", "replace"

Samples = dict[str, list[Sample]]  # of corrected errors, by UUID


class Sign(NamedTuple):
    """Something that a GPU's counters show. `remedy`: what to do with the GPU, "" for nothing."""

    words: str
    remedy: str
    shows: Callable[[Gpu], bool]


# In the order of the line: what cannot be cured on the node comes first.
FAULTS: tuple[Sign, ...] = (
    Sign("row remap failed", REPLACE, lambda gpu: fact(gpu, "row remap", "failed") > 0),
    Sign("memory that cannot be repaired", REPLACE, lambda gpu: fact(gpu, "unrepairable memory", "flag") > 0),
    Sign("SRAM error threshold exceeded", REPLACE, lambda gpu: fact(gpu, "SRAM", "exceeded") > 0),
    Sign("too many retired pages", REPLACE, lambda gpu: _pages(gpu) >= MOST_PAGES),
    Sign(
        "uncorrected memory errors since the driver loaded",
        RESET,
        lambda gpu: fact(gpu, "uncorrected errors", "volatile") > 0,
    ),
    Sign("row remap pending", RESET, lambda gpu: fact(gpu, "row remap", "pending") > 0),
    Sign("page retirement pending", RESET, lambda gpu: fact(gpu, "retired pages", "pending") > 0),
)
WARNINGS: tuple[Sign, ...] = (
    Sign("few spare rows left", "", lambda gpu: fact(gpu, "spare rows", "low") + fact(gpu, "spare rows", "none") > 0),
    Sign("ECC is off", "", lambda gpu: gpu.facts.get("ECC mode", {}).get("current") == 0),
)
# The numbers that faults rest on: a GPU must tell them or say that it has no such thing.
NEEDED = {
    "uncorrected errors": {"volatile": "number"},
    "row remap": {"pending": "number", "failed": "number"},
    "SRAM": {"exceeded": "number"},
    "retired pages": {"single": "number", "double": "number", "pending": "number"},
}
SHAPES = {
    **NEEDED,
    "unrepairable memory": {"flag": "number"},
    "corrected errors": {"volatile": "number"},
    "spare rows": {"low": "number", "none": "number"},
    "ECC mode": {"current": "number"},
}


def fact(gpu: Gpu, question: str, name: str) -> int:
    """Return one number, 0 where the GPU does not report it."""
    return int(gpu.facts.get(question, {}).get(name, 0))


def _pages(gpu: Gpu) -> int:
    return fact(gpu, "retired pages", "single") + fact(gpu, "retired pages", "double")


def judge(seen: GpuReadings, samples: Mapping[str, list[Sample]] | None = None) -> tuple[Verdict, str]:
    """Turn what was read into a verdict and its line: any fault outranks any doubt, any doubt outranks health."""
    doubtful = [*doubts(seen, NEEDED), *odd(seen)]
    for verdict, texts in ((Verdict.FAULT, told(FAULTS, seen)), (Verdict.UNKNOWN, doubtful)):
        if texts:
            return verdict, "; ".join(texts)
    return Verdict.OK, "; ".join([absent(seen) or "no GPU has a memory fault", *told(warnings(samples or {}), seen)])


def odd(seen: GpuReadings) -> list[str]:
    """Return which answers make no sense though they are of the right shape: questions put wrongly, counts below 0."""
    return [
        f"{gpu.name} does not report its {question} in a way that makes sense"
        for gpu in seen.answering
        for question, names in NEEDED.items()
        if gpu.refused.get(question) == INVALID_ARGUMENT or any(fact(gpu, question, name) < 0 for name in names)
    ]


def warnings(samples: Mapping[str, list[Sample]]) -> tuple[Sign, ...]:
    """Return the signs that are no faults."""
    many = Sign("many corrected memory errors", "", lambda gpu: often(samples.get(gpu.uuid, ())))
    return (many, *WARNINGS)


def told(signs: tuple[Sign, ...], seen: GpuReadings) -> list[str]:
    """Return a text for each sign that some GPU shows, naming those GPUs."""
    shown = [(sign, [gpu.name for gpu in seen.gpus if sign.shows(gpu)]) for sign in signs]
    return [f"{_title(sign)}: {', '.join(names)}" for sign, names in shown if names]


def _title(sign: Sign) -> str:
    return f"{sign.words} ({sign.remedy})" if sign.remedy else sign.words


def faulty(gpus: tuple[Gpu, ...]) -> list[dict[str, Any]]:
    """Return who the faulty GPUs are and each counter that is not 0; of many GPUs the last ones without counters."""
    bad = [gpu for gpu in gpus if any(sign.shows(gpu) for sign in FAULTS)]
    rows = []
    for gpu in bad:
        facts = {question: gpu.facts[question] for question in QUESTIONS if question in gpu.facts}
        counters = {f"{question}: {name}": n for question, counts in facts.items() for name, n in counts.items() if n}
        rows.append({**gpu.who, "counters": counters} if len(str(rows)) < COUNTER_CHARS else gpu.who)
    return rows


def recall(path: Path, boot: str) -> Samples:
    """Return the samples that earlier runs of this boot took, without any that make no sense."""
    memory = read_json(path)
    kept = memory.get("corrected") if memory.get("boot_id") == boot else None
    kept = kept if isinstance(kept, dict) else {}
    return {uuid: [(at, n) for at, n in samples] for uuid, samples in kept.items() if _are_samples(samples)}


def _are_samples(samples: Any) -> bool:
    if not isinstance(samples, list) or not all(isinstance(sample, list) and len(sample) == 2 for sample in samples):
        return False
    return all(type(at) in (int, float) and type(n) is int for at, n in samples)


def check(options: Namespace) -> tuple[Verdict, str]:
    """One run: look, judge, keep the evidence and count corrected errors for later runs."""
    path, boot, seen = options.state / f"{NAME}.json", boot_id(options.proc), look(options, SHAPES)
    counts = {gpu.uuid: fact(gpu, "corrected errors", "volatile") for gpu in seen.answering}
    past = recall(path, boot)
    samples = {**past, **{uuid: sampled(past.get(uuid, ()), clock(options), n) for uuid, n in counts.items()}}
    write_json(path, {"boot_id": boot, "corrected": samples})
    verdict, line = judge(seen, samples)
    record = {"condition": "GpuEccFault", "line": line, "gpus": faulty(seen.gpus)}
    keep_evidence(options.state, NAME, verdict, record)
    if options.explain:
        explain({**views(seen), "corrected errors": samples}, checks(seen, samples), verdict)
    return verdict, line


def checks(seen: GpuReadings, samples: Samples) -> dict[str, str]:
    """Return what each sign and each doubt says, by its name."""
    all_signs = (*FAULTS, *warnings(samples))
    signs = {sign.words: ", ".join(gpu.name for gpu in seen.gpus if sign.shows(gpu)) for sign in all_signs}
    return {**signs, "doubts": "; ".join([*doubts(seen, NEEDED), *odd(seen)])}


if __name__ == "__main__":
    main(parser(__doc__).parse_args(), NAME, check)
