#!/usr/bin/env -S python3 -I -S -B
"""Condition GpuRecoveryRequired: the driver itself says that a GPU needs a reset, a reboot or more.

Since version 570 the driver decides after each error what has to be done, and NVML shows it (field 230, what Xid 154
logs). It knows more of the fault than any counter, so do what it asks for:

  GPU reset             drain the node's jobs off this GPU and reset it (nvidia-smi -r -i INDEX, or the operation
                        reset-gpu); where a process holds it that cannot be ended, reboot
  node reboot           drain the node and reboot it; a reset will not do
  drain P2P             let no new job use NVLink peers of this GPU, end those that run, switch UVM persistence mode
                        off; then ask again: the driver may want nothing more
  recover IMEX domain   the multi-node NVLink domain lost a member: find the node that failed first, mend it, restart
                        the IMEX service (nvidia-imex) on every node of the domain; nothing is wrong with this node
  bus reset             drain the node and reset the GPU's PCI bus, or reboot; a GPU reset will not do
  system reboot         drain the node and reboot it; where it comes back, power it off and on again
  unknown action N      newer than this list, or its meaning differs from driver to driver and this one's version is
                        not known: drain the node, and see the driver's release notes

Not told of here is "drain and reset": jobs that run are safe, and the reset waits until the node is idle (GpuEccFault).

Where the same GPU asks again after that, run the maker's field diagnostic; serial number and UUID are in
<state>/evidence/gpu_recovery.json.

Two runs in a row must find something asked for, because a wish may be carried out and withdrawn at once; at first sight
it is "cannot tell". Runs to which NVML's one answer was good enough count as one, runs that could not tell as none. A
driver that does not know the field is fine, with a word on that. A GPU that is lost and an NVML that does not answer
are "cannot tell": GpuLost tells of them. "no permission" is cured by running as root.
Another code with "does not report its ...", or NVML that cannot be asked or makes no sense: --explain shows what it
says; driver and pynvml (nvidia-ml-py) must fit each other.

Exit codes: 0 nothing asked for, 1 fault, 2 cannot tell.
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

from nodelib.contract.detector import explain, keep_evidence, main
from nodelib.contract.npd import Verdict, boot_id, read_json, write_json
from nodelib.nvml.client import parser
from nodelib.nvml.memory_signs import DRAIN_AND_RESET
from nodelib.nvml.recovery import QUESTIONS, meaning
from nodelib.nvml.results import Gpu, GpuReadings, absent, doubts, look, views

NAME = "gpu_recovery"
[QUESTION] = QUESTIONS
SHAPES = {QUESTION: {"action": "number"}}
TIMES = 2  # answers in a row


class Memory(NamedTuple):
    """What NVML's last answer was: when it was asked for, and how many in a row wanted something of a GPU, by UUID."""

    asked_at: float = -1.0
    times: Mapping[str, int] = {}


def action(gpu: Gpu) -> int:
    """Return what the driver wants of one GPU now, 0 for nothing or not told."""
    number = int(gpu.facts.get(QUESTION, {}).get("action", 0))
    return 0 if number == DRAIN_AND_RESET else number


def wish(gpu: Gpu, driver: str) -> str:
    """Say what the driver, of this version, wants of one GPU.

    >>> wish(Gpu(0, 0, "0000:3b:00.0", "GPU-9f3c01ab-77aa", facts={"recovery action": {"action": 1}}), "")
    'the driver wants GPU reset of 0000:3b:00.0 (GPU-9f3c01ab)'
    """
    return f"the driver wants {meaning(action(gpu), driver) or f'unknown action {action(gpu)}'} of {gpu.name}"


def count(seen: GpuReadings, before: Memory) -> Memory:
    """Add this answer to what is remembered; one that was counted already, and GPUs that do not tell, add nothing."""
    asked_at = seen.nvml.said.get("asked_at")
    if not seen.gpus or asked_at == before.asked_at or type(asked_at) not in (int, float):
        return before
    told = {gpu.uuid: action(gpu) for gpu in seen.gpus if QUESTION in gpu.facts}
    times = {uuid: before.times.get(uuid, 0) + 1 for uuid, wanted in told.items() if wanted}
    silent = {uuid: n for uuid, n in before.times.items() if uuid not in told}
    return Memory(asked_at, {**silent, **times})


def judge(seen: GpuReadings, memory: Memory) -> tuple[Verdict, str]:
    """Turn what was read, and counted in `memory`, into a verdict and its line: fault before doubt before health."""
    asked = [gpu for gpu in seen.gpus if action(gpu)]
    lasting = [wish(gpu, seen.driver) for gpu in asked if memory.times.get(gpu.uuid, 0) >= TIMES]
    if lasting:
        return Verdict.FAULT, "; ".join(lasting)
    doubtful = [
        *doubts(seen, SHAPES),
        *(f"{wish(gpu, seen.driver)} (to be confirmed by the next run)" for gpu in asked),
    ]
    if doubtful:
        return Verdict.UNKNOWN, "; ".join(doubtful)
    later = [gpu.name for gpu in seen.answering if gpu.facts.get(QUESTION, {}).get("action") == DRAIN_AND_RESET]
    unaware = [gpu.name for gpu in seen.answering if QUESTION not in gpu.facts]
    words = [f"it knows of no such thing at {', '.join(unaware)}"] if unaware else []
    words += [f"drain and reset when idle (see GpuEccFault): {', '.join(later)}"] if later else []
    return Verdict.OK, "; ".join([absent(seen) or "the driver asks for no recovery", *words])


def recall(path: Path, boot: str) -> Memory:
    """Return what earlier runs of this boot remembered; nothing where that makes no sense."""
    content = read_json(path)
    asked_at, times = content.get("asked_at"), content.get("times")
    sound = type(asked_at) in (int, float) and isinstance(times, dict) and all(type(n) is int for n in times.values())
    return Memory(asked_at, times) if sound and content.get("boot_id") == boot else Memory()


def check(options: Namespace) -> tuple[Verdict, str]:
    """One run: look, count, judge, keep the evidence."""
    path, boot, seen = options.state / f"{NAME}.json", boot_id(options.proc), look(options, SHAPES)
    memory = count(seen, recall(path, boot))
    write_json(path, {"boot_id": boot, **memory._asdict()})
    verdict, line = judge(seen, memory)
    wanted = [{**gpu.who, "action": action(gpu)} for gpu in seen.gpus if action(gpu)]
    keep_evidence(options.state, NAME, verdict, {"condition": "GpuRecoveryRequired", "line": line, "gpus": wanted})
    if options.explain:
        explain({**views(seen), "counted": memory}, checks(seen), verdict)
    return verdict, line


def checks(seen: GpuReadings) -> dict[str, str]:
    """Return what is wanted, and what is doubtful."""
    wishes = "; ".join(wish(gpu, seen.driver) for gpu in seen.gpus if action(gpu))
    return {"wanted": wishes, "doubts": "; ".join(doubts(seen, SHAPES))}


if __name__ == "__main__":
    main(parser(__doc__).parse_args(), NAME, check)
