"""kube-scheduler's requests inside the whole running system: `python -m tests.bench.whole`.

Three processes on loopback: the embedded API server with a large cluster (nodes of 27 conditions, a budget for each
rack, the shipped policies in Enforce, cases that wait and that have ended: large.py), `remediator run` with controller,
tickets and extender, which leads, and this one, which asks as kube-scheduler does: names only, in clear text, one
request after the other on one connection. With events on, a condition of a node comes or goes with each: the extender
says another thing of the node, and the controller looks at it, too; no case opens, since none lasts its tolerance.

With `--beside-go`, a bare extender in Go is asked the same, one request of it after one of ours.
"""

import argparse
import asyncio
import itertools
import json
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import aiohttp
from aiohttp import web
from rich.console import Console

from remediator_sim.apiserver import EmbeddedServer
from remediator_sim.ports import free_ports
from tests.bench import fleet, go_extender, large, memory, numbers
from tests.bench.extender import CALLS, Report, each, in_turn, often, quantiles, table, timed, unseen
from tests.cluster.control_plane import HOST
from tests.cluster.processes import Child
from tests.harness.kinds import NODES
from tests.harness.waiting import until

TICK = 0.002
SICK_IN = 20  # one node in so many has its condition now and then
SECONDS = 600.0
FAULT = ("gpu-lost", "GpuLost")


class System(NamedTuple):
    """Where the server is told how fast nodes change, where the extender answers, and the replica's process."""

    server: str
    extender: str
    pid: int


async def measure(nodes: int, requests: int, rate: float, calm: float, *, beside_go: bool) -> Report:
    """Everything that this benchmark states, of one run; milliseconds."""
    names = [large.name(index) for index in range(nodes)]
    report: Report = {"nodes": nodes, "requests": requests, "events_per_second": rate, "quiet": {}, "events": {}}
    async with AsyncExitStack() as ends:
        up = await ends.enter_async_context(system(nodes, calm))
        go = await ends.enter_async_context(go_extender.running()) if beside_go else None
        session = await ends.enter_async_context(aiohttp.ClientSession())
        for part, per_second in (("quiet", 0.0), ("events", rate)):
            await session.post(f"{up.server}/rate", data=str(per_second))
            for call in CALLS:
                report[part][call] = await _asked(up, part, call, names, requests)
                if go is not None:
                    sides = {"ours": (up.extender, up.pid), "go": (go.url, go.pid)}
                    asked = f"/scheduler/{call}", fleet.request(names), requests
                    report[part][call]["beside_go"] = await in_turn(sides, *asked)
        report["memory_mib"] = numbers.memory(up.pid)
        report["events_seen"] = await (await session.get(f"{up.server}/sent")).json()
    return report


async def _asked(up: System, part: str, call: str, names: list[str], requests: int) -> Report:
    path = f"/scheduler/{call}"
    first = await each(up.extender, path, unseen(names, part, call))
    asking = often(up.extender, path, fleet.request(names), requests)
    return {"http_first_ms": quantiles(first), **await timed("http", up.pid, requests, asking)}


@asynccontextmanager
async def system(nodes: int, calm: float) -> AsyncIterator[System]:
    """The server and a replica that leads and has nothing left to do."""
    admin, extender = free_ports(2)
    server = f"http://{HOST}:{admin}"
    with TemporaryDirectory(prefix="bench-") as made:
        words = ["-m", "tests.bench.whole", "--serve", f"{admin},{nodes}"]
        child = Child([sys.executable, *words], Path(made) / "server.log")
        try:
            kubeconfig = await until(lambda: _reached(server), SECONDS)
            options = ("--listen-extender", f"{HOST}:{extender}", "--no-tls")
            with memory.replica("--kubeconfig", str(kubeconfig), *options) as (pid, url):
                await until(lambda: memory.leads(url), SECONDS)
                await memory.calm(pid, calm)
                yield System(server, f"http://{HOST}:{extender}", pid)
        finally:
            child.stop()


async def _reached(server: str) -> Path | None:
    """How to reach the API server, once it is there."""
    try:
        async with aiohttp.ClientSession() as session, session.get(f"{server}/kubeconfig") as answer:
            return Path(await answer.text())
    except aiohttp.ClientConnectionError:
        return None


# --- the process of the server ---------------------------------------------------------------------------------------


class Events:
    """Nodes whose condition comes and goes, as often as is wanted."""

    def __init__(self, server: EmbeddedServer, size: large.Size) -> None:
        self._server, self.rate, self.sent = server, 0.0, 0
        nodes = large.sound(size)[:: SICK_IN // 2]
        self._turns = zip(itertools.cycle(nodes), self._sick(len(nodes)), strict=False)

    @staticmethod
    def _sick(nodes: int) -> itertools.chain[bool]:
        """Of these every second one is sick at first: how many are sick stays the same."""
        first = [index % 2 == 0 for index in range(nodes)]
        return itertools.chain.from_iterable(
            [sick != turned for sick in first] for turned in itertools.cycle((False, True))
        )

    async def run(self) -> None:
        """Make events until cancelled."""
        loop = asyncio.get_running_loop()
        owed, before = 0.0, loop.time()
        while True:
            await asyncio.sleep(TICK)
            owed, before = owed + self.rate * (loop.time() - before), loop.time()
            for _ in range(int(owed)):
                self._change()
            owed -= int(owed)

    def _change(self) -> None:
        index, sick = next(self._turns)
        now = datetime.now(UTC)
        self._server.cluster.put(NODES.plural, large.node(index, now, FAULT if sick else None, now))
        self.sent += 1


async def serve(port: int, nodes: int) -> None:
    """The embedded server, and events at a rate that can be set."""
    size = large.size(nodes)
    server = large.server(size)
    events = Events(server, size)

    async def set_rate(request: web.Request) -> web.Response:
        events.rate = float(await request.text())
        return web.Response()

    async def tell_sent(_: web.Request) -> web.Response:
        return web.json_response(events.sent)

    async with server.serve() as endpoint:

        async def tell_kubeconfig(_: web.Request) -> web.Response:
            return web.Response(text=str(endpoint.kubeconfig))

        app = web.Application()
        told = [web.get("/sent", tell_sent), web.get("/kubeconfig", tell_kubeconfig)]
        app.add_routes([web.post("/rate", set_rate), *told])
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, HOST, port).start()
        await events.run()


def main() -> None:
    """Measure; print one line of JSON to stdout and a table to stderr."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.whole", description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--requests", type=int, default=500)
    parser.add_argument("--rate", type=float, default=500.0, help="Node events a second in the second half.")
    parser.add_argument("--calm", type=float, default=memory.CALM_SECONDS, help="Seconds that pass without work first.")
    parser.add_argument("--beside-go", action="store_true", help="Ask a bare extender in Go the same; needs Go.")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.serve:
        asyncio.run(serve(*(int(part) for part in asked.serve.split(","))))
        return
    report = asyncio.run(measure(asked.nodes, asked.requests, asked.rate, asked.calm, beside_go=asked.beside_go))
    print(json.dumps(report))
    Console(stderr=True).print(table(report))


if __name__ == "__main__":
    main()
