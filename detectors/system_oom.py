#!/usr/bin/env -S python3 -I -S -B
"""Condition SystemOom: this node ran out of memory as a whole, and the kernel killed a process for it.

The fault is "the node ran out of memory": a line "Out of memory: Killed process" of the kernel's log, which it says
where no limit of a container was met but the memory of the node, or of one of its parts, is used up. What is killed may
be anybody's: a job within its limits, or a service of the node. "the Pods together ran out of memory" is the same for
what the node has left for Pods (its allocatable memory): "oom-kill:" with an oom_memcg of all Pods or of one class of
them (kubepods, burstable, besteffort). Each is over when an hour has passed since the last.

No fault: a process that met the limit of its own container ("Memory cgroup out of memory"), which is the job's own
affair. How many of them this boot has seen is told after "the node has not run out of memory".

Remedy: SystemOom: nothing is to be done to the node. Find what uses memory that nobody has asked for: Pods without
limits, files in memory (/dev/shm, emptyDir in memory), the kernel's own (slabtop). Raise what the kubelet reserves
(systemReserved, kubeReserved, evictionHard). What was killed is in <state>/evidence/system_oom.json; where it was a
service of the node, RuntimeUnhealthy or the node's own state tells of it.
"Cannot tell": "kernel log cannot be": run node-problem-detector privileged, with the node's /dev. Lines of the log
overwritten unread: make its buffer larger (log_buf_len= in the kernel's command line).

Exit codes: 0 no fault, 1 fault, 2 cannot tell.
"""

import os.path
import sys

sys.path.append(os.path.realpath(f"{__file__}/../.."))  # where nodelib/ is; python3 -I leaves it out

from nodelib.state import slots

if __name__ == "__main__":
    slots.take()  # before all that costs memory

import argparse
import re
from collections.abc import Mapping

from nodelib.contract.detector import main, parser
from nodelib.kernel.kernel_events import Aside, EventKind, KernelWatch, KindMemory, detector

PODS = "the Pods together ran out of memory"
ALL_PODS = (
    r"/(?:[\w.-]+/)*(?:[\w.]+-)?kubepods(?:\.slice)?"
    r"(?:/(?:(?:[\w.]+-)?kubepods-)?(?:burstable|besteffort)(?:\.slice)?)?"
)
NODE, OWN, HOUR = "the node ran out of memory", "containers met their own limit", 3600.0
SIGNS = (
    EventKind(
        NODE, re.compile(r"^Out of memory(?: \(oom_kill_allocating_task\))?: Kill(?:ed)? process [0-9]+ "), 1, HOUR
    ),
    EventKind(  # the line before "Memory cgroup out of memory"; before 5.0 it had other words
        PODS,
        re.compile(
            rf"^oom-kill:.{{0,2000}},oom_memcg={ALL_PODS},"
            rf"|^Task in \S+ killed as a result of limit of {ALL_PODS}$"
        ),
        1,
        HOUR,
    ),
    EventKind(OWN, re.compile(r"^Memory cgroup out of memory: Kill(?:ed)? process [0-9]+ "), 0),
)


def own(_: argparse.Namespace, seen: Mapping[str, KindMemory], __: float) -> Aside:
    """Return how often containers met their own limit: no fault of the node."""
    count = seen.get(OWN, KindMemory()).count - seen.get(PODS, KindMemory()).count
    return Aside(notes=[f"{OWN}: {count}"] if count > 0 else [])


WATCH = KernelWatch("system_oom", "SystemOom", SIGNS, "the node has not run out of memory", own)
DETECTOR = detector(WATCH)


if __name__ == "__main__":
    main(parser(__doc__).parse_args(), DETECTOR)
