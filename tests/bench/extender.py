"""The scheduler extender at 5,000 nodes: `python -m tests.bench.extender`.

Three processes on loopback: the extender as a replica serves it, a feed that plays the API server (nodes of about the
size of real ones, four Pods to a node, one policy), and this one, which asks as kube-scheduler does: names only, one
request after the other on one connection. A twentieth of the nodes is sick. With events on, every event of the feed
makes a node sick or well, so that each changes what is said; heartbeats, which most real events are, change nothing.

Measured three times: over HTTP, from the first byte sent to the last byte read, by a client that takes next to no time
(asker.py); the same over TLS with a client certificate, as it is shipped; and the handler alone, bytes to bytes, inside
the extender's process.
`first` is the first request for a shape of Pod, `seen` any later one about the same list of names, `other_names` one
whose list is not among the last; `cpu` is the processor time of the extender for each.

With `--beside-go`, a bare extender in Go (net/http, encoding/json, every node passes) is asked the same in clear text,
one request of it after one of ours.
"""

import argparse
import asyncio
import gc
import json
import math
import ssl
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
from aiohttp import web
from rich.console import Console
from rich.table import Table

from remediator import collector
from remediator.controller.evictions import EvictionJudge
from remediator.core.names import Namespaces
from remediator.kube.wire.client import Client
from remediator.kube.wire.http import HttpTransport
from remediator.scheduler.asked import KEPT
from remediator.tickets.commands.hint import Heard
from remediator.tickets.webhook.payload import alerts_in
from remediator.tickets.webhook.posted import BadPayload
from remediator.tickets.webhook.receiver import Received, Result
from remediator.web import certificates, evictions, github_hook, probes, webhook
from remediator.web import extender as page
from remediator.web.caller import Anybody, Callers
from remediator.web.endpoints import ALERTMANAGER, EVICTIONS, EXTENDER, GITHUB, KUBE_SCHEDULER, PROBES, WEBHOOK
from remediator.web.listener import ConnectionLimits, Endpoint
from remediator_sim.ports import free_ports
from tests.bench import fleet, go_extender, numbers
from tests.bench.asker import PAUSE, Asker
from tests.bench.stalls import Meter, measured_loop
from tests.cluster.control_plane import HOST
from tests.harness.endpoints import HOUR, NOW, authority, server_context
from tests.harness.replica import an_extender, at_work, empty_cache

WARM = 10
READY_SECONDS = 120.0
CALLS = ("filter", "prioritize")
TURNS = 2 * KEPT  # orders of the names, more than the extender keeps
SHAPES = 1_000  # where the counts of GPUs begin that nobody has asked for before
TOKEN = "right"  # of Alertmanager
Report = dict[str, Any]


async def measure(nodes: int, requests: int, rate: float, *, beside_go: bool = False) -> Report:
    """Everything that this benchmark states, of one run; milliseconds."""
    names = fleet.names(nodes)
    report: Report = {"nodes": nodes, "requests": requests, "events_per_second": rate, "quiet": {}, "events": {}}
    async with (
        processes(nodes) as served,
        go_extender.running() if beside_go else nullcontext() as other,
        aiohttp.ClientSession() as session,
    ):
        for part, per_second in (("quiet", 0.0), ("events", rate)):
            await session.post(f"{served.api}/rate", data=str(per_second))
            for call in CALLS:
                path, seen, tls = f"/scheduler/{call}", fleet.request(names), served.tls
                report[part][call] = {
                    "https_first_ms": quantiles(await each(served.extender, path, unseen(names, part, call), tls)),
                    **await timed("https", served.pid, requests, often(served.extender, path, seen, requests, tls)),
                    **await timed("http", served.pid, requests, often(served.admin, path, seen, requests)),
                    "https_other_names_ms": quantiles(await each(served.extender, path, turned(names, requests), tls)),
                    "handler_seen_ms": quantiles(await _inside(session, served.admin, call, nodes, requests)),
                }
                if other is not None:
                    sides = {"ours": (served.admin, served.pid), "go": (other.url, other.pid)}
                    report[part][call]["beside_go"] = await in_turn(sides, path, seen, requests)
        report["memory_mib"] = numbers.memory(served.pid)
        report["events_seen"] = await (await session.get(f"{served.api}/sent")).json()
    return report


async def in_turn(sides: Mapping[str, tuple[str, int]], path: str, body: bytes, count: int) -> Report:
    """What a request takes those who answer at each URL, with each its process, asked in turn."""
    before = {side: numbers.cpu_seconds(pid) for side, (_, pid) in sides.items()}
    samples: dict[str, list[float]] = {side: [] for side in sides}
    with ExitStack() as ends:
        askers = {side: ends.enter_context(Asker(url)) for side, (url, _) in sides.items()}
        for _ in range(WARM + count):
            for side, asker in askers.items():
                samples[side].append(await asyncio.to_thread(asker.post, path, body))
    return {
        side: {
            **quantiles(samples[side][WARM:]),
            "cpu": round(1000 * (numbers.cpu_seconds(pid) - before[side]) / (WARM + count), 3),
        }
        for side, (_, pid) in sides.items()
    }


def unseen(names: Sequence[str], *salt: str) -> list[bytes]:
    """Requests for shapes of Pod that are asked for once only."""
    first = SHAPES * (2 + CALLS.index(salt[1]) + 2 * (salt[0] == "events"))
    return [fleet.request(names, first + count) for count in range(20)]


def turned(names: Sequence[str], count: int) -> list[bytes]:
    """So many requests of which none has its names in the order of one of the last before it."""
    bodies = [fleet.request([*names[at:], *names[:at]]) for at in range(1, TURNS + 1)]
    return [bodies[at % TURNS] for at in range(count)]


async def timed(scheme: str, pid: int, count: int, asking: Awaitable[list[float]]) -> dict[str, dict[str, float]]:
    """How long answers took, and the processor time of each, ten that warm up and events included."""
    before = numbers.cpu_seconds(pid)
    samples = await asking
    each = 1000 * (numbers.cpu_seconds(pid) - before) / (count + WARM)
    return {f"{scheme}_seen_ms": quantiles(samples), f"{scheme}_cpu_ms": {"mean": round(each, 3)}}


async def often(
    url: str, path: str, body: bytes, count: int, tls: ssl.SSLContext | None = None, warm: int = WARM
) -> list[float]:
    """Seconds of each of so many requests; those that warm up do not count."""
    return (await each(url, path, [body] * (warm + count), tls))[warm:]


async def each(url: str, path: str, bodies: Sequence[bytes], tls: ssl.SSLContext | None = None) -> list[float]:
    """Seconds of each request, one after the other on one connection."""

    def asked() -> list[float]:
        with Asker(url, tls) as asker:
            return [asker.post(path, body) for body in bodies]

    return await asyncio.to_thread(asked)


async def _inside(session: aiohttp.ClientSession, admin: str, call: str, nodes: int, count: int) -> list[float]:
    query = {"call": call, "nodes": str(nodes), "count": str(count)}
    async with session.post(f"{admin}/inside", params=query) as answer:
        return await answer.json()


def quantiles(samples: Sequence[float]) -> dict[str, float]:
    """Milliseconds at p50, p95, p99 and max of samples in seconds: each is a sample (nearest rank)."""
    ordered = sorted(samples)
    parts = numbers.QUANTILES.items()
    return {name: round(1000 * ordered[math.ceil(part * len(ordered)) - 1], 3) for name, part in parts}


# --- processes -------------------------------------------------------------------------------------------------------


class Served(NamedTuple):
    """URLs of the feed, of what the benchmark adds, and of the endpoints; the process, and what a scheduler shows."""

    api: str
    admin: str
    extender: str
    webhook: str
    probes: str
    github: str
    evictions: str
    pid: int
    tls: ssl.SSLContext
    folder: Path


@asynccontextmanager
async def processes(nodes: int, *more: str) -> AsyncIterator[Served]:
    """The feed and the extender, synced."""
    ports = free_ports(7)
    feed, admin, extender, webhook, probe, github, asked = (f"{HOST}:{port}" for port in ports)
    running: list[asyncio.subprocess.Process] = []
    with tempfile.TemporaryDirectory() as folder:
        # One after the other: an extender that finds no feed warns of it.
        words = ["--serve", ",".join(map(str, ports[1:])), "--api", f"http://{feed}", "--folder", folder, *more]
        parts = {
            f"http://{feed}/sent": ["tests.bench.fleet", str(ports[0]), str(nodes)],
            f"http://{admin}/ready": ["tests.bench.extender", *words],
        }
        try:
            async with aiohttp.ClientSession() as session, asyncio.timeout(READY_SECONDS):
                for url, part in parts.items():
                    running.append(await asyncio.create_subprocess_exec(sys.executable, "-m", *part))
                    while not await _ready(session, url):
                        assert all(one.returncode is None for one in running), "a process of the benchmark has ended"
                        await asyncio.sleep(0.1)
            plain = (f"http://{feed}", f"http://{admin}")
            secured = (f"https://{github}", f"https://{asked}")
            urls = (*plain, f"https://{extender}", f"https://{webhook}", f"http://{probe}", *secured)
            yield Served(*urls, running[1].pid, shown(Path(folder)), Path(folder))
        finally:
            for process in reversed(running):
                with suppress(ProcessLookupError):
                    process.terminate()
                await process.wait()


def shown(folder: Path) -> ssl.SSLContext:
    """What kube-scheduler trusts and shows."""
    made = ssl.create_default_context(cafile=folder / "ca.crt")
    made.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    return made


async def _ready(session: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with session.get(url) as answer:
            return answer.status == 200
    except aiohttp.ClientConnectionError:
        return False


class Taker:
    """In the place of the receiver of alerts: what a post costs before anything is stored."""

    async def receive(self, body: bytes, parameters: Sequence[tuple[str, str]] = ()) -> Received:
        """Read it."""
        try:
            return Received(Result.STORED, f"{sum(each is not None for each in alerts_in(body))} alerts")
        except BadPayload as error:
            return Received(Result.BAD, str(error))


class Deaf:
    """In the place of who listens to GitHub: what a post costs before anything of it is read."""

    async def hear(self, event: str, body: bytes) -> tuple[Heard, str]:
        """Do nothing about it."""
        return Heard.IGNORED, f"{event}: {len(body)}"


async def serve(ports: Sequence[int], api: str, folder: Path, meter: Meter, whole_nodes: bool) -> None:
    """The endpoints as a replica serves them, and a way to call the handlers of the extender from inside."""
    for name, text in certificates.for_caller(authority(), KUBE_SCHEDULER, HOUR, NOW).items():
        (folder / name).write_bytes(text)
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(json.dumps(fleet.kubeconfig(api)))
    transport = await HttpTransport.from_kubeconfig(kubeconfig)
    client = Client(transport)
    extender, informers = an_extender(client)
    judge = EvictionJudge(client, empty_cache(client).operations, Namespaces())

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

    async def nothing() -> None:
        """There is nothing to measure."""

    async def longest(_: web.Request) -> web.Response:
        seconds = meter.longest
        meter.reset()
        return web.json_response(1000 * seconds)

    plain, secured, posts, comments, asked = (web.Application() for _ in range(5))
    plain.add_routes(
        [
            *page.routes(extender, page.bodies(False)),
            web.get("/ready", ready),
            web.post("/inside", inside),
            web.get("/longest", longest),
        ]
    )
    secured.add_routes(page.routes(extender, page.bodies(whole_nodes)))
    posts.add_routes(webhook.routes(Taker(), webhook.bodies(16)))  # type: ignore[arg-type]
    comments.add_routes(github_hook.routes(Deaf(), lambda: TOKEN, github_hook.bodies()))  # type: ignore[arg-type]
    asked.add_routes(evictions.routes(judge, evictions.bodies()))
    contexts = server_context(), server_context(token=True)
    served = (
        Endpoint("admin", plain, ConnectionLimits(), Anybody()),
        Endpoint("extender", secured, EXTENDER, Callers(KUBE_SCHEDULER, None), lambda: contexts[0]),
        Endpoint("webhook", posts, WEBHOOK, Callers(ALERTMANAGER, lambda: TOKEN), lambda: contexts[1]),
        Endpoint("probes", probes.application({"extender": extender.ready}, nothing), PROBES),
        Endpoint("github", comments, GITHUB, None, lambda: contexts[1]),
        Endpoint("evictions", asked, EVICTIONS, None, lambda: contexts[1]),
    )
    async with AsyncExitStack() as ends:
        for endpoint, port in zip(served, ports, strict=True):
            await ends.enter_async_context(endpoint.served(f"{HOST}:{port}"))
        with collector.short_pauses():
            async with at_work(informers.run(), extender.run()):
                await extender.synced()
                gc.collect()
                await asyncio.Event().wait()


def table(report: Report) -> Table:
    """The report for a person."""
    title = f"extender, {report['nodes']} nodes, {report['requests']} requests each, ms"
    shown = Table("", *numbers.QUANTILES, title=title)
    for part, words in (("quiet", "no events"), ("events", f"{report['events_per_second']:.0f} events/s")):
        for call in CALLS:
            for key, found in report[part][call].items():
                if key == "beside_go":
                    for side, took in found.items():
                        values = (f"{took[name]:.2f}" for name in numbers.QUANTILES)
                        shown.add_row(f"{call}, in turn, {side}, cpu {took['cpu']:.2f}, {words}", *values)
                    continue
                if "mean" in found:
                    shown.add_row(f"{call}, {key}, {words}", f"{found['mean']:.2f}")
                    continue
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
    parser.add_argument("--beside-go", action="store_true", help="Ask a bare extender in Go the same; needs Go.")
    for hidden in ("--serve", "--api", "--folder"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    for hidden in ("--measured", "--whole-nodes"):
        parser.add_argument(hidden, action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.serve:
        meter, ports = Meter(), [int(port) for port in asked.serve.split(",")]
        with asyncio.Runner(loop_factory=(lambda: measured_loop(meter)) if asked.measured else None) as runner:
            runner.run(serve(ports, asked.api, Path(asked.folder), meter, asked.whole_nodes))
        return
    report = asyncio.run(measure(asked.nodes, asked.requests, asked.rate, beside_go=asked.beside_go))
    print(json.dumps(report))
    Console(stderr=True).print(table(report))


if __name__ == "__main__":
    main()
