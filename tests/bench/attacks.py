"""What callers feel while the endpoints are attacked: `python -m tests.bench.attacks`.

The endpoints as a replica serves them, with 5,000 nodes, in one process; an attacker in another, at another address;
and this one, which asks the extender over one connection, as kube-scheduler does, and the probes over a new connection
each time. For each attack: the most memory that the process held, processor time in each second, the longest turn of
the loop in processor time (nobody is answered meanwhile), and the answers of both.
"""

import argparse
import asyncio
import gzip
import json
import os
import ssl
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
from rich.console import Console
from rich.table import Table

from remediator.web import github_hook
from tests.bench import fleet, numbers
from tests.bench.extender import TOKEN, Report, Served, processes, quantiles, shown
from tests.cluster.control_plane import HOST
from tests.harness.endpoints import ELSEWHERE

MIB = 2**20
MANY = 200
CHUNKS = b"1\r\nx\r\n" * 40_000
Attack = Callable[["Attacker"], Awaitable[None]]


class Attacker:
    """What one process can do to an endpoint at `port`; `tls`: shown to it, None speaks no TLS."""

    def __init__(self, port: int, tls: ssl.SSLContext | None) -> None:
        self.port, self.tls = port, tls

    async def send(self, *parts: bytes, wait: float = 0.0) -> None:
        """One connection; what goes wrong on it is what an attacker expects."""
        with suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
            reader, writer = await asyncio.open_connection(
                HOST, self.port, ssl=self.tls, server_hostname=HOST if self.tls else None, local_addr=(ELSEWHERE, 0)
            )
            try:
                for part in parts:
                    writer.write(part)
                    await asyncio.wait_for(writer.drain(), 5)
                    await asyncio.sleep(wait)
                await asyncio.wait_for(reader.read(), 5)
            finally:
                writer.transport.abort()

    async def again(self, *parts: bytes, at_once: int = MANY, wait: float = 0.0) -> None:
        """So many connections at once, each begun anew when it ends."""

        async def one() -> None:
            while True:
                await self.send(*parts, wait=wait)

        await asyncio.gather(*(one() for _ in range(at_once)))


def head(path: str, *more: str) -> bytes:
    """The head of a post."""
    return "\r\n".join((f"POST {path} HTTP/1.1", "Host: h", *more, "", "")).encode()


HOOK, FILTER = "/webhooks/alertmanager", "/scheduler/filter"
COMMENTS, UNSIGNED = github_hook.PATH, f"{github_hook.SIGNATURE}: sha256={64 * '0'}"
RIGHT, WRONG = (f"Authorization: Bearer {token}" for token in (TOKEN, "wrong"))
BOMB = gzip.compress(bytes(64 * MIB), 9)
NAMES = fleet.names(5000)


def whole(path: str, body: bytes, *more: str) -> bytes:
    """A post with its length."""
    return head(path, f"Content-Length: {len(body)}", *more) + body


async def _shapes(attacker: Attacker) -> None:
    bodies = [whole(FILTER, fleet.request(NAMES, 100 + count), "Connection: close") for count in range(64)]
    while True:
        for body in bodies:
            await attacker.send(body)


def containers(size: int) -> bytes:
    """A request that is slow to read: as many empty containers as fit."""
    return b'{"Pod":{"spec":{"initContainers":[' + b"{}," * (size // 3) + b'{}]}},"NodeNames":[]}'


# What is sent: to which endpoint, what is shown there (none: no TLS; strange: TLS without a certificate), and how.
ATTACKS: Mapping[str, tuple[str, str, Attack]] = {
    "nothing": ("probes", "none", lambda attacker: asyncio.sleep(600)),
    "200 connections that say nothing": ("extender", "none", lambda attacker: attacker.again(wait=5)),
    "200 heads that never end, webhook": ("webhook", "strange", lambda a: a.again(*[b"POST / H"] * 50, wait=0.2)),
    "handshakes without a certificate, 8 at once": ("extender", "strange", lambda a: a.again(at_once=8)),
    "garbage, 8 at once": ("extender", "none", lambda a: a.again(os.urandom(4000), at_once=8)),
    "gzip bombs of 64 MiB, wrong token, 32 at once": (
        "webhook",
        "strange",
        lambda a: a.again(whole(HOOK, BOMB, "Content-Encoding: gzip", WRONG), at_once=32),
    ),
    "40,000 chunks of a byte, wrong token, 32 at once": (
        "webhook",
        "strange",
        lambda a: a.again(head(HOOK, "Transfer-Encoding: chunked", WRONG) + CHUNKS, at_once=32),
    ),
    "to GitHub's port: 200 connections that say nothing": ("github", "none", lambda a: a.again(wait=5)),
    "to GitHub's port: posts of 1 MiB, wrong signature, 32 at once": (
        "github",
        "strange",
        lambda a: a.again(whole(COMMENTS, bytes(MIB), UNSIGNED), at_once=32),
    ),
    "to GitHub's port: 200 posts of 1 MiB that stop in the middle": (
        "github",
        "strange",
        lambda a: a.again(head(COMMENTS, f"Content-Length: {MIB}", UNSIGNED) + bytes(MIB // 2), wait=5),
    ),
    "metrics that nobody reads, 64 at once": (
        "probes",
        "none",
        lambda a: a.again(b"GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n" * 20, at_once=64, wait=5),
    ),
    "with the token: gzip bombs, 32 at once": (
        "webhook",
        "strange",
        lambda a: a.again(whole(HOOK, BOMB, "Content-Encoding: gzip", RIGHT), at_once=32),
    ),
    "with the token: 120 posts of 16 MiB that stop in the middle": (
        "webhook",
        "strange",
        lambda a: a.again(head(HOOK, f"Content-Length: {16 * MIB}", RIGHT) + bytes(MIB), at_once=120, wait=5),
    ),
    "with kube-scheduler's certificate: 64 shapes of Pods": ("extender", "ours", _shapes),
    "with kube-scheduler's certificate: 1.5 MiB of containers": (
        "extender",
        "ours",
        lambda a: a.again(whole(FILTER, containers(3 * MIB // 2), "Connection: close"), at_once=1),
    ),
}


# With --extender-whole-nodes, where a body may have 96 MiB.
WHOLE_NODES: Mapping[str, tuple[str, str, Attack]] = {
    "whole Nodes: nothing": ("probes", "none", lambda attacker: asyncio.sleep(600)),
    "whole Nodes, without a certificate: 32 posts of 96 MiB": (
        "extender",
        "strange",
        lambda a: a.again(head(FILTER, f"Content-Length: {96 * MIB}") + bytes(MIB), at_once=32),
    ),
    "whole Nodes, kube-scheduler's certificate: 32 posts of 96 MiB that stop in the middle": (
        "extender",
        "ours",
        lambda a: a.again(head(FILTER, f"Content-Length: {96 * MIB}") + bytes(48 * MIB), at_once=32, wait=5),
    ),
    "whole Nodes, kube-scheduler's certificate: 75 MiB, as 5,000 nodes are": (
        "extender",
        "ours",
        lambda a: a.again(whole(FILTER, _whole_nodes(), "Connection: close"), at_once=1),
    ),
}


def _whole_nodes() -> bytes:
    request = json.loads(fleet.request([]))
    return json.dumps(
        request | {"Nodes": {"items": [fleet.node(name, False) for name in NAMES]}, "NodeNames": None}
    ).encode()


async def measure(nodes: int, seconds: float) -> list[Report]:
    """One row for each attack."""
    rows = []
    for attacks, options in ((ATTACKS, ()), (WHOLE_NODES, ("--whole-nodes",))):
        async with processes(nodes, "--measured", *options) as served:
            rows += [await _row(name, attacks[name], served, seconds) for name in attacks]
    return rows


async def _row(name: str, how: tuple[str, str, Attack], served: Served, seconds: float) -> Report:
    words = ["--attack", name, "--port", str(urlsplit(getattr(served, how[0])).port)]
    command = [sys.executable, "-m", "tests.bench.attacks", *words, "--folder", str(served.folder)]
    attacker = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    try:
        assert attacker.stdout is not None
        await attacker.stdout.readline()
        Path(f"/proc/{served.pid}/clear_refs").write_text("5")  # the peak begins anew
        await _longest(served)
        before = numbers.cpu_seconds(served.pid)
        extender, probes = await asyncio.gather(_extender(served, seconds), _probes(served, seconds))
        used, turn = (numbers.cpu_seconds(served.pid) - before) / seconds, await _longest(served)
    finally:
        attacker.kill()
        await attacker.wait()
    return {
        "attack": name,
        "peak_mib": numbers.memory(served.pid)["peak"],
        "cpu": round(used, 2),
        "turn_ms": round(turn, 1),
        "extender_ms": quantiles(extender),
        "probes_ms": quantiles(probes),
    }


async def _longest(served: Served) -> float:
    """The longest turn of the loop since the last question, in milliseconds."""
    async with aiohttp.ClientSession() as session, session.get(f"{served.admin}/longest") as answer:
        return float(await answer.json())


async def _extender(served: Served, seconds: float) -> list[float]:
    body, url = fleet.request(NAMES), f"{served.extender}{FILTER}"
    async with aiohttp.ClientSession() as session:

        async def ask() -> None:
            async with session.post(url, data=body, ssl=served.tls) as answer:
                await answer.read()

        await ask()
        return await _often(ask, seconds, 0.05)


async def _probes(served: Served, seconds: float) -> list[float]:
    async def ask() -> None:
        async with aiohttp.ClientSession() as session, session.get(f"{served.probes}/readyz/extender") as answer:
            assert answer.status == 200

    return await _often(ask, seconds, 0.1)


async def _often(ask: Callable[[], Awaitable[None]], seconds: float, pause: float) -> list[float]:
    samples, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.perf_counter()
        await ask()
        samples.append(time.perf_counter() - began)
        await asyncio.sleep(pause)
    return samples


async def attack(name: str, port: int, folder: Path) -> None:
    """Attack until killed."""
    _, shows, how = {**ATTACKS, **WHOLE_NODES}[name]
    contexts = {
        "none": lambda: None,
        "strange": lambda: ssl.create_default_context(cafile=folder / "ca.crt"),
        "ours": lambda: shown(folder),
    }
    begun = how(Attacker(port, contexts[shows]()))  # what is sent is made by now
    print("begins", flush=True)
    await begun


def table(rows: list[Report]) -> Table:
    """The rows for a person."""
    heads = ("attack", "memory, MiB", "processor", "turn, ms", "extender p99, ms", "max", "probes p99, ms", "max")
    shown = Table(*heads, title="answers of others while the endpoints are attacked")
    for row in rows:
        times = [f"{row[who][part]:.1f}" for who in ("extender_ms", "probes_ms") for part in ("p99", "max")]
        shown.add_row(row["attack"], f"{row['peak_mib']:.0f}", f"{row['cpu']:.2f}", f"{row['turn_ms']:.0f}", *times)
    return shown


def main() -> None:
    """Measure; print one line of JSON to stdout and a table to stderr."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.attacks", description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--seconds", type=float, default=5.0, help="Of each attack.")
    for hidden in ("--attack", "--port", "--folder"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.attack:
        asyncio.run(attack(asked.attack, int(asked.port), Path(asked.folder)))
        return
    rows = asyncio.run(measure(asked.nodes, asked.seconds))
    print(json.dumps(rows))
    Console(stderr=True, width=140).print(table(rows))


if __name__ == "__main__":
    main()
