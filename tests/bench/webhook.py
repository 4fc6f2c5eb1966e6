"""What Alertmanager waits for: `python -m tests.bench.webhook`.

`remediator run` as it is shipped, a process of its own with tickets on and a GitHub that nobody reaches, beside a real
API server (`--embedded`: the embedded one) whose nodes KWOK plays. In one run:

* posts at a steady rate over kept connections, each of which changes the Ticket of a node, so that it is answered once
  that is written; beside it a bare client that patches as many objects at the same rate: nobody can be faster;
* one body with many alerts about all nodes;
* many posts as fast as they are answered: what the process held after a tenth of them, and at the end.
"""

import argparse
import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, NamedTuple

import aiohttp

from remediator.kube import api
from remediator.kube.wire.client import Client
from remediator.web.webhook import PATH
from remediator_sim.ports import free_port
from tests.bench import embedded, measured, numbers
from tests.bench.memory import NOBODY
from tests.cluster.control_plane import HOST
from tests.cluster.processes import Child
from tests.harness.kinds import NODES
from tests.harness.tickets import delivery
from tests.harness.waiting import until

CONNECTIONS = 8  # that Alertmanagers keep open
SECONDS = 60.0
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


class Replica(NamedTuple):
    """Where it takes posts, as whom it is asked, and its process."""

    url: str
    session: aiohttp.ClientSession
    child: Child

    async def post(self, body: bytes) -> float:
        """Seconds until it has answered that all of it is stored. Raises for every other answer."""
        began = time.perf_counter()
        async with self.session.post(self.url, data=body) as answer:
            assert answer.status == 200, await answer.text()
        return time.perf_counter() - began


def alert(node: str, number: int, fires: bool) -> dict[str, Any]:
    """One alert of a node, as Alertmanager posts it."""
    begins = BEGAN + timedelta(seconds=number)
    return {
        "status": "firing" if fires else "resolved",
        "labels": {"alertname": f"Alert{number}", "node": node, "severity": "warning", "job": "node-exporter"},
        "annotations": {"summary": f"alert {number} of {node}"},
        "startsAt": begins.isoformat(),
        "endsAt": "0001-01-01T00:00:00Z" if fires else (begins + timedelta(minutes=1)).isoformat(),
        "fingerprint": f"{number:04x}-{node}",
    }


def posts(nodes: list[str]) -> Iterator[bytes]:
    """Without end: each node in turn has an alert that begins, and in the next round ends."""
    for turn in count():
        yield from (delivery(alert(node, turn // 2 % 10, turn % 2 == 0)) for node in nodes)


async def paced(work: Callable[[], Awaitable[float]], rate: float, number: int) -> dict[str, float]:
    """Milliseconds of so many pieces of work, of which `rate` begin in a second, however long those before take."""
    began, running = time.perf_counter(), []
    for index in range(number):
        await asyncio.sleep(began + index / rate - time.perf_counter())
        running.append(asyncio.ensure_future(work()))
    return numbers.quantiles(await asyncio.gather(*running))


async def flat(replica: Replica, bodies: Iterator[bytes], number: int) -> dict[str, float]:
    """MiB that it holds after a tenth of so many posts, and after all; posts in a second."""
    held, began = {}, time.perf_counter()
    for share, word in ((number // 10, "tenth"), (number - number // 10, "end")):
        waiting = iter(range(share))
        await asyncio.gather(*(_all(replica, bodies, waiting) for _ in range(CONNECTIONS)))
        held[word] = numbers.memory(replica.child.running.pid)["resident"]
    return {**held, "posts_per_second": round(number / (time.perf_counter() - began), 1)}


async def _all(replica: Replica, bodies: Iterator[bytes], waiting: Iterator[int]) -> None:
    for _ in waiting:
        await replica.post(next(bodies))


@asynccontextmanager
async def serving(plane: Any) -> AsyncIterator[Replica]:
    """The process, once it has stored a first alert."""
    listen, token = f"{HOST}:{free_port()}", plane.kubeconfig.parent / "webhook-token"
    token.write_text("bench")
    tickets = ["--github-url", NOBODY, "--listen-webhook", listen, "--no-tls", "--webhook-token-file", str(token)]
    headers, connector = {"Authorization": "Bearer bench"}, aiohttp.TCPConnector(limit=CONNECTIONS)
    with measured.replica(plane, tickets) as child:
        async with aiohttp.ClientSession(headers=headers, connector=connector) as session:
            made = Replica(f"http://{listen}{PATH}", session, child)
            await until(lambda: _taken(made), SECONDS)
            yield made


async def _taken(replica: Replica) -> bool:
    try:
        await replica.post(delivery(alert("nobody", 0, True)))
    except (aiohttp.ClientError, AssertionError):
        return False
    return True


async def measure(plane: Any, client: Client, nodes: list[str], asked: argparse.Namespace) -> dict[str, Any]:
    """All figures."""
    names, steps = iter(nodes * asked.posts), count()

    async def bare() -> float:
        began = time.perf_counter()
        await client.patch(NODES, next(names), {"metadata": {"annotations": {"bench": str(next(steps))}}})
        return time.perf_counter() - began

    async with serving(plane) as replica:
        bodies = posts(nodes)
        floor = await paced(bare, asked.rate, asked.posts)
        steady = await paced(lambda: replica.post(next(bodies)), asked.rate, asked.posts)
        whole = delivery(*(alert(nodes[number % len(nodes)], number, True) for number in range(asked.alerts)))
        seconds = await replica.post(whole)
        tickets = len(await client.list_all(api.TICKET))
        memory = await flat(replica, bodies, asked.many)
    body = {"alerts": asked.alerts, "nodes": len(nodes), "bytes": len(whole), "seconds": round(seconds, 2)}
    return {"post_ms": steady, "floor_ms": floor, "body": body, "tickets": tickets, "resident_mib": memory}


def options(words: list[str]) -> argparse.Namespace:
    """What is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=200)
    parser.add_argument("--rate", type=float, default=200.0, help="posts in a second")
    parser.add_argument("--posts", type=int, default=4000, help="posts at that rate")
    parser.add_argument("--alerts", type=int, default=10_000, help="alerts in one body")
    parser.add_argument("--many", type=int, default=100_000, help="posts for memory")
    parser.add_argument("--embedded", action="store_true", help="the embedded API server in place of a real one")
    return parser.parse_args(words)


async def run(asked: argparse.Namespace) -> dict[str, Any]:
    """Beside the server that is asked for."""
    async with (embedded if asked.embedded else measured).fleet(asked.nodes) as (plane, client, nodes):
        return await measure(plane, client, nodes, asked)


if __name__ == "__main__":
    print(json.dumps(asyncio.run(run(options(sys.argv[1:])))))
