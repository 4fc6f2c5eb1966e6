"""What a benchmark reads off clocks and processes, and makes of its samples."""

import math
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

CPUCLOCK_SCHED = 2  # linux/posix-timers.h
QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}


def quantiles(samples: Sequence[float]) -> dict[str, float]:
    """Milliseconds at p50, p95, p99 and max of samples in seconds: each is a sample (nearest rank)."""
    ordered = sorted(samples)
    return {name: round(1000 * ordered[math.ceil(part * len(ordered)) - 1], 1) for name, part in QUANTILES.items()}


def memory(pid: int) -> dict[str, float]:
    """MiB that a process holds now and has held at most."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    found = dict(line.split(":", 1) for line in lines)
    names = {"resident": "VmRSS", "peak": "VmHWM"}
    return {name: round(int(found[key].split()[0]) / 1024, 1) for name, key in names.items()}


def cpu_seconds(pid: int) -> float:
    """Seconds of processor time that a process has used, in user and system mode, that of ended threads included.

    By the clock that clock_getcpuclockid(3) names for a process: it counts nanoseconds, where /proc/PID/stat counts
    ticks of 10 ms, in which a small run takes no time at all.
    """
    return time.clock_gettime(~pid << 3 | CPUCLOCK_SCHED)


def stamp() -> str:
    """The time as Kubernetes writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
