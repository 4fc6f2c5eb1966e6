"""The scheduler extender at 5,000 nodes: `python -m tests.bench.extender`.

Three processes on loopback: the extender as a replica serves it, a feed that plays the API server (nodes of about the
size of real ones, four Pods to a node, one policy), and this one, which asks as kube-scheduler does: names only, one
request after the other on one connection. A twentieth of the nodes is sick. With events on, every event of the feed
makes a node sick or well, so that each changes what is said; heartbeats, which most real events are, change nothing.

Measured twice: over HTTP, from the first byte sent to the last byte read, both ends in Python; and the handler alone,
bytes to bytes, inside the extender's process. `first` is the first request for a shape of Pod, `seen` any later one.
"""

import argparse
import asyncio
import json
import math
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web
from rich.console import Console
from rich.table import Table

from remediator.kube.wire.client import Client
from remediator.kube.wire.http import HttpTransport
from remediator.web import extender as page
from remediator.web import probes
from tests.bench import fleet, numbers
from tests.cluster.control_plane import HOST, free_ports
from tests.harness.replica import an_extender, at_work

PAUSE = 0.004  # between two requests: the scheduler has work of its own
READY_SECONDS = 120.0
CALLS = ("filter", "prioritize")
SHAPES = 1_000  # where the counts of GPUs begin that nobody has asked for before
Report = dict[str, Any]


async def measure(nodes: int, requests: int, rate: float) -> Report:
    """Everything that this benchmark states, of one run; milliseconds."""
    names = fleet.names(nodes)
    report: Report = {"nodes": nodes, "requests": requests, "events_per_second": rate, "quiet": {}, "events": {}}
    async with _processes(nodes) as (api, extender, pid), aiohttp.ClientSession() as session:
        for part, per_second in (("quiet", 0.0), ("events", rate)):
            await session.post(f"{api}/rate", data=str(per_second))
            for call in CALLS:
                url = f"{extender}/scheduler/{call}"
                report[part][call] = {
                    "http_first_ms": quantiles([await _ask(session, url, body) for body in _new(names, part, call)]),
                    "http_seen_ms": quantiles(await _often(session, url, fleet.request(names), requests)),
                    "handler_seen_ms": quantiles(await _inside(session, extender, call, nodes, requests)),
                }
        report["memory_mib"] = numbers.memory(pid)
        report["events_seen"] = await (await session.get(f"{api}/sent")).json()
    return report


def _new(names: Sequence[str], *salt: str) -> list[bytes]:
    """Requests for shapes of Pod that are asked for once only."""
    first = SHAPES * (2 + CALLS.index(salt[1]) + 2 * (salt[0] == "events"))
    return [fleet.request(names, first + count) for count in range(20)]


async def _often(session: aiohttp.ClientSession, url: str, body: bytes, count: int) -> list[float]:
    for _ in range(10):
        await _ask(session, url, body)
    return [await _ask(session, url, body) for _ in range(count)]


async def _ask(session: aiohttp.ClientSession, url: str, body: bytes) -> float:
    await asyncio.sleep(PAUSE)
    began = time.perf_counter()
    async with session.post(url, data=body, headers={"Content-Type": "application/json"}) as answer:
        await answer.read()
    return time.perf_counter() - began


async def _inside(session: aiohttp.ClientSession, extender: str, call: str, nodes: int, count: int) -> list[float]:
    query = {"call": call, "nodes": str(nodes), "count": str(count)}
    async with session.post(f"{extender}/inside", params=query) as answer:
        return await answer.json()


def quantiles(samples: Sequence[float]) -> dict[str, float]:
    """Milliseconds at p50, p95, p99 and max of samples in seconds: each is a sample (nearest rank)."""
    ordered = sorted(samples)
    parts = numbers.QUANTILES.items()
    return {name: round(1000 * ordered[math.ceil(part * len(ordered)) - 1], 3) for name, part in parts}


# --- processes -------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def _processes(nodes: int) -> AsyncIterator[tuple[str, str, int]]:
    """The feed and the extender, synced; gives their URLs, and the process of the latter."""
    feed, served = free_ports(2)
    api, extender = f"http://{HOST}:{feed}", f"http://{HOST}:{served}"
    # One after the other: an extender that finds no feed warns of it.
    parts = {
        f"{api}/sent": ["tests.bench.fleet", str(feed), str(nodes)],
        f"{extender}/ready": ["tests.bench.extender", "--serve", str(served), "--api", api],
    }
    running: list[asyncio.subprocess.Process] = []
    try:
        async with aiohttp.ClientSession() as session, asyncio.timeout(READY_SECONDS):
            for url, words in parts.items():
                running.append(await asyncio.create_subprocess_exec(sys.executable, "-m", *words))
                while not await _ready(session, url):
                    assert all(one.returncode is None for one in running), "a process of the benchmark has ended"
                    await asyncio.sleep(0.1)
        yield api, extender, running[1].pid
    finally:
        for process in reversed(running):
            with suppress(ProcessLookupError):
                process.terminate()
            await process.wait()


async def _ready(session: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with session.get(url) as answer:
            return answer.status == 200
    except aiohttp.ClientConnectionError:
        return False


async def serve(port: int, api: str) -> None:
    """The extender as a replica serves it, and a way to call its handlers from inside."""
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig = Path(folder) / "kubeconfig"
        kubeconfig.write_text(json.dumps(fleet.kubeconfig(api)))
        transport = await HttpTransport.from_kubeconfig(kubeconfig)
    extender, informers = an_extender(Client(transport))

    async def ready(_: web.Request) -> web.Response:
        return web.Response(status=200 if extender.ready() else 503)

    async def inside(request: web.Request) -> web.Response:
        asked = request.query
        body = fleet.request(fleet.names(int(asked["nodes"])))
        handler = {"filter": extender.filter, "prioritize": extender.prioritize}[asked["call"]]
        samples = []
        for _ in range(int(asked["count"])):
            await asyncio.sleep(PAUSE)
            began = time.perf_counter()
            handler(body)
            samples.append(time.perf_counter() - began)
        return web.json_response(samples)

    app = web.Application()
    app.add_routes([*page.routes(extender), web.get("/ready", ready), web.post("/inside", inside)])
    async with probes.served(app, f"{HOST}:{port}"), at_work(informers.run(), extender.run()):
        await asyncio.Event().wait()


def table(report: Report) -> Table:
    """The report for a person."""
    title = f"extender, {report['nodes']} nodes, {report['requests']} requests each, ms"
    shown = Table("", *numbers.QUANTILES, title=title)
    for part, words in (("quiet", "no events"), ("events", f"{report['events_per_second']:.0f} events/s")):
        for call in CALLS:
            for key, found in report[part][call].items():
                where = key.removesuffix("_ms").replace("_", ", ")
                shown.add_row(f"{call}, {where}, {words}", *(f"{value:.2f}" for value in found.values()))
    shown.caption = f"memory {report['memory_mib']['resident']} MiB (peak {report['memory_mib']['peak']})"
    return shown


def main() -> None:
    """Measure; print one line of JSON to stdout and a table to stderr."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.extender", description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--rate", type=float, default=500.0, help="Node events a second in the second half.")
    parser.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--api", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.serve:
        asyncio.run(serve(asked.serve, asked.api))
        return
    report = asyncio.run(measure(asked.nodes, asked.requests, asked.rate))
    print(json.dumps(report))
    Console(stderr=True).print(table(report))


if __name__ == "__main__":
    main()
