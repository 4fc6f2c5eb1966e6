#!/usr/bin/env -S python3 -I -S -B
"""Condition GpuMemoryWarning: the memory of a GPU wears. Nothing is wrong yet, and nothing is to be done to the node.

Signs, each of which supports a claim together with others of the same GPU:

  many corrected memory errors     ten a minute over five to ten minutes; no data is lost (Xid 92)
  few spare rows left              the next errors there make a remap fail
  retired pages grow               GPUs before Ampere: more pages are retired than when this boot was first looked at

Tell whoever buys spares, and look at the history of its serial number. GpuMemoryWorn says when it has to be replaced.
Serial number, UUID and counters are in <state>/evidence/gpu_memory_warning.json.

A GPU that is lost and an NVML that does not answer are "cannot tell": GpuLost tells of them. "no permission" is cured
by running as root. Another code with "does not report its ...", or NVML that cannot be asked or makes no sense:
--explain shows what it says; driver and pynvml (nvidia-ml-py) must fit each other.

Exit codes: 0 no sign, 1 a sign, 2 cannot tell.
"""

import os.path
import sys

sys.path.append(os.path.realpath(f"{__file__}/../.."))  # where nodelib/ is; python3 -I leaves it out

from nodelib.state import slots

if __name__ == "__main__":
    slots.take()  # before all that costs memory

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from nodelib.contract.detector import Detector, Findings, Run, explain, fields, main
from nodelib.contract.npd import Verdict
from nodelib.nvml.client import parser
from nodelib.nvml.ecc import Sample, often, sampled
from nodelib.nvml.memory_signs import FEW_ROWS, SHAPES, MemorySign, fact, faulty, pages, told
from nodelib.nvml.results import GpuReadings, absent, doubts, look, views

NEEDED = {name: SHAPES[name] for name in ("corrected errors", "spare rows", "retired pages")}


class Past(NamedTuple):
    """What is known of this boot, by UUID: samples of corrected errors; retired pages at first sight."""

    corrected: Mapping[str, Sequence[Sample]] = {}
    pages: Mapping[str, int] = {}


def advance(past: Past, seen: GpuReadings, now: float) -> Past:
    """Return what is known after this run."""
    counts = {gpu.uuid: fact(gpu, "corrected errors", "volatile") for gpu in seen.answering}
    samples = {uuid: sampled(past.corrected.get(uuid, ()), now, count) for uuid, count in counts.items()}
    first = {gpu.uuid: pages(gpu) for gpu in seen.answering if "retired pages" in gpu.facts}
    return Past({**past.corrected, **samples}, {**first, **past.pages})


def signs(past: Past) -> tuple[MemorySign, ...]:
    """Return the signs, held against what is known."""
    return (
        MemorySign("many corrected memory errors", "", lambda gpu: often(past.corrected.get(gpu.uuid, ()))),
        FEW_ROWS,
        MemorySign("retired pages grow", "", lambda gpu: pages(gpu) > past.pages.get(gpu.uuid, pages(gpu))),
    )


def judge(seen: GpuReadings, past: Past) -> tuple[Verdict, str]:
    """Turn what was read, and what is known with it, into a verdict and its line."""
    # Its policy runs nothing on the node, not even collect-diagnostics: so the line itself has the serial numbers.
    warnings = told(signs(past), seen, lambda gpu: gpu.board)
    for verdict, texts in ((Verdict.FAULT, warnings), (Verdict.UNKNOWN, doubts(seen, NEEDED))):
        if texts:
            return verdict, "; ".join(texts)
    return Verdict.OK, absent(seen) or "the memory of no GPU shows wear"


def check(run: Run[Past]) -> Findings:
    """One run: look, remember, judge."""
    seen = look(run.options, SHAPES)
    past = advance(run.last, seen, run.now)
    verdict, line = judge(seen, past)
    return Findings(
        verdict,
        line,
        past,
        evidence=lambda: {"gpus": faulty(signs(past), seen.gpus)},
        explain=lambda: explain({**views(seen), **fields(past)}, checks(seen, past), verdict),
    )


def checks(seen: GpuReadings, past: Past) -> dict[str, str]:
    """Return what each sign and the doubts say, by name."""
    shown = {sign.words: ", ".join(gpu.name for gpu in seen.gpus if sign.shows(gpu)) for sign in signs(past)}
    return {**shown, "doubts": "; ".join(doubts(seen, NEEDED))}


DETECTOR = Detector("gpu_memory_warning", "GpuMemoryWarning", check, Past)


if __name__ == "__main__":
    main(parser(__doc__).parse_args(), DETECTOR)
