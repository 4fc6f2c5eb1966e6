#!/usr/bin/env -S python3 -I -S -B
"""Condition GpuBusyWithoutPod: a GPU, or its memory, is held by something that no living Pod of this node owns.

The next Pod that is given this GPU finds its memory taken, or shares it with a stranger. What is seen in two runs in a
row is a fault; once is "cannot tell". Faults, and what cures them:

  NAME of pod UID, which is gone (kill-orphaned-processes)
                                                the Pod was deleted, its process was not: that operation ends it; one
                                                that cannot be killed needs a reboot (see UnkillableProcess)
  NAME of no pod (end it)                       somebody runs it on the node itself (ssh, docker, a service): have its
                                                owner end it, or say --allow NAME
  a process that has ended (reset-gpu)          only the driver still knows it: drain the node and reset the GPU, or
                                                reboot where that is refused
  memory in use by no process (reset-gpu)       as above

Whose a process is, its cgroup tells. Gone is a Pod that the API server does not list for this node, or whose grace of
deletion is over; it is asked, as the kubelet of the node, at the sight of an unknown Pod and else every 5 minutes, and
when it cannot be asked (no credentials, no NODE_NAME, no answer) that is "cannot tell". Processes of no Pod that may
use a GPU: nvidia-persistenced, the fabric manager, IMEX, DCGM, nvidia-smi, MPS, X servers, and what --allow names. Up
to 16 MiB of memory are the driver's own. A GPU in MIG mode keeps more, and one whose memory is part of the node's
(Grace Hopper) is used by the kernel: of these only processes are looked at. Pids are of use only in the node's own
namespace: run node-problem-detector with hostPID. Who holds what is in <state>/evidence/gpu_busy.json.

A GPU that is lost and an NVML that does not answer are "cannot tell": GpuLost tells of them. "no permission" is cured
by running as root. Another code with "does not report its ...", or NVML that cannot be asked or makes no sense:
--explain shows what it says; driver and pynvml (nvidia-ml-py) must fit each other.

Exit codes: 0 no GPU is held, 1 fault, 2 cannot tell.
"""

import os.path
import sys

sys.path.append(os.path.realpath(f"{__file__}/../.."))  # where nodelib/ is; python3 -I leaves it out

from nodelib.state import slots

if __name__ == "__main__":
    slots.take()  # before all that costs memory

import argparse
from collections.abc import Collection, Iterable, Mapping, Set
from typing import Any, NamedTuple

from nodelib.contract.detector import Detector, Findings, Run, add_credentials, explain, main
from nodelib.contract.npd import Verdict
from nodelib.host.cgroups import dashed
from nodelib.nvml.client import parser
from nodelib.nvml.gpu_owners import Owner, is_allowed, pids, read_owners, sees_host, shares_memory
from nodelib.nvml.results import GpuReadings, NvmlGpu, absent, doubts, look, views

IDLE = 16 * 2**20  # bytes that a GPU may have in use while nobody uses it
ASK_AGAIN = 300.0  # seconds for which a list of Pods is good, as long as every Pod on a GPU is in it
API_DEADLINE = 10.0
ALLOWED = (
    *("nvidia-persistenced", "nv-fabricmanager", "nvidia-imex", "nv-hostengine", "dcgmi", "dcgm-exporter"),
    *("nvidia-smi", "nvidia-modprobe", "nvidia-cuda-mps-server", "nvidia-cuda-mps-control", "Xorg", "Xwayland", "X"),
)

SHAPES = {
    "processes": {"pid": "numbers", "kind": "texts", "memory": "numbers"},
    "memory in use": {"used": "number"},
    "MIG": {"current": "number"},
}
NEEDED = ("processes", "memory in use")


class Pods(NamedTuple):
    """Which Pods should run (bare uids), asked for at this second since boot; `why` not, where nobody knows."""

    living: frozenset[str] = frozenset()
    asked_at: float = 0.0
    why: str = "nobody was asked"


class Memory(NamedTuple):
    """What the last run was told of Pods, if it was, and the marks of what held GPUs without one."""

    pods: Pods = Pods()
    marks: Set[str] = frozenset()


class Processes(NamedTuple):
    """What was read besides NVML. `owners` by pid; `shared`: uuids of GPUs whose memory is the node's."""

    owners: Mapping[int, Owner | None]
    on_host: bool
    shared: Collection[str] = ()
    allowed: Collection[str] = ALLOWED


class Held(NamedTuple):
    """A GPU that something holds. `words`: what, and the remedy; `key`: the same thing in the next run, "" in doubt."""

    gpu: NvmlGpu
    words: str
    key: str = ""
    owner: Owner | None = None


def find(seen: GpuReadings, processes: Processes, pods: Pods) -> list[Held]:
    """Return what holds GPUs without a Pod, and (with no key) what may."""
    return [held for gpu in seen.answering for held in _of_gpu(gpu, processes, pods)]


def _of_gpu(gpu: NvmlGpu, processes: Processes, pods: Pods) -> list[Held]:
    here, memory = sorted(pids([gpu])), _has_memory(gpu, processes)
    if not processes.on_host:
        hidden = Held(gpu, "in use, but by whom is hidden from here (run with hostPID)")
        return [hidden] if here or memory else []
    if memory and not here:
        return [Held(gpu, "memory in use by no process (reset-gpu)", "memory")]
    return [held for pid in here for held in _judge(gpu, processes.owners.get(pid), processes, pods)]


def _has_memory(gpu: NvmlGpu, processes: Processes) -> bool:
    used = gpu.facts.get("memory in use", {}).get("used", 0)
    own = gpu.facts.get("MIG", {}).get("current") or gpu.uuid in processes.shared
    return used > IDLE and not own and "processes" in gpu.facts


def _judge(gpu: NvmlGpu, owner: Owner | None, processes: Processes, pods: Pods) -> list[Held]:
    if owner is None:
        return [Held(gpu, "in use by a process that cannot be read in /proc")]
    if owner.ended:
        return [Held(gpu, "held by a process that has ended (reset-gpu)", owner.key, owner)]
    if not owner.pod:
        fine = is_allowed(owner, processes.allowed)
        return [] if fine else [Held(gpu, f"held by {owner.comm} of no pod (end it)", owner.key, owner)]
    if owner.pod in pods.living:
        return []
    whose = f"{owner.comm} of pod {dashed(owner.pod)}"
    if pods.why:
        return [Held(gpu, f"in use by {whose}, nobody knows if the pod lives: {pods.why}")]
    return [Held(gpu, f"held by {whose}, which is gone (kill-orphaned-processes)", owner.key, owner)]


def mark(held: Held) -> str:
    """Return what the next run knows a holder by."""
    return f"{held.gpu.uuid} {held.key}"


def judge(seen: GpuReadings, held_gpus: Collection[Held], before: Collection[str]) -> tuple[Verdict, str]:
    """Turn what was found into a verdict and its line; `before`: the marks of what the last run found."""
    lasting = [held for held in held_gpus if held.key and mark(held) in before]
    new = [
        held._replace(words=f"{'once so far, ' if held.key else ''}{held.words}")
        for held in held_gpus
        if held not in lasting
    ]
    for verdict, texts in ((Verdict.FAULT, told(lasting)), (Verdict.UNKNOWN, [*doubts(seen, NEEDED), *told(new)])):
        if texts:
            return verdict, "; ".join(texts)
    return Verdict.OK, absent(seen) or "no GPU is held without a pod"


def told(held_gpus: Iterable[Held]) -> list[str]:
    """Return a text for each kind of holder, naming the GPUs."""
    names: dict[str, set[str]] = {}
    for held in held_gpus:
        names.setdefault(held.words, set()).add(held.gpu.name)
    return [f"{words}: {', '.join(sorted(gpus))}" for words, gpus in sorted(names.items())]


def list_pods(before: Pods, wanted: Collection[str], now: float, options: argparse.Namespace) -> Pods:
    """Return the Pods that should run: the last answer, or a new one where it is old or lacks one of `wanted`."""
    fresh = not before.why and 0 <= now - before.asked_at < ASK_AGAIN and set(wanted) <= before.living
    if not wanted or fresh:
        return before
    from nodelib.k8s.pod_list import (
        CannotTell,
        living,
    )  # HTTP and TLS cost more than all the rest, and few runs need them

    try:
        known = living(options, API_DEADLINE)
        return Pods(frozenset(known), now, "")
    except CannotTell as error:
        return Pods(why=str(error))


def still(seen: GpuReadings, held_gpus: Iterable[Held], before: Iterable[str]) -> set[str]:
    """Return the marks for the next run; of a GPU that does not answer, those of the last one."""
    asked = {gpu.uuid for gpu in seen.answering}
    return {mark(held) for held in held_gpus if held.key} | {key for key in before if key.split(" ")[0] not in asked}


def evidence(held_gpus: Iterable[Held]) -> list[dict[str, Any]]:
    """Return who holds which GPU; bounded, lest it be cut elsewhere."""
    return [
        {**held.gpu.who, "by": held.words, **(held.owner._asdict() if held.owner else {})}
        for held in held_gpus
        if held.key
    ][:3]


def check(run: Run[Memory]) -> Findings:
    """One run: look, find owners, ask for Pods where it matters, judge, remember."""
    options, seen = run.options, look(run.options, SHAPES)
    owners = read_owners(options.proc, pids(seen.answering))
    shared = [uuid for uuid, online in shares_memory(options.proc, seen.answering).items() if online]
    processes = Processes(owners, sees_host(options.proc), shared, (*ALLOWED, *options.allow))
    wanted = {owner.pod for owner in owners.values() if owner and owner.pod}
    pods = list_pods(run.last.pods, wanted, run.now, options)
    held_gpus = find(seen, processes, pods)
    verdict, line = judge(seen, held_gpus, run.last.marks)
    shown = {**views(seen), "owners": owners, "pods": pods, "host pids": processes.on_host}
    return Findings(
        verdict,
        line,
        Memory(Pods() if pods.why else pods, still(seen, held_gpus, run.last.marks)),
        evidence=lambda: {"held": evidence(held_gpus)},
        explain=lambda: explain(shown, {"held": "; ".join(told(held_gpus))}, verdict),
    )


def parse(arguments: list[str]) -> argparse.Namespace:
    """Return the options."""
    options = parser(__doc__)
    options.add_argument(
        "--allow",
        action="append",
        default=[],
        metavar="NAME",
        help="a program of no Pod that may use GPUs (repeatable)",
    )
    add_credentials(options)
    return options.parse_args(arguments)


DETECTOR = Detector("gpu_busy", "GpuBusyWithoutPod", check, Memory)


if __name__ == "__main__":
    main(parse(sys.argv[1:]), DETECTOR)
