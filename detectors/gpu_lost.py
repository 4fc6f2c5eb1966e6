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
from pathlib import Path
from typing import Any

from nodelib.contract.detector import clock, explain, keep_evidence, main
from nodelib.contract.npd import Verdict, read_json, write_json
from nodelib.host.device_nodes import is_closed
from nodelib.host.driver import is_installing, roots
from nodelib.host.gpus import read_driver, read_nodes, read_offered, read_pci
from nodelib.nvml.client import nvml, parser
from nodelib.nvml.gpu_inventory import DOUBTS, FAULTS, NOTES, GpuViews, judge
from nodelib.nvml.queries import answering

NAME = "gpu_lost"
KUBELET = "1/root/var/lib/kubelet"  # below /proc: the node's own, which this container need not mount


def look(options: Namespace, memory: dict[str, Any], now: float) -> GpuViews:
    """Read every view; when this returns the child that asks NVML has ended or is left behind."""
    driven = read_driver(options.proc)
    own = roots(options.proc, options.driver_root)[0] / "dev"  # where a driver in a container keeps its nodes
    missing_since = memory.get("without_driver_since")
    return GpuViews(
        cards=read_pci(options.sys),
        driven=driven,
        nodes=None if is_closed(own) else read_nodes(options.dev, own),
        offered=read_offered(options.kubelet or options.proc / KUBELET),
        nvml=nvml(options),
        expected=memory.get("learned") if options.expected is None else options.expected,
        without_driver=now - missing_since if isinstance(missing_since, int | float) and driven is None else 0.0,
        installing=driven is None and is_installing(options.proc),
    )


def recall(path: Path) -> dict[str, Any]:
    """Return what the last run remembered; {} when there is nothing or it makes no sense."""
    memory = read_json(path)
    gpus = memory.get("gpus")
    sound = isinstance(gpus, dict) and all(isinstance(gpu, dict) for gpu in gpus.values())
    return memory if sound and isinstance(memory.get("learned"), int | None) else {}


def remember(memory: dict[str, Any], seen: GpuViews, now: float) -> dict[str, Any]:
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


def lost(memory: dict[str, Any], seen: GpuViews) -> list[dict[str, Any]]:
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
    record = {"condition": "GpuLost", "line": line, "lost": lost(memory, seen)}
    keep_evidence(options.state, NAME, verdict, record)
    if options.explain:
        explain({**seen._asdict(), "counted": seen.total}, checks(seen), verdict)
    return verdict, line


def checks(seen: GpuViews) -> dict[str, str]:
    """Return what each view says of faults, doubts and what is no fault, by its name."""
    return {
        f"{kind} {view.__name__.strip('_')}": "; ".join(sorted(view(seen)))
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


if __name__ == "__main__":
    main(parse(sys.argv[1:]), NAME, check)
