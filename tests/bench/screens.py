"""How long a person waits for `remediator status` and `remediator explain NODE`, start-up included.

`python -m tests.bench.screens --nodes 5000`: one line of JSON. The embedded API server is in this process; each command
is a process of its own, run five times, and the medians are told. While a replica leads, `explain` reads what its Lease
says; while none does, it reads all nodes and decides as a replica would.
"""

import argparse
import asyncio
import json
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

from remediator.core import names
from remediator.core.breaker import Breaker
from remediator.core.places import DEFAULT
from remediator.core.running import Running
from remediator.kube.api.builtin import LEASE, Lease, LeaseSpec
from tests.bench.embedded import fleet
from tests.bench.numbers import stamp

RUNS = 5


class Run(NamedTuple):
    """One run: how long somebody waited, and how long a core was busy with the command."""

    seconds: float
    cpu_seconds: float


async def measure(nodes: int, runs: int = RUNS) -> dict[str, dict[str, float]]:
    """The medians of both commands."""
    with tempfile.TemporaryDirectory(prefix="remediator-bytecode-") as bytecode:
        return await _measure(nodes, runs, {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": bytecode})


async def _measure(nodes: int, runs: int, env: Mapping[str, str]) -> dict[str, dict[str, float]]:
    async with fleet(nodes) as (plane, client, workers):
        explain = ("explain", workers[nodes // 2])
        alone = {"explain, nobody leads": await _medians(explain, plane.kubeconfig, runs, env)}
        await client.create(LEASE, _leader(), namespace=names.SYSTEM_NAMESPACE)
        commands = {"status": ("status",), "explain": explain}
        led = {name: await _medians(words, plane.kubeconfig, runs, env) for name, words in commands.items()}
        return led | alone


def _leader() -> Lease:
    """Of a replica that leads for as long as the bench takes."""
    lease = Lease.named(names.LEASE, names.SYSTEM_NAMESPACE, LeaseSpec("replica", 3600, renew_time=stamp()))
    lease.metadata["annotations"] = {names.SETTINGS: str(Running(Breaker(10, timedelta(minutes=10)), DEFAULT))}
    return lease


async def _medians(words: tuple[str, ...], kubeconfig: Path, runs: int, env: Mapping[str, str]) -> dict[str, float]:
    _, *done = [await _run(*words, "--kubeconfig", str(kubeconfig), env=env) for _ in range(1 + runs)]
    return {field: round(statistics.median(getattr(run, field) for run in done), 2) for field in Run._fields}


async def _run(*words: str, env: Mapping[str, str]) -> Run:
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "remediator", *words),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **env},
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
