"""What callers feel while the endpoints are attacked: `python -m tests.bench.attacks`.

The endpoints as a replica serves them, with 5,000 nodes, in one process; an attacker in another, at another address;
and this one, which asks the extender over one connection, as kube-scheduler does, and the probes over a new connection
each time. For each attack: the most memory that the process held, processor time in each second, the longest turn of
the loop in processor time (nobody is answered meanwhile), the answers of both, and how many of them were refusals.
"""

import argparse
import asyncio
import gzip
import json
import os
import ssl
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
from rich.console import Console
from rich.table import Table

from remediator.core.eviction import drain_account
from remediator.core.names import OPERATIONS_NAMESPACE
from remediator.web import evictions, github_hook
from tests.bench import fleet, numbers
from tests.bench.extender import TOKEN, Report, Served, processes, quantiles, shown
from tests.cluster.control_plane import HOST
from tests.harness.endpoints import ELSEWHERE

MIB = 2**20
MANY = 200
CHUNKS = b"1\r\nx\r\n" * 40_000
ENOUGH = 32  # connections that were tried before anything is measured: twice as many as there may be strangers
Attack = Callable[["Attacker"], Awaitable[None]]
Attacks = Mapping[str, tuple[str, str, Attack]]


class Attacker:
    """What one process can do to an endpoint at `port`; `tls`: shown to it, None speaks no TLS."""

    def __init__(self, port: int, tls: ssl.SSLContext | None) -> None:
        self.port, self.tls = port, tls
        self.at_work, self._tried = asyncio.Event(), 0

    def tried(self, of: int) -> None:
        """One more connection was tried, of so many at once."""
        self._tried += 1
        if self._tried >= min(of, ENOUGH):
            self.at_work.set()

    async def send(self, *parts: bytes, at_once: int = 1, wait: float = 0.0) -> None:
        """One connection; what goes wrong on it is what an attacker expects."""
        with suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
            try:
                reader, writer = await asyncio.open_connection(
                    HOST, self.port, ssl=self.tls, server_hostname=HOST if self.tls else None, local_addr=(ELSEWHERE, 0)
                )
            finally:
                self.tried(at_once)
            try:
                for part in parts:
                    writer.write(part)
                    async with asyncio.timeout(5):
                        await writer.drain()
                    await asyncio.sleep(wait)
                async with asyncio.timeout(5):
                    await reader.read()
            finally:
                writer.transport.abort()

    async def again(self, *parts: bytes, at_once: int = MANY, wait: float = 0.0) -> None:
        """So many connections at once, each begun anew when it ends."""

        async def one() -> None:
            while True:
                await self.send(*parts, at_once=at_once, wait=wait)

        await asyncio.gather(*(one() for _ in range(at_once)))


def head(path: str, *more: str) -> bytes:
    """The head of a post."""
    return "\r\n".join((f"POST {path} HTTP/1.1", "Host: h", *more, "", "")).encode()


HOOK, FILTER = "/webhooks/alertmanager", "/scheduler/filter"
COMMENTS, UNSIGNED = github_hook.PATH, f"{github_hook.SIGNATURE}: sha256={64 * '0'}"
RIGHT, WRONG = (f"Authorization: Bearer {token}" for token in (TOKEN, "wrong"))
BOMB = gzip.compress(bytes(64 * MIB), 9)
NAMES = fleet.names(5000)
NO_DRAIN = json.dumps(
    {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u",
            "name": "p",
            "namespace": "team",
            "userInfo": {"username": drain_account(OPERATIONS_NAMESPACE)},
            "object": {"kind": "Eviction", "metadata": {"name": "p", "namespace": "team"}},
            "padding": 1500 * "x",  # as long as what the API server sends
        },
    }
).encode()


def whole(path: str, body: bytes, *more: str) -> bytes:
    """A post with its length."""
    return head(path, f"Content-Length: {len(body)}", *more) + body


async def _nothing(attacker: Attacker) -> None:
    attacker.at_work.set()


async def _shapes(attacker: Attacker) -> None:
    bodies = [whole(FILTER, fleet.request(NAMES, 100 + count), "Connection: close") for count in range(64)]
    while True:
        for body in bodies:
            await attacker.send(body)


def containers(size: int) -> bytes:
    """A request that is slow to read: as many empty containers as fit."""
    return b'{"Pod":{"spec":{"initContainers":[' + b"{}," * (size // 3) + b'{}]}},"NodeNames":[]}'


# What is sent: to which endpoint, what is shown there (none: no TLS; strange: TLS without a certificate), and how.
ATTACKS: Attacks = {
    "nothing": ("probes", "none", _nothing),
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
    "to GitHub's port: 40,000 chunks of a byte, wrong signature, 32 at once": (
        "github",
        "strange",
        lambda a: a.again(head(COMMENTS, "Transfer-Encoding: chunked", UNSIGNED) + CHUNKS, at_once=32),
    ),
    "to GitHub's port: 200 posts of 1 MiB that stop in the middle": (
        "github",
        "strange",
        lambda a: a.again(head(COMMENTS, f"Content-Length: {MIB}", UNSIGNED) + bytes(MIB // 2), wait=5),
    ),
    "to the evictions' port: 160 connections that ask about no drain, 5 times a second each": (
        "evictions",
        "strange",
        lambda a: a.again(*[whole(evictions.PATH, NO_DRAIN)] * 25, at_once=160, wait=0.2),
    ),
    "to the probes: 40,000 chunks of a byte, 32 at once": (
        "probes",
        "none",
        lambda a: a.again(head("/healthz", "Transfer-Encoding: chunked") + CHUNKS, at_once=32),
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
    "with the token: 24 posts of 16 MiB that stop in the middle": (
        "webhook",
        "strange",
        lambda a: a.again(head(HOOK, f"Content-Length: {16 * MIB}", RIGHT) + bytes(8 * MIB), at_once=24, wait=5),
    ),
    "with kube-scheduler's certificate: 64 shapes of Pods": ("extender", "ours", _shapes),
    "with kube-scheduler's certificate: 1.5 MiB of containers": (
        "extender",
        "ours",
        lambda a: a.again(whole(FILTER, containers(3 * MIB // 2), "Connection: close"), at_once=1),
    ),
}


# With --extender-whole-nodes, where a body may have 96 MiB.
WHOLE_NODES: Attacks = {
    "whole Nodes: nothing": ("probes", "none", _nothing),
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


ALL = {**ATTACKS, **WHOLE_NODES}


def _whole_nodes() -> bytes:
    request = json.loads(fleet.request([]))
    return json.dumps(
        request | {"Nodes": {"items": [fleet.node(name, False) for name in NAMES]}, "NodeNames": None}
    ).encode()


async def measure(nodes: int, seconds: float, attacks: Attacks = ATTACKS, *options: str) -> list[Report]:
    """One row for each attack, one after the other on one process."""
    async with measuring(nodes, *options) as row:
        return [await row(name, seconds) for name in attacks]


@asynccontextmanager
async def measuring(nodes: int, *options: str) -> AsyncIterator[Callable[[str, float], Awaitable[Report]]]:
    """Measures one attack for so many seconds, each time on the same process."""
    async with processes(nodes, "--measured", *options) as served, _attacker(served) as begin:

        async def row(name: str, seconds: float) -> Report:
            await begin(name)
            return {"attack": name, **await _felt(served, seconds, fleet.names(nodes))}

        yield row


@asynccontextmanager
async def _attacker(served: Served) -> AsyncIterator[Callable[[str], Awaitable[None]]]:
    """A process that does one attack at a time: what begins the next one."""
    command = [sys.executable, "-m", "tests.bench.attacks", "--attack", str(served.folder)]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
    asked, told = process.stdin, process.stdout
    assert asked is not None
    assert told is not None

    async def begin(name: str) -> None:
        port = urlsplit(getattr(served, ALL[name][0])).port
        asked.write(json.dumps([name, port]).encode() + b"\n")
        assert await told.readline(), "the attacker has ended"

    try:
        yield begin
    finally:
        process.kill()
        await process.wait()


async def _felt(served: Served, seconds: float, names: Sequence[str]) -> Report:
    """What others feel meanwhile."""
    Path(f"/proc/{served.pid}/clear_refs").write_text("5")  # the peak begins anew
    await _longest(served)
    before = numbers.cpu_seconds(served.pid)
    extender, probes = await asyncio.gather(_extender(served, seconds, names), _probes(served, seconds))
    used, turn = (numbers.cpu_seconds(served.pid) - before) / seconds, await _longest(served)
    return {
        "peak_mib": numbers.memory(served.pid)["peak"],
        "cpu": round(used, 2),
        "turn_ms": round(turn, 1),
        "extender_ms": quantiles([took for took, _ in extender]),
        "probes_ms": quantiles([took for took, _ in probes]),
        "refused": sum(not answered for _, answered in (*extender, *probes)),
    }


async def _longest(served: Served) -> float:
    """The longest turn of the loop since the last question, in milliseconds."""
    async with aiohttp.ClientSession() as session, session.get(f"{served.admin}/longest") as answer:
        return float(await answer.json())


Samples = list[tuple[float, bool]]


async def _extender(served: Served, seconds: float, names: Sequence[str]) -> Samples:
    body, url = fleet.request(names), f"{served.extender}{FILTER}"
    async with aiohttp.ClientSession() as session:

        async def ask() -> bool:
            async with session.post(url, data=body, ssl=served.tls) as answer:
                return (await answer.read()).endswith(b'"Error":""}')

        await ask()
        return await _often(ask, seconds, 0.05)


async def _probes(served: Served, seconds: float) -> Samples:
    async def ask() -> bool:
        async with aiohttp.ClientSession() as session, session.get(f"{served.probes}/readyz/extender") as answer:
            return answer.status == 200

    return await _often(ask, seconds, 0.1)


async def _often(ask: Callable[[], Awaitable[bool]], seconds: float, pause: float) -> Samples:
    """How long each answer took, and whether it was one."""
    samples, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.perf_counter()
        answered = await ask()
        samples.append((time.perf_counter() - began, answered))
        await asyncio.sleep(pause)
    return samples


async def attack(folder: Path) -> None:
    """Begin the attack that each line names, in the place of the one before, and say so once it is at work."""
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    contexts = {
        "none": lambda: None,
        "strange": lambda: ssl.create_default_context(cafile=folder / "ca.crt"),
        "ours": lambda: shown(folder),
    }
    begun: asyncio.Future[None] | None = None
    async for line in lines:
        if begun is not None:
            begun.cancel()
            await asyncio.gather(begun, return_exceptions=True)
        name, port = json.loads(line)
        _, shows, how = ALL[name]
        attacker = Attacker(port, contexts[shows]())
        begun = asyncio.ensure_future(how(attacker))
        await attacker.at_work.wait()
        print("begun", flush=True)


def table(rows: list[Report]) -> Table:
    """The rows for a person."""
    heads = ("attack", "memory, MiB", "processor", "turn, ms", "extender p99, ms", "max", "probes p99, ms", "max")
    shown = Table(*heads, "refused", title="answers of others while the endpoints are attacked")
    for row in rows:
        times = [f"{row[who][part]:.1f}" for who in ("extender_ms", "probes_ms") for part in ("p99", "max")]
        process = (f"{row['peak_mib']:.0f}", f"{row['cpu']:.2f}", f"{row['turn_ms']:.0f}")
        shown.add_row(row["attack"], *process, *times, str(row["refused"]))
    return shown


def main() -> None:
    """Measure; print one line of JSON to stdout and a table to stderr."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.attacks", description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--seconds", type=float, default=5.0, help="Of each attack.")
    parser.add_argument("--attack", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.attack:
        asyncio.run(attack(asked.attack))
        return
    rows = asyncio.run(measure(asked.nodes, asked.seconds))
    rows += asyncio.run(measure(asked.nodes, asked.seconds, WHOLE_NODES, "--whole-nodes"))
    print(json.dumps(rows))
    Console(stderr=True, width=140).print(table(rows))


if __name__ == "__main__":
    main()
