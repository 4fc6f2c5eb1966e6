#!/usr/bin/env -S python3 -I -S -B
"""Condition KernelFault: the kernel of this node has failed in this boot, or a processor of it stands still.

Faults, the first three by what the kernel says of itself in /proc/sys/kernel/tainted, the others by its log:

  the kernel has met an oops     an error in the kernel killed a process, with what it held in the kernel
  the kernel has met a BUG       the kernel found itself in a state that it calls impossible
  the kernel found a bad page    its lists of memory are damaged (Bad page state, Bad page map)
  a hard lockup                  a processor took no interrupt for ten seconds
  soft lockups                   a processor ran nothing but one thing in the kernel for 20 seconds: two in ten minutes
  RCU stalls                     the kernel waits for a processor or a thread: two in ten minutes

The first four stand until the next boot: nobody knows what is damaged. Soft lockups and RCU stalls are over when an
hour has passed since they came twice in ten minutes, or since one that lasted two minutes; a shorter one (a virtual
machine that was paused, a moment of very high load) is no fault. The kernel tells of one several times, and of several
processors: what overlaps, or follows within 90 seconds (190 of RCU), is one. No fault either: a warning with a stack
(WARNING: CPU), a process that fails by itself (segfault, traps:), and what a program writes into the log.

Remedy: KernelFault: drain the node and reboot it. The same again: the function behind RIP: (or pc :) in
<state>/evidence/kernel_fault.json names the driver; MemoryEcc and DiskFault may name the cause.
"Cannot tell": "kernel log cannot be", "tainted cannot be read": run node-problem-detector privileged, with the node's
/dev. Lines of the log overwritten unread: make its buffer larger (log_buf_len= in the kernel's command line).

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
from nodelib.contract.npd import Verdict
from nodelib.kernel.kernel_events import Aside, EventKind, KernelWatch, KindMemory, detector

HOUR = 3600.0
SOFT_AGAIN = 90.0  # seconds: it tells of a lockup that goes on each 20 to 30 seconds
STALL_AGAIN = 190.0  # and of a stall after three times rcu_cpu_stall_timeout and 3 seconds more: 183 where that is 60
OOPS, BUG, PAGE = "the kernel has met an oops", "the kernel has met a BUG", "the kernel found a bad page"
SIGNS = (
    # The first three only tell more of what `tainted` says: a process may have the name "Oops [#1]", and the kernel
    # begins a line with it, of its segfault or of the memory that it wants.
    EventKind(BUG, re.compile(r"^kernel BUG at \S+:[0-9]+!"), 0),
    EventKind(PAGE, re.compile(r"^BUG: Bad page (?:state|map|cache)\b"), 0),
    EventKind(  # what every architecture says at the end of an error of its own: a code, and how many there were
        OOPS,
        re.compile(
            r"^(?:Oops|[A-Za-z][^\[\]]{0,200}: [0-9a-f]{2,16}(?: ilc:[0-9])?) \[#[0-9]+\]"
            r"|^BUG: unable to handle |^Unable to handle kernel "
        ),
        0,
    ),
    EventKind("a hard lockup", re.compile(r"^(?:NMI )?watchdog: .{0,40}detected hard LOCKUP on ")),
    EventKind(
        "soft lockups",
        re.compile(r"^(?:NMI )?(?:watchdog: )?BUG: soft lockup - CPU#[0-9]+ stuck for (?:(?P<stuck>[0-9]{1,9})s)?"),
        2,
        HOUR,
        SOFT_AGAIN,
    ),
    EventKind(
        "RCU stalls",
        re.compile(
            r"^(?:rcu: )?INFO: rcu\w* (?:self-detected stall on CPU|detected (?:expedited )?stalls on CPUs/tasks)"
        ),
        2,
        HOUR,
        STALL_AGAIN,
    ),
)
DIED, BAD_PAGE = 7, 5  # bits of /proc/sys/kernel/tainted that only a boot takes off


def taints(options: argparse.Namespace, seen: Mapping[str, KindMemory], _: float) -> Aside:
    """Return what the kernel says of itself: no name of a process can, and it stays when the log has gone on."""
    path = options.proc / "sys/kernel/tainted"
    try:
        mask = int(path.read_text())
    except (OSError, ValueError) as error:
        return Aside({f"tainted cannot be read: {type(error).__name__}": Verdict.UNKNOWN})
    died = BUG if seen.get(BUG, KindMemory()).times else OOPS
    return Aside({words: Verdict.FAULT for bit, words in ((BAD_PAGE, PAGE), (DIED, died)) if mask >> bit & 1})


WATCH = KernelWatch("kernel_fault", "KernelFault", SIGNS, "the kernel has met no error of its own", taints)
DETECTOR = detector(WATCH)


if __name__ == "__main__":
    main(parser(__doc__).parse_args(), DETECTOR)
