"""What the watchdog of one node costs while nothing is ordered: `python -m tests.bench.watchdog`.

The program of each of its containers runs as it is shipped, take-orders at the embedded API server over HTTPS.
"""

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from rich.console import Console
from rich.table import Table

from remediator_sim.apiserver import EmbeddedServer
from remediator_sim.apiserver.faults import Asked
from remediator_sim.apiserver.http import Endpoint
from remediator_sim.kubelet.program import RunningProgram
from tests.bench.numbers import cpu_seconds, memory
from tests.harness.waiting import until

FOLDER = Path(__file__).resolve().parents[2] / "watchdog"
PROGRAMS = ("take_orders", "carry_out")
SECONDS = 120.0
ORDERS_ASKED = 2  # requests after which take-orders only waits: its list, and the watch from there on
Report = dict[str, Any]


class Idle(NamedTuple):
    """Both programs, and the paths that were asked for since they started."""

    programs: dict[str, RunningProgram]
    asked: list[str]


def environment(folder: Path, endpoint: Endpoint) -> dict[str, str]:
    """What both containers are given; its folders and the files of the token are made."""
    for name in ("orders", "answers", "host", "token"):
        (folder / name).mkdir()
    for name, text in (("token", "t"), ("namespace", "remediator-system"), ("ca.crt", endpoint.ca_file.read_text())):
        (folder / "token" / name).write_text(text)
    where = urlsplit(endpoint.url)
    return {
        "KUBERNETES_SERVICE_HOST": str(where.hostname),
        "KUBERNETES_SERVICE_PORT": str(where.port),
        "NODE_NAME": "gpu-1",
        "TOKEN_DIR": str(folder / "token"),
        "ORDERS": str(folder / "orders"),
        "ANSWERS": str(folder / "answers"),
        "HOST_ROOT": str(folder / "host"),
    }


@asynccontextmanager
async def idle(folder: Path) -> AsyncIterator[Idle]:
    """Both programs, from when take-orders waits for a change of its orders."""
    server, asked = EmbeddedServer(), list[str]()

    def note(request: Asked) -> bool:
        asked.append(request.path)
        return False

    server.faults.refuse(503, when=note)
    async with server.serve() as endpoint, AsyncExitStack() as stack:
        given, programs = environment(folder, endpoint), dict[str, RunningProgram]()
        for name in PROGRAMS:
            command = [sys.executable, "-I", "-S", FOLDER / f"{name}.py"]
            programs[name] = await RunningProgram.start(command, folder / f"{name}.log", given)
            stack.push_async_callback(programs[name].kill)
        await until(lambda: len(asked) >= ORDERS_ASKED)
        yield Idle(programs, asked)


async def measure(seconds: float) -> Report:
    """Everything that this benchmark states, of so long a time without an order."""
    with tempfile.TemporaryDirectory(prefix="remediator-bench-") as name:
        async with idle(Path(name)) as watchdog:
            before = {name: cpu_seconds(program.pid) for name, program in watchdog.programs.items()}
            await asyncio.sleep(seconds)
            each = {name: _cost(program.pid, before[name], seconds) for name, program in watchdog.programs.items()}
            requests = len(watchdog.asked) - ORDERS_ASKED
    together = {key: round(sum(cost[key] for cost in each.values()), 3) for key in ("mib", "cpu_percent")}
    return {"seconds": seconds, "each": each, "together": together, "requests": requests}


def _cost(pid: int, before: float, seconds: float) -> dict[str, float]:
    spent = 100 * (cpu_seconds(pid) - before) / seconds
    return {"mib": memory(pid)["resident"], "cpu_percent": round(spent, 3)}


def show(report: Report, console: Console) -> None:
    """The report for people."""
    table = Table(title=f"A watchdog without orders for {report['seconds']:g} s")
    for column in ("container", "MiB", "of a core"):
        table.add_column(column, justify="left" if column == "container" else "right")
    for name, cost in (*report["each"].items(), ("together", report["together"])):
        table.add_row(name, f"{cost['mib']:.1f}", f"{cost['cpu_percent']:.3f} %")
    console.print(table)
    console.print(f"requests to the API server: {report['requests']}")


def main() -> None:
    """Measure and print: one line of JSON on stdout, tables on stderr."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="how long to look on (%(default)g)")
    report = asyncio.run(measure(parser.parse_args().seconds))
    show(report, Console(stderr=True))
    print(json.dumps(report))


if __name__ == "__main__":
    main()
