#!/usr/bin/env -S python3 -I -S -B
"""Condition GpuLost: a GPU that should be on this node does not answer.

Four views are compared, because there are real losses that only one of them shows: PCI (the configuration space of a
fallen device reads all ones), the driver's list under /proc, the device nodes, and NVML. How many GPUs there should be
is declared (--expected) or learned as the most that was ever seen; a learned number lasts as long as the state folder,
on a memory file system until the reboot, so declare it where you can.

NVML is asked by a child that can be left behind, one for all detectors. No answer by --deadline (longer than the 45 s
after which the driver gives up on one call to the GPU's own processor) is "cannot tell": NvmlHung is a Condition of its
own. A GPU bound to another driver (vfio-pci) and one that the driver was told to exclude are not lost. A driver that is
not loaded at all is "cannot tell" for 15 minutes, the time to install one, or for two hours while the Pod of a driver
in a container is at work (it may build it for a new kernel), and a fault after that. How long a fault must hold before
anything is done is up to the policy.

Faults, and what cures them:

  has fallen off the bus, has left PCI     drain, reboot; a reset rarely brings it back. Power off and on if it stays
  GPU is lost, not found, unknown error    drain, reboot
  requires reset                           drain, reset the GPU (reset-gpu); reboot where it is refused
  has no driver: its probe failed          drain, reboot; the kernel's log says why ("RmInitAdapter failed")
  the driver is not loaded                 install or load the driver; look at its pod, or at dkms after an upgrade;
                                           where nouveau or nova_core has the GPUs (lspci -k), blacklist it
  NVML does not start: unknown error       drain, reboot
  is missing in NVML, fewer GPUs than PCI  drain, reboot
  /dev/nvidiaN is missing                  nvidia-modprobe -c=N, or start nvidia-persistenced; else reload the driver
  N GPUs expected, M present               reboot; or correct --expected where a GPU was taken out

If the same GPU is lost again, have it and its riser looked at: serial number and UUID are in
<state>/evidence/gpu_lost.json.

PCI or NVML that "cannot be read" or asked for another cause: run node-problem-detector privileged, with the node's own
/sys and /proc; "is not loaded (yet)", "no full answer": the next runs decide; "NvmlHung": see the Condition of that
name. "cannot tell" with code 12: neither the node's libnvidia-ml.so.1 beside a /dev/nvidiactl (--driver-root) nor one
of our own (LD_LIBRARY_PATH) is found; code 18, mismatch: no GPU is lost, see DriverMismatch; code 4: run as root; "no
GPU seen and none declared": say --expected 0 where there is none.

What the kubelet offers (--kubelet) is a fifth view that never decides: the NVIDIA device plugin takes a device that it
found unhealthy out of the offer and does not put it back until it is started again, so that a whole GPU may be missing
there. Nothing is wrong with the hardware then, draining the node would end jobs that run well, and the API server shows
it, too (allocatable is less than capacity). It is told by --explain and a run by hand: "kubelet offers fewer GPUs than
NVML lists: restart the device plugin", which means: delete its pod on this node. The file that it is read from is the
kubelet's own and may be older than its last start.

Exit codes: 0 every GPU answers, 1 fault, 2 cannot tell.
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
from typing import Any, NamedTuple

from nodelib.contract.detector import Detector, Findings, Run, explain, fields, main
from nodelib.contract.memory import Scope
from nodelib.host.device_nodes import is_closed
from nodelib.host.driver import is_installing, roots
from nodelib.host.gpus import read_driver, read_nodes, read_offered, read_pci
from nodelib.nvml.client import nvml, parser
from nodelib.nvml.gpu_inventory import DOUBTS, FAULTS, NOTES, GpuViews, judge
from nodelib.nvml.queries import answering

KUBELET = "1/root/var/lib/kubelet"  # below /proc: the node's own, which this container need not mount


class Memory(NamedTuple):
    """The most GPUs ever seen, who they are, by address, and since when, in seconds since boot, there is no driver."""

    learned: int | None = None
    gpus: Mapping[str, Mapping[str, Any]] = {}
    without_driver_since: float | None = None


def look(options: Namespace, memory: Memory, now: float) -> GpuViews:
    """Read every view; when this returns the child that asks NVML has ended or is left behind."""
    driven = read_driver(options.proc)
    own = roots(options.proc, options.driver_root)[0] / "dev"  # where a driver in a container keeps its nodes
    since = memory.without_driver_since
    return GpuViews(
        cards=read_pci(options.sys),
        driven=driven,
        nodes=None if is_closed(own) else read_nodes(options.dev, own),
        offered=read_offered(options.kubelet or options.proc / KUBELET),
        nvml=nvml(options),
        expected=memory.learned if options.expected is None else options.expected,
        without_driver=now - since if since is not None and driven is None else 0.0,
        installing=driven is None and is_installing(options.proc),
    )


def remember(memory: Memory, seen: GpuViews, now: float) -> Memory:
    """Return what the next run must know."""
    since, gpus = memory.without_driver_since, dict(memory.gpus)
    gpus.update({address: {"uuid": gpu.uuid, **gpus.get(address, {})} for address, gpu in (seen.driven or {}).items()})
    for gpu in answering(seen.nvml.answers):
        gpus[gpu.get("address", "")] = {key: gpu[key] for key in ("uuid", "serial") if key in gpu}
    most = max(memory.learned or 0, seen.total or 0)
    return Memory(most or None, gpus, (now if since is None else since) if seen.driven is None else None)


def lost(memory: Memory, seen: GpuViews) -> list[dict[str, Any]]:
    """Return what a person, or the hardware's maker, asks for first: which GPUs do not answer, by serial number."""
    silent = set(memory.gpus) - {gpu.get("address") for gpu in answering(seen.nvml.answers)}
    return [{"address": address, **memory.gpus[address]} for address in sorted(silent)]


def check(run: Run[Memory]) -> Findings:
    """One run: look, judge, remember."""
    seen = look(run.options, run.last, run.now)
    verdict, line = judge(seen)
    memory = remember(run.last, seen, run.now)
    return Findings(
        verdict,
        line,
        memory,
        evidence=lambda: {"lost": lost(memory, seen)},
        explain=lambda: explain({**fields(seen), "GPUs seen": seen.total}, checks(seen), verdict),
    )


def checks(seen: GpuViews) -> dict[str, str]:
    """Return what each view says of faults, doubts and what is no fault, by its name."""
    return {
        f"{kind} {view.__name__.strip('_').replace('_', ' ')}": "; ".join(sorted(view(seen)))
        for kind, views in (("fault", FAULTS), ("doubt", DOUBTS), ("note", NOTES))
        for view in views
    }


def parse(arguments: list[str]) -> Namespace:
    """Return the options."""
    options = parser(__doc__)
    options.add_argument(
        "--expected", type=int, help="GPUs that should be on the PCI bus (default: the most ever seen)"
    )
    options.add_argument(
        "--kubelet", type=Path, metavar="FOLDER", help="the kubelet's own folder (the node's /var/lib/kubelet)"
    )
    args = options.parse_args(arguments)
    if args.expected is not None and args.expected < 0:
        options.error("argument --expected: a number of GPUs, 0 or more")
    return args


DETECTOR = Detector("gpu_lost", "GpuLost", check, Memory, Scope.NODE)


if __name__ == "__main__":
    main(parse(sys.argv[1:]), DETECTOR)
