#!/usr/bin/env -S python3 -I -S -B
"""Condition NodeVersions: with which versions and settings this node runs. True means: they were read.

The controller compares the nodes of a group, and says by the Condition NodeDrift that one differs from nearly all
others. The line, for example `kernel=6.8.0-50-generic bios=2.1.3 gpu=NVIDIA-H100-80GB-HBM3 driver=580.82.07
gsp=580.82.07 vbios=96.00.89.00.01 nics=28.42.1000 persistence=on power-limit=700 max-clocks=1980/2619`:

  kernel        the kernel that runs
  bios          the version of the machine's BIOS
  gpu           the model of the GPUs
  driver        the NVIDIA driver that is loaded
  gsp           the firmware of the GPUs, N/A where the driver does not use it
  vbios         the BIOS of the GPUs
  inforom       the image of their InfoROM
  nvswitch      the BIOS of the NVSwitches
  nics          the firmware of RDMA devices
  persistence   the persistence mode of the GPUs: on or off
  power-limit   W
  max-clocks    the highest clocks, SM/memory, in MHz
  app-clocks    the clocks of applications, in MHz; newer drivers have none

Where devices of a kind differ, each value stands there once. What a node has not is left out, and so is what a device
does not tell, or tells cut off: then nobody can tell it, and --explain says why. Clocks that are locked by nvidia-smi
--lock-gpu-clocks are not seen: NVML does not tell them.

Exit codes: 1 read, 2 cannot tell (nothing could be read).
"""

import os.path
import sys

sys.path.append(os.path.realpath(f"{__file__}/../.."))  # where nodelib/ is; python3 -I leaves it out

from nodelib.state import slots

if __name__ == "__main__":
    slots.take()  # before all that costs memory

from collections.abc import Callable, Mapping
from typing import Any

from nodelib.contract.detector import Detector, Findings, Nothing, Run, explain, main
from nodelib.contract.npd import Verdict
from nodelib.host.child_process import ChildAnswer
from nodelib.host.driver import is_loaded
from nodelib.host.versions import VersionFiles, line, read, word
from nodelib.nvml.client import nvml, parser
from nodelib.nvml.results import Shapes, read_gpus

CLOCKS = {"sm": "number", "memory": "number"}
SHAPES: Shapes = {
    "InfoROM": {"versions": "texts"},
    "persistence mode": {"on": "number"},
    "power limit": {"milliwatts": "number"},
    "highest clocks": CLOCKS,
    "application clocks": CLOCKS,
}
# By kind: the question that tells it, and the word for its answer.
TOLD: Mapping[str, tuple[str, Callable[[Mapping[str, Any]], str]]] = {
    "inforom": ("InfoROM", lambda answer: "".join(answer["versions"])),
    "persistence": ("persistence mode", lambda answer: "on" if answer["on"] else "off"),
    "power-limit": ("power limit", lambda answer: f"{answer['milliwatts'] / 1000:g}"),
    "max-clocks": ("highest clocks", lambda answer: f"{answer['sm']}/{answer['memory']}"),
    "app-clocks": ("application clocks", lambda answer: f"{answer['sm']}/{answer['memory']}"),
}


def told_by_nvml(answer: ChildAnswer) -> tuple[dict[str, str], dict[str, str]]:
    """Return the kinds that every GPU tells, and why others are left out."""
    try:
        gpus = read_gpus(answer.answers, SHAPES)
    except ValueError as error:
        return {}, {"NVML": answer.why or str(error)}
    facts, why = {}, {}
    for kind, (question, words) in TOLD.items():
        if silent := [gpu.name for gpu in gpus if gpu.error or question not in gpu.facts]:
            why[kind] = f"{', '.join(silent)} does not tell its {question}"
        elif gpus:
            facts[kind] = word(words(gpu.facts[question]) for gpu in gpus)
    return facts, why


def check(run: Run[Nothing]) -> Findings:
    """One run: read it all. Without a driver there is nobody to ask."""
    facts, why = read(VersionFiles(run.options.proc, run.options.sys))
    if is_loaded(run.options.proc):
        more, unknown = told_by_nvml(nvml(run.options))
        facts, why = {**facts, **more}, {**why, **unknown}
    verdict = Verdict.FAULT if facts else Verdict.UNKNOWN  # FAULT is True: it has read
    text = line(facts) if facts else f"nothing can be read: {next(iter(why.values()), 'no file is there')}"
    return Findings(verdict, text, explain=lambda: explain(facts, why, verdict))


DETECTOR = Detector("node_versions", "NodeVersions", check)


if __name__ == "__main__":
    main(parser(__doc__).parse_args(), DETECTOR)
