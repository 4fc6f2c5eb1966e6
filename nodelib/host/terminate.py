"""End processes of Pods: each is held by a pidfd and looked at again, by start and cgroup, before any signal."""

import os
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from nodelib.host.processes import Process, read

LOOK_SECONDS = 5.0  # between two looks for what a dying process may have started


def end(proc: Path, look: Callable[[], list[Process]], signum: signal.Signals, seconds: float) -> set[Process]:
    """Signal every process that `look` finds once, those too that appear meanwhile, until none is left or time is over.

    Returns whom it signalled.
    """
    until, signalled = time.monotonic() + seconds, set[Process]()
    while left := look():
        for process in set(left) - signalled:
            send(proc, process, signum)
        signalled |= set(left)
        if time.monotonic() >= until:
            break
        wait_for_end(proc, left, min(until, time.monotonic() + LOOK_SECONDS))
    return signalled


def send(proc: Path, process: Process, signum: signal.Signals) -> None:
    """Signal this very process: once it is held its pid cannot become another's, so who it is is looked up then."""
    try:
        held = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return
    try:
        if read(proc, process.pid) == process:
            signal.pidfd_send_signal(held, signum)
    except ProcessLookupError:
        pass
    finally:
        os.close(held)


def wait_for_end(proc: Path, processes: Sequence[Process], until: float) -> None:
    """Wait until all have ended or the time is over."""
    while time.monotonic() < until and any(read(proc, process.pid) == process for process in processes):
        time.sleep(0.05)


def named(processes: Sequence[Process]) -> str:
    """Who they are, by Pod."""
    names: dict[str, list[str]] = {}
    for process in processes:
        names.setdefault(process.pod, []).append(f"{process.name} (pid {process.pid})")
    return "; ".join(f"{', '.join(those)} of Pod {pod}" for pod, those in names.items())
