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

from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from nodelib.contract.detector import clock, explain, keep_evidence, main
from nodelib.contract.npd import Verdict, boot_id, write_json
from nodelib.nvml.client import parser
from nodelib.nvml.ecc import Samples, often, read_samples, sampled
from nodelib.nvml.memory_signs import FEW_ROWS, SHAPES, Sign, fact, faulty, pages, told
from nodelib.nvml.results import GpuReadings, absent, doubts, look, views
from nodelib.state.debounce import memory

NAME = "gpu_memory_warning"
NEEDED = {name: SHAPES[name] for name in ("corrected errors", "spare rows", "retired pages")}


class Past(NamedTuple):
    """What is known of this boot, by UUID: samples of corrected errors; retired pages at first sight."""

    corrected: Samples
    pages: Mapping[str, int]


def advance(past: Past, seen: GpuReadings, now: float) -> Past:
    """Return what is known after this run."""
    counts = {gpu.uuid: fact(gpu, "corrected errors", "volatile") for gpu in seen.answering}
    samples = {uuid: sampled(past.corrected.get(uuid, ()), now, count) for uuid, count in counts.items()}
    first = {gpu.uuid: pages(gpu) for gpu in seen.answering if "retired pages" in gpu.facts}
    return Past({**past.corrected, **samples}, {**first, **past.pages})


def signs(past: Past) -> tuple[Sign, ...]:
    """Return the signs, held against what is known."""
    return (
        Sign("many corrected memory errors", "", lambda gpu: often(past.corrected.get(gpu.uuid, ()))),
        FEW_ROWS,
        Sign("retired pages grow", "", lambda gpu: pages(gpu) > past.pages.get(gpu.uuid, pages(gpu))),
    )


def judge(seen: GpuReadings, past: Past) -> tuple[Verdict, str]:
    """Turn what was read, and what is known with it, into a verdict and its line."""
    # Its policy runs nothing on the node, not even collect-diagnostics: so the line itself has the serial numbers.
    warnings = told(signs(past), seen, lambda gpu: gpu.board)
    for verdict, texts in ((Verdict.FAULT, warnings), (Verdict.UNKNOWN, doubts(seen, NEEDED))):
        if texts:
            return verdict, "; ".join(texts)
    return Verdict.OK, absent(seen) or "the memory of no GPU shows wear"


def recall(path: Path, boot: str) -> Past:
    """Return what the last run of this boot knew; what makes no sense is left out."""
    saved = memory(path, boot)
    first = saved.get("pages")
    counts = first if isinstance(first, dict) else {}
    return Past(read_samples(saved.get("corrected")), {uuid: n for uuid, n in counts.items() if type(n) is int})


def check(options: Namespace) -> tuple[Verdict, str]:
    """One run: look, remember, judge, keep the evidence."""
    path, boot, seen = options.state / f"{NAME}.json", boot_id(options.proc), look(options, SHAPES)
    past = advance(recall(path, boot), seen, clock(options))
    verdict, line = judge(seen, past)
    if options.explain:
        shown = {sign.words: ", ".join(gpu.name for gpu in seen.gpus if sign.shows(gpu)) for sign in signs(past)}
        explain({**views(seen), **past._asdict()}, {**shown, "doubts": "; ".join(doubts(seen, NEEDED))}, verdict)
        return verdict, line
    write_json(path, {"boot_id": boot, **past._asdict()})
    record = {"condition": "GpuMemoryWarning", "line": line, "gpus": faulty(signs(past), seen.gpus)}
    keep_evidence(options.state, NAME, verdict, record)
    return verdict, line


if __name__ == "__main__":
    main(parser(__doc__).parse_args(), NAME, check)
