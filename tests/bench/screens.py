"""How long a person waits for `remediator status` and `remediator explain NODE`, start-up included.

`python -m tests.bench.screens --nodes 5000`: one line of JSON. The embedded API server is in this process; each command
is a process of its own, run five times, and the medians are told.
"""

import argparse
import asyncio
import json
import resource
import statistics
import sys
import time
from pathlib import Path
from typing import NamedTuple

from tests.bench.embedded import fleet

RUNS = 5


class Run(NamedTuple):
    """One run: how long somebody waited, and how long a core was busy with the command."""

    seconds: float
    cpu_seconds: float


async def measure(nodes: int, runs: int = RUNS) -> dict[str, dict[str, float]]:
    """The medians of both commands."""
    async with fleet(nodes) as (plane, _, names):
        commands = {"status": ("status",), "explain": ("explain", names[nodes // 2])}
        return {name: await _medians(words, plane.kubeconfig, runs) for name, words in commands.items()}


async def _medians(words: tuple[str, ...], kubeconfig: Path, runs: int) -> dict[str, float]:
    done = [await _run(*words, "--kubeconfig", str(kubeconfig)) for _ in range(runs)]
    return {field: round(statistics.median(getattr(run, field) for run in done), 2) for field in Run._fields}


async def _run(*words: str) -> Run:
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "remediator", *words, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    _, complaints = await process.communicate()
    seconds, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    assert process.returncode == 0, complaints.decode()
    return Run(seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    print(json.dumps(asyncio.run(measure(parser.parse_args().nodes))))


if __name__ == "__main__":
    main()
