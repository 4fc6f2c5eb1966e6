#!/usr/bin/env -S python3 -I -S -B
"""End the processes on this node whose Pod is gone: SIGTERM, and what is left after a grace gets SIGKILL.

A Pod is gone when the kubelet keeps no folder of it any more and the runtime, where crictl is there to ask it, runs
nothing of it. Processes are looked at before that is asked, so that a Pod that starts meanwhile is not taken for gone.
A process is orphaned only if its cgroup names one Pod of this node's own kubelet. A pidfd holds it, and its start and
its cgroup are compared again, before any signal. None being there is a success.

One that sleeps in the kernel with SIGKILL pending cannot be killed: that is exit 1, reboot the node. Refused (exit 2):
it is unknown which Pods live, or the node has no program that would tell; a Pod that is named lives; another boot than
EXPECTED_BOOT_ID, or an ATTEMPT_ID that was started before in this boot.

PARAMETERS: podUIDs (only processes of these Pods), graceSeconds (10), killSeconds (30), kubeletRoot (/var/lib/kubelet).
"""

import os.path
import sys

sys.path.append(os.path.realpath(f"{__file__}/../.."))  # where nodelib/ is; python3 -I leaves it out

import os
import signal
from collections.abc import Collection, Sequence
from pathlib import Path

from nodelib.contract.attempt import create_marker, require_fresh
from nodelib.contract.operation import Environment, Failed, Refused, main
from nodelib.contract.parameters import number, words
from nodelib.host.cgroups import bare
from nodelib.host.crictl import known_pods, kubelet_root
from nodelib.host.processes import Process, is_stuck, of_pods, require_own
from nodelib.host.system import require_programs
from nodelib.host.terminate import end, named


def kill_orphans(environment: Environment, dry_run: bool) -> str:
    """End the orphans on the node of this environment and return the sentence."""
    marker = require_fresh(environment)
    given, proc = environment.parameters, Path(environment.host_root) / "proc"
    require_programs(proc, ("ls",), "reboot the node")
    require_own(proc)
    grace, patience = number(given, "graceSeconds", 10), number(given, "killSeconds", 30)
    wanted, root = {bare(uid) for uid in words(given, "podUIDs")}, kubelet_root(given)

    def look() -> list[Process]:
        seen = list(of_pods(proc))  # first the processes, then who lives: see above
        return orphans(seen, known_pods(root, os.environ.get("POD_UID", "")), wanted)

    found = look()
    if not found:
        return f"nothing to kill: no process of a Pod that is gone runs on {environment.node}"
    if dry_run:
        print(f"would create {marker} and send SIGTERM, and after {grace:g} s SIGKILL, to {named(found)}")
        return f"would kill {len(found)} processes"
    create_marker(require_fresh(environment))
    met = [*end(proc, look, signal.SIGTERM, grace), *end(proc, look, signal.SIGKILL, patience)]
    return confirm(proc, look(), {*found, *met})


def orphans(seen: Sequence[Process], known: Collection[str], wanted: Collection[str]) -> list[Process]:
    """Return which of `seen` belong to no `known` Pod, of the `wanted` Pods if there are any.

    Raises Refused when a wanted Pod lives.
    """
    alive = sorted(uid for uid in wanted if uid in known)
    if alive:
        raise Refused(f"these Pods live on this node: {', '.join(alive)}: delete them through the API server")
    return sorted(one for one in seen if one.pod and one.pod not in known and (not wanted or one.pod in wanted))


def confirm(proc: Path, left: Sequence[Process], met: Collection[Process]) -> str:
    """Return the sentence when none is left. Raises Failed with those that are."""
    stuck = [one for one in left if is_stuck(proc, one)]
    if stuck:
        raise Failed(f"unkillable: {named(stuck)}: reboot the node")
    if left:
        raise Failed(f"still there after SIGKILL: {named(left)}: try again, or reboot the node")
    return f"killed {named(sorted(met))}"


if __name__ == "__main__":
    main(kill_orphans, __doc__)
