#!/usr/bin/env -S python3 -I -S -B
"""Condition NvmlHung: NVML has not answered for longer than the driver itself waits for a GPU.

It is asked by the child that asks for all detectors; no answer by --deadline is a fault until one comes. Alone it
proves nothing of the hardware: many programs that ask at once (nvidia-smi, bug reports, DCGM profiling) look the same,
and so does a GPU whose own processor does not answer, for 45 s a call. So nothing is done to the node; where the driver
logs an error of the GPU beside it (Xid 119, 120, 79), GpuXid acts.

Remedy: look for who asks (fuser -v /dev/nvidiactl), end what asks too often, and look at the kernel's log. Where it
stays for an hour, and jobs do not compute either, drain and reboot.

Told as "cannot tell": a child that ended early, or that has no module pynvml (nvidia-ml-py). A node without NVIDIA
driver, and an NVML that refuses, are fine here: GpuLost tells of them.

Exit codes: 0 NVML answers, 1 it hangs, 2 cannot tell.
"""

import os.path
import sys

sys.path.append(os.path.realpath(f"{__file__}/../.."))  # where nodelib/ is; python3 -I leaves it out

from nodelib.state import slots

if __name__ == "__main__":
    slots.take()  # before all that costs memory

from nodelib.contract.detector import Detector, Findings, Nothing, Run, explain, main
from nodelib.contract.npd import Verdict
from nodelib.host.child_process import ChildAnswer
from nodelib.host.gpus import read_pci
from nodelib.nvml.client import nvml, parser


def judge(answer: ChildAnswer, bus: bool) -> tuple[Verdict, str]:
    """Turn what the child said, or did not say, into a verdict and its line. `bus`: whether PCI can be read."""
    if answer.silent_since:
        return (
            Verdict.FAULT,
            f"NVML has not answered since {answer.silent_since} at {answer.answers.get('at', 'start')}",
        )
    if answer.answers.get("done") is not True or "failed" in answer.answers:
        return Verdict.UNKNOWN, f"NVML cannot be asked: {answer.answers.get('failed', answer.why) or 'no full answer'}"
    if answer.answers.get("init") and not bus:
        return Verdict.UNKNOWN, "neither PCI nor NVML can be read"
    return Verdict.OK, "NVML answers"


def check(run: Run[Nothing]) -> Findings:
    """One run: ask and judge."""
    answer = nvml(run.options)
    verdict, line = judge(answer, read_pci(run.options.sys) is not None)
    shown = answer._replace(answers={"at": answer.answers.get("at")})
    return Findings(verdict, line, evidence=dict, explain=lambda: explain({"nvml": shown}, {}, verdict))


DETECTOR = Detector("nvml_hung", "NvmlHung", check)


if __name__ == "__main__":
    main(parser(__doc__).parse_args(), DETECTOR)
