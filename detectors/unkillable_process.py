#!/usr/bin/env -S python3 -I -S -B
"""Condition UnkillableProcess: a Pod is gone from this node but a process of it cannot be killed.

Looked for is a thread in state D with SIGKILL pending (a wait that can be killed ends within moments of it) in a Pod's
cgroup, whose context switches stand still between two runs at least --apart seconds apart. All threads are looked at:
the first thread of a killed process may already be a zombie while another one is stuck.

Only when there is such a thread is the API server asked which Pods this node has, as the kubelet of the node, which may
list these alone. Gone is a Pod that is not among them,
or whose grace of deletion is over. A stuck thread of a Pod that lives is not told of: its storage may just be slow.
When the API server cannot be asked (no credentials, no NODE_NAME, no answer) that is "cannot tell", never "gone".

Remedy: UnkillableProcess: nothing but a reboot ends such a process. Cordon the node, delete its Pods with a grace, and
reboot without waiting for the one that cannot end. Where the process waits tells the cause: nfs_ and rpc_ a file
server, nv and uvm_ the GPU driver, ib_ and mlx5_ the network card, jbd2_, xfs_ and io_schedule a disk. The stack is in
<state>/evidence/unkillable_process.json.
"Cannot tell": "nobody knows if the pod is gone": its cause follows: give NODE_NAME; name the kubelet's kubeconfig with
--kubelet-kubeconfig; where that has no certificate but a program (EKS, GKE), give our account the right to list Pods;
or look at the way to the API server. "can be read", "make no sense": run it with the node's process ids (hostPID).

Exit codes: 0 no such process, 1 fault, 2 cannot tell.
"""

import os.path
import sys

sys.path.append(os.path.realpath(f"{__file__}/../.."))  # where nodelib/ is; python3 -I leaves it out

from nodelib.state import slots

if __name__ == "__main__":
    slots.take()  # before all that costs memory

import argparse
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from nodelib.contract.detector import Detector, Findings, Run, add_credentials, conclude, main, parser
from nodelib.contract.npd import Verdict
from nodelib.host.cgroups import dashed
from nodelib.host.threads import Scan, Thread, scan, stack


class Still(NamedTuple):
    """Since when, in seconds since boot, a thread's context switches have stood at this number."""

    switches: int
    since: float


class Memory(NamedTuple):
    """What the last run knew of threads, by key."""

    threads: Mapping[str, Still] = {}


def stand(threads: Collection[Thread], before: Mapping[str, Still], now: float) -> dict[str, Still]:
    """Return, by key, how long each thread has not moved; one that moved or is new begins now."""
    found = {}
    for thread in threads:
        last = before.get(thread.key)
        still = last is not None and last.switches == thread.switches and last.since <= now
        found[thread.key] = last if last and still else Still(thread.switches, now)
    return found


def judge(seen: Scan, lasting: Collection[str], living: Collection[str] | str) -> tuple[Verdict, str]:
    """Turn a scan into a verdict and its line.

    Args: `lasting`: keys of threads that did not move for long enough; `living`: bare uids of the Pods that should run,
    or, as a text, why nobody knows.
    """
    if not seen.read:
        return Verdict.UNKNOWN, "no process can be read in /proc"
    verdicts = {"/proc has files that make no sense": Verdict.UNKNOWN} if seen.garbled else {}
    for thread in seen.threads:
        if thread.pod:
            verdict, text = _judge(thread, lasting, living)
            verdicts[text] = verdict
    return conclude(verdicts, "no process of a pod that is gone is left")


def _judge(thread: Thread, lasting: Collection[str], living: Collection[str] | str) -> tuple[Verdict, str]:
    pod, waits = f"pod {dashed(thread.pod)}", f"{thread.comm} waits in {thread.wchan}"
    if thread.key not in lasting:
        return Verdict.UNKNOWN, f"a process of {pod} was killed and has not ended yet: {waits}"
    if isinstance(living, str):
        return (
            Verdict.UNKNOWN,
            f"a process of {pod} cannot be killed, nobody knows if the pod is gone: {waits}: {living}",
        )
    if thread.pod in living:
        return Verdict.OK, f"{pod} lives"
    return Verdict.FAULT, f"{pod} is gone but a process of it cannot be killed: {waits}"


def ask(options: argparse.Namespace) -> set[str] | str:
    """Return the Pods that should run on this node, or why nobody knows."""
    from nodelib.k8s.pod_list import (
        CannotTell,
        living,
    )  # HTTP and TLS cost more than all the rest, and few runs need them

    try:
        return living(options, options.deadline)
    except CannotTell as error:
        return str(error)


def evidence(proc: Path, threads: Collection[Thread]) -> list[dict[str, Any]]:
    """Return who is stuck and where, with the kernel's stack; bounded, lest it be cut elsewhere."""
    return [{**thread._asdict(), "stack": stack(proc, thread)} for thread in [*threads][:3]]


def check(run: Run[Memory]) -> Findings:
    """One run: scan, remember since when threads stand still, ask for Pods where it matters, judge."""
    options, seen = run.options, scan(run.options.proc)
    stills = stand(seen.threads, run.last.threads, run.now)
    lasting = {key for key, still in stills.items() if run.now - still.since >= options.apart}
    stuck = [thread for thread in seen.threads if thread.pod and thread.key in lasting]
    living = ask(options) if stuck else set()
    verdict, line = judge(seen, lasting, living)
    gone = [thread for thread in stuck if thread.pod not in living]
    return Findings(
        verdict,
        line,
        Memory(stills),
        evidence=lambda: {"threads": evidence(options.proc, gone)},
        explain=lambda: explain(seen, stills, living),
    )


def explain(seen: Scan, stills: Mapping[str, Still], living: Collection[str] | str) -> None:
    """Print what was found and who was asked."""
    print(f"{seen.read} processes read, files that make no sense: {', '.join(seen.garbled) or 'none'}")
    for thread in seen.threads:
        print(f"{thread}, standing since {stills[thread.key].since:.0f} s after boot")
    print(
        f"pods: {living if isinstance(living, str) else ', '.join(map(dashed, sorted(living))) or 'not asked, or none'}"
    )


def parse(arguments: list[str]) -> argparse.Namespace:
    """Return the options."""
    options = parser(__doc__, 10.0, "each answer of the API server")
    options.add_argument("--apart", type=float, default=60.0, help="seconds a thread must stand still (%(default)s)")
    add_credentials(options)
    return options.parse_args(arguments)


DETECTOR = Detector("unkillable_process", "UnkillableProcess", check, Memory)


if __name__ == "__main__":
    main(parse(sys.argv[1:]), DETECTOR)
