"""How cost grows with the number of nodes: `python -m tests.bench.growth`.

For each size one controller as it is shipped, beside a real kube-apiserver with nodes that KWOK plays (`--nodes`), or
beside the embedded server where that is too large for one machine (`--in-memory`). First it starts, then it has nothing
to do, then faults come one at a time, then many at once, as in the benches of claims and storms. The figures go to
growth.json, their curves to growth.svg beside it.
"""

import argparse
import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from remediator.kube import api
from remediator.kube.wire.client import Client
from tests.bench import cluster, embedded, faults, measured, numbers, storm
from tests.bench.faults import FLOOR, REMEDIATOR
from tests.cluster.processes import Child
from tests.harness.waiting import until

REAL, IN_MEMORY = "kube-apiserver", "embedded server"
FOLDER = Path(__file__).parents[2] / "docs" / "figures"
STORM_SHARE, STORM_MOST = 5, 2000  # a fifth of the nodes at once; a budget has at most 2,000 claims
START_SECONDS, SETTLE_SECONDS = 300.0, 5.0
WARM_UP = 2
SYNCED = "] synced "  # what the log of a controller says once every list is there
Point = dict[str, Any]
Fleet = Callable[[int], AbstractAsyncContextManager[tuple[Any, Client, list[str]]]]


async def measure(nodes: int, server: str, claims: int, idle_seconds: float) -> Point:
    """Everything that this benchmark states of one size."""
    fleet: Fleet = measured.fleet if server == REAL else embedded.fleet
    at_once = min(nodes // STORM_SHARE, STORM_MOST)
    async with fleet(nodes) as (plane, client, names):
        bare = await _bare(plane, client, names[:at_once]) if server == REAL else None
        began = asyncio.get_running_loop().time()
        with measured.controller(plane, ["--starts", "1000000"]) as child:
            await until(lambda: SYNCED in child.log.read_text(), START_SECONDS)
            listed = asyncio.get_running_loop().time() - began
            await until(lambda: cluster.works(client), START_SECONDS)
            start = asyncio.get_running_loop().time() - began
            await asyncio.sleep(SETTLE_SECONDS)
            idle = await _idle(child, idle_seconds)
            synced = numbers.memory(child.running.pid)["resident"]
            times = await _claims(client, names[-claims - WARM_UP :])
            await _never_ends(client)
            ours = await storm.play(client, child, REMEDIATOR, api.CASE, names[at_once : 2 * at_once], at_once)
            after = numbers.memory(child.running.pid)["resident"]
    return {
        "nodes": nodes,
        "server": server,
        "start_s": {"listed": round(listed, 2), "all_seen": round(start, 2)},
        "memory_mib": {"synced": synced, "after_storm": after},
        "idle_cpu_percent": idle,
        "claim_ms": numbers.quantiles(times),
        "storm": {"faults": at_once, "remediator": ours, "bare": bare},
    }


async def _bare(plane: Any, client: Client, names: Sequence[str]) -> storm.Report:
    with measured.floor(plane, "tests.bench.bare", str(len(names))) as child:
        await asyncio.sleep(SETTLE_SECONDS)
        return await storm.play(client, child, FLOOR, storm.FLOOR_CASES, names, len(names))


async def _idle(child: Child, seconds: float) -> float:
    """The share of one core, in percent, that the controller takes while only heartbeats come."""
    used = numbers.cpu_seconds(child.running.pid)
    await asyncio.sleep(seconds)
    return round(100 * (numbers.cpu_seconds(child.running.pid) - used) / seconds, 2)


async def _claims(client: Client, names: Sequence[str]) -> list[float]:
    """Seconds from condition to claim on one node after the other; the first ones warm up and do not count."""
    times = []
    async with faults.sightings(client) as seen:
        for node in names:
            times.append(await faults.claimed_after(client, seen, REMEDIATOR, node))
            await faults.settle(client)
    return times[WARM_UP:]


async def _never_ends(client: Client) -> None:
    """From now on the operation of the bench runs and does not fail: of many failures at once a policy is stopped."""
    await client.patch(api.TEMPLATE, "bench", {"spec": {"drain": {"strategy": "None"}}})


async def run(sizes: Sequence[tuple[int, str]], claims: int, idle_seconds: float) -> AsyncIterator[Point]:
    """One point after the other, the smallest first."""
    for nodes, server in sorted(sizes):
        yield await measure(nodes, server, claims, idle_seconds)


async def _write(asked: argparse.Namespace, into: Path) -> None:
    """Measure; what there is so far is kept after each size."""
    sizes = [*((nodes, REAL) for nodes in asked.nodes), *((nodes, IN_MEMORY) for nodes in asked.in_memory)]
    points = []
    async for point in run(sizes, asked.claims, asked.idle):
        points.append(point)
        into.write_text(json.dumps(points, indent=2) + "\n")
        print(json.dumps(point), flush=True)


def main() -> None:
    """Measure, print one line of JSON for each size, and draw; or draw alone."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.growth", description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, nargs="*", default=[1000, 5000], help="Sizes beside a kube-apiserver.")
    parser.add_argument("--in-memory", type=int, nargs="*", default=[15000, 100000], help="Sizes beside the embedded.")
    parser.add_argument("--claims", type=int, default=40, help="Faults that come one at a time.")
    parser.add_argument("--idle", type=float, default=30.0, help="Seconds to watch the idle controller for.")
    parser.add_argument("--output", type=Path, default=FOLDER, help="The folder of growth.json and growth.svg.")
    parser.add_argument(
        "--plot-only", action="store_true", help="Draw the figures that are there, and measure nothing."
    )
    asked = parser.parse_args()
    figures = asked.output / "growth.json"
    if not asked.plot_only:
        asyncio.run(_write(asked, figures))
    from tests.bench import curves  # only here: what draws takes long to import

    curves.draw(json.loads(figures.read_text()), asked.output / "growth.svg")


if __name__ == "__main__":
    main()
