#!/usr/bin/env -S python3 -E -s -S -B
"""Condition GpuLost: a GPU that should be on this node does not answer.

Four views are compared, because there are real losses that only one of them shows: PCI (the configuration space of a
fallen device reads all ones), the driver's list under /proc, the device nodes, and NVML. How many GPUs there should be
is declared (--expected) or learned as the most that was ever seen; a learned number lasts as long as the state folder,
on a memory file system until the reboot, so declare it where you can. What the kubelet offers is not compared: that
takes an API token, which a detector does not have.

NVML is asked by a child that can be left behind. No answer by --deadline (longer than the 45 s after which the driver
gives up on one call to the GPU's own processor) is a fault too: NvmlHung. A GPU bound to another driver (vfio-pci) and
one that the driver was told to exclude are not lost. A driver that is not loaded at all is "cannot tell" for 15
minutes, the time to install one, and a fault after that. How long a fault must hold before anything is done is up to
the policy.

Remedy: drain the node and reboot it; a device that has fallen off the bus rarely comes back by a reset. If the same GPU
is lost again, have it and its riser looked at: serial number and UUID are in <state>/evidence/gpu_lost.json.
"version mismatch" means that the driver was upgraded under running processes; the reboot loads the new one.

Exit codes: 0 every GPU answers, 1 fault, 2 cannot tell.
"""

import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

from _asking import main, parser
from _detector import clock, explain, keep_evidence
from _gpus import read_driver, read_nodes, read_pci
from _nvml import answering, child
from _presence import DOUBTS, FAULTS, Seen, judge
from _probe import ask
from _verdict import Verdict, read_json, write_json

NAME = "gpu_lost"


def look(options: Namespace, memory: dict[str, Any], now: float) -> Seen:
    """Read every view; when this returns the child that asks NVML has ended or is left behind."""
    driven = read_driver(options.proc)
    missing_since = memory.get("without_driver_since")
    return Seen(
        cards=read_pci(options.sys),
        driven=driven,
        nodes=read_nodes(options.dev),
        nvml=ask(child(__file__, options.pynvml), options.state, NAME, options.deadline),
        expected=memory.get("learned") if options.expected is None else options.expected,
        without_driver=now - missing_since if isinstance(missing_since, int | float) and driven is None else 0.0,
    )


def recall(path: Path) -> dict[str, Any]:
    """Return what the last run remembered; {} when there is nothing or it makes no sense."""
    memory = read_json(path)
    gpus = memory.get("gpus")
    sound = isinstance(gpus, dict) and all(isinstance(gpu, dict) for gpu in gpus.values())
    return memory if sound and isinstance(memory.get("learned"), int | None) else {}


def remember(memory: dict[str, Any], seen: Seen, now: float) -> dict[str, Any]:
    """Return what the next run must know: the most GPUs ever seen, who they are, and since when there is no driver."""
    since = memory.get("without_driver_since")
    gpus = dict(memory.get("gpus") or {})
    gpus.update({address: {"uuid": gpu.uuid, **gpus.get(address, {})} for address, gpu in (seen.driven or {}).items()})
    for gpu in answering(seen.nvml.said):
        gpus[gpu.get("address", "")] = {key: gpu[key] for key in ("uuid", "serial") if key in gpu}
    most = max(memory.get("learned") or 0, seen.total or 0)
    return {
        "learned": most or None,
        "gpus": gpus,
        "without_driver_since": (now if since is None else since) if seen.driven is None else None,
    }


def lost(memory: dict[str, Any], seen: Seen) -> list[dict[str, Any]]:
    """Return what a person, or the hardware's maker, asks for first: which GPUs do not answer, by serial number."""
    silent = set(memory["gpus"]) - {gpu.get("address") for gpu in answering(seen.nvml.said)}
    return [{"address": address, **memory["gpus"][address]} for address in sorted(silent)]


def check(options: Namespace) -> tuple[Verdict, str]:
    """One run: look, judge, remember."""
    now = clock(options)
    path = options.state / f"{NAME}.json"
    memory = recall(path)
    seen = look(options, memory, now)
    verdict, line = judge(seen)
    memory = remember(memory, seen, now)
    write_json(path, memory)
    found = {"condition": "GpuLost", "line": line, "lost": lost(memory, seen)}
    keep_evidence(options.state, NAME, verdict, found)
    if options.explain:
        explain({**seen._asdict(), "counted": seen.total}, checks(seen), verdict)
    return verdict, line


def checks(seen: Seen) -> dict[str, str]:
    """Return what each view of faults and doubts says, by its name."""
    return {
        f"{kind} {view.__name__.strip('_')}": "; ".join(sorted(view(seen)))
        for kind, views in (("fault", FAULTS), ("doubt", DOUBTS))
        for view in views
    }


def parse(arguments: list[str]) -> Namespace:
    """Return the options."""
    options = parser(__doc__)
    options.add_argument(
        "--expected", type=int, help="GPUs that should be on the PCI bus (default: the most ever seen)"
    )
    return options.parse_args(arguments)


if __name__ == "__main__":
    main(parse(sys.argv[1:]), NAME, {}, check)
