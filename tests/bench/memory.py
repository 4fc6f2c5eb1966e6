"""What one replica holds in memory: `python -m tests.bench.memory`.

`remediator run` without TLS of its own (no port for the extender, none for evictions), a process with tickets on that
reaches the server as a Pod does, and the embedded server over HTTPS with what `large.py` puts into it: nodes of 27
conditions, a budget for each rack, the shipped policies, four ended cases a node and, unless `--no-operations`, two
operations of each. Then a storm: a fault on one node of five, until each has its case. 0 nodes is what the process
takes by itself.
"""

import argparse
import asyncio
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
from rich.console import Console
from rich.table import Table

from remediator.kube import api
from remediator_sim.apiserver import EmbeddedServer, Endpoint
from remediator_sim.controller import COMMAND
from remediator_sim.ports import free_port
from tests.bench import large, numbers
from tests.cluster.processes import Child
from tests.harness.kinds import NODES
from tests.harness.waiting import until

SIZES = (0, 1000, 5000)
SECONDS = 600.0
CALM_SECONDS, CALM_CPU = 5.0, 0.05  # for so long no more than this share of a core
NOBODY = "http://127.0.0.1:9"  # in the place of GitHub
Report = dict[str, Any]


async def measure(nodes: int, operations: bool, seconds: float) -> Report:
    """MiB beside a cluster of this size: when the replica leads and is calm, and after the storm."""
    size = large.size(nodes)._replace(operations=operations)
    server, faults = large.server(size), large.sound(size)[: nodes // 5]
    async with server.serve() as endpoint:
        with pod(endpoint) as (pid, url):
            await until(lambda: leads(url), SECONDS)
            await calm(pid, seconds)
            before = numbers.memory(pid)
            await _storm(server, faults)
            await calm(pid, seconds)
            storm = numbers.memory(pid)
    return {"nodes": nodes, "ended_cases": size.ended, "faults": len(faults), "calm_mib": before, "storm_mib": storm}


@contextmanager
def pod(endpoint: Endpoint) -> Iterator[tuple[int, str]]:
    """The process as a Pod, and where it serves."""
    with tempfile.TemporaryDirectory(prefix="bench-") as made:
        token = Path(made)
        shutil.copy(endpoint.ca_file, token / "ca.crt")
        (token / "token").write_text("admin")
        host, _, port = endpoint.url.removeprefix("https://").rpartition(":")
        named = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port, "TOKEN_DIR": str(token)}
        with replica(environment=named) as reached:
            yield reached


@contextmanager
def replica(*more: str, environment: Mapping[str, str] | None = None) -> Iterator[tuple[int, str]]:
    """The process, with `more` options and variables, and where it serves."""
    with tempfile.TemporaryDirectory(prefix="bench-") as made:
        folder, listen = Path(made), f"127.0.0.1:{free_port()}"
        command = [*COMMAND, "run", "--listen", listen, *_options(folder), *more]
        child = Child(command, folder / "remediator.log", environment=environment)
        try:
            yield child.running.pid, f"http://{listen}"
        except BaseException:
            print(child.tail(), file=sys.stderr)
            raise
        finally:
            child.stop()


def _options(folder: Path) -> Sequence[str]:
    routes, token = folder / "routes.yaml", folder / "github-token"
    routes.write_text("default: {repository: example/gpus}\n")
    token.write_text("none")
    tickets = ["--routes", str(routes), "--github-token-file", str(token), "--github-url", NOBODY]
    return [*tickets, "--starts", "1000000"]


async def leads(url: str) -> bool:
    """Whether it leads; asked seldom, lest the asking be what is measured."""
    await asyncio.sleep(1.0)
    try:
        async with aiohttp.ClientSession() as session, session.get(f"{url}/metrics") as answer:
            return "remediator_leader 1.0" in await answer.text()
    except aiohttp.ClientError:
        return False


async def calm(pid: int, seconds: float) -> None:
    """Wait until the process has nothing left to do."""

    async def idle() -> bool:
        before = numbers.cpu_seconds(pid)
        await asyncio.sleep(seconds)
        return numbers.cpu_seconds(pid) - before < CALM_CPU * seconds

    await until(idle, SECONDS)


async def _storm(server: EmbeddedServer, nodes: Sequence[int]) -> None:
    """A fault on each of these nodes, until each has its case."""
    cases = server.cluster.store.collection(f"{api.CASE.plural}.{api.CASE.group}").entries
    before, (fault, *_), now = len(cases), large.faults(), datetime.now(UTC)
    for index in nodes:
        server.cluster.put(NODES.plural, large.node(index, now, fault, now - large.APART))
        await asyncio.sleep(0)
    await until(lambda: len(cases) >= before + len(nodes), SECONDS)


def table(reports: Sequence[Report]) -> Table:
    """The reports for a person."""
    shown = Table("nodes", "ended cases", "calm", "peak", "after the storm", "peak", title="resident memory, MiB")
    for report in reports:
        memory = [str(report[when][what]) for when in ("calm_mib", "storm_mib") for what in ("resident", "peak")]
        shown.add_row(f"{report['nodes']:,}", f"{report['ended_cases']:,}", *memory)
    return shown


def main() -> None:
    """Measure; print one line of JSON to stdout and a table to stderr."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.memory", description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, nargs="+", default=list(SIZES), help="Sizes of the cluster, one by one.")
    parser.add_argument("--no-operations", action="store_true", help="Ended cases without their operations.")
    parser.add_argument("--calm", type=float, default=CALM_SECONDS, help="Seconds that must pass without work.")
    asked = parser.parse_args()
    os.environ.pop("KUBECONFIG", None)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # what is compiled anew at each start takes memory of its own
    reports = [asyncio.run(measure(nodes, not asked.no_operations, asked.calm)) for nodes in asked.nodes]
    print(json.dumps(reports))
    Console(stderr=True).print(table(reports))


if __name__ == "__main__":
    main()
