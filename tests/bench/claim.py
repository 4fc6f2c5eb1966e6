"""Condition → claim, beside the wire floor: `python -m tests.bench.claim --nodes 1000 --faults 200`.

A real etcd and kube-apiserver, nodes that KWOK plays, everything in deploy/, and three processes: this one, `remediator
run` with its own roles and its lease as shipped, and the floor, which answers a fault with the same three writes and
nothing else. Faults come one at a time, each on a node of its own, in turn for the controller and for the floor, so
that both see the same machine.

In the measured time: from the answer to the patch that sets the condition (tolerance 0) to the event, in a watch of
this process, that shows the claim's taint. So the watch that tells the controller, its decision, its three writes, and
the watch that tells us. Not in it: the patch that sets the condition, what follows the claim (records, events,
operations), and starting up. Two faults for each side come before the first that counts. After each fault of the
controller its case is taken away, and the next fault waits until nothing is left of it.
"""

import argparse
import asyncio
import json
from typing import Any

from rich.console import Console
from rich.table import Table

from remediator.kube.wire.client import Client
from tests.bench import cluster, faults, measured, numbers
from tests.bench.faults import FLOOR, REMEDIATOR, Sightings
from tests.bench.measured import Measured

WARM_UP = 2
GAP_SECONDS = 0.1
Report = dict[str, Any]


async def measure(nodes: int, count: int, idle_seconds: float) -> Report:
    """Everything that this benchmark states, of one run; needs two nodes for each fault and two for each warm-up."""
    async with measured.running(nodes) as up, faults.sightings(up.client) as seen:
        pairs = iter(zip(up.nodes[::2], up.nodes[1::2], strict=False))
        for _ in range(WARM_UP):
            await _pair(up.client, seen, *next(pairs), turn=False)
        idle = await _idle(up, idle_seconds)
        synced, before = numbers.memory(up.controller.running.pid), await cluster.writes(up.client)
        samples = [await _pair(up.client, seen, *next(pairs), turn=bool(at % 2)) for at in range(count)]
        wrote = (await cluster.writes(up.client))["writes"] - before["writes"]
        return {
            "nodes": nodes,
            "faults": count,
            "node_lease_seconds": measured.LEASE_SECONDS,
            "heartbeats_per_second": round(nodes / measured.HEARTBEAT_SECONDS, 1),
            **latencies([ours for ours, _ in samples], [floor for _, floor in samples]),
            "memory_mib": {"synced": synced, "after_faults": numbers.memory(up.controller.running.pid)},
            "idle": idle,
            "writes_per_fault": round(wrote / count, 1),
        }


async def _pair(client: Client, seen: Sightings, ours: str, floors: str, *, turn: bool) -> tuple[float, float]:
    """One fault for the controller and one for the floor, which comes first at every other turn: seconds of both."""
    before = await _floor(client, seen, floors) if turn else None
    took = await faults.claimed_after(client, seen, REMEDIATOR, ours)
    await faults.settle(client)
    await asyncio.sleep(GAP_SECONDS)
    return took, before or await _floor(client, seen, floors)


async def _floor(client: Client, seen: Sightings, node: str) -> float:
    took = await faults.claimed_after(client, seen, FLOOR, node)
    await asyncio.sleep(GAP_SECONDS)
    return took


async def _idle(up: Measured, seconds: float) -> Report:
    """What the controller costs while nothing is wrong: share of one core, writes, and those of its Lease."""
    pid = up.controller.running.pid
    before, used = await cluster.writes(up.client), numbers.cpu_seconds(pid)
    await asyncio.sleep(seconds)
    used, after = numbers.cpu_seconds(pid) - used, await cluster.writes(up.client)
    return {
        "seconds": seconds,
        "cpu_percent": round(100 * used / seconds, 2),
        "writes": after["writes"] - before["writes"],
        "lease_renewals": after["leases"] - before["leases"],
    }


def latencies(ours: list[float], floor: list[float]) -> Report:
    """Quantiles of both in milliseconds, and how many times the floor ours are."""
    claim, bare = numbers.quantiles(ours), numbers.quantiles(floor)
    return {"claim_ms": claim, "floor_ms": bare, "ratio": {at: round(claim[at] / bare[at], 2) for at in claim}}


def table(report: Report) -> Table:
    """The report for a person."""
    shown = Table(
        "", *numbers.QUANTILES, title=f"condition → claim, {report['nodes']} nodes, {report['faults']} faults"
    )
    rows = {"remediator, ms": "claim_ms", "wire floor, ms": "floor_ms", "times the floor": "ratio"}
    for name, key in rows.items():
        shown.add_row(name, *(str(value) for value in report[key].values()))
    memory, idle = report["memory_mib"], report["idle"]
    held = f"{memory['synced']['resident']} MiB, after the faults {memory['after_faults']['resident']}"
    quiet = f"{idle['cpu_percent']} % of a core, {idle['writes']} writes in {idle['seconds']:.0f} s"
    shown.caption = f"memory {held} (peak {memory['after_faults']['peak']}); idle {quiet}"
    return shown


def main() -> None:
    """Measure; print one line of JSON to stdout and a table to stderr."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.claim", description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--faults", type=int, default=200)
    parser.add_argument("--idle", type=float, default=60.0, help="Seconds to watch the idle controller for.")
    asked = parser.parse_args()
    if asked.nodes < 2 * (asked.faults + WARM_UP):
        parser.error(f"{asked.faults} faults want at least {2 * (asked.faults + WARM_UP)} nodes")
    report = asyncio.run(measure(asked.nodes, asked.faults, asked.idle))
    print(json.dumps(report))
    Console(stderr=True).print(table(report))


if __name__ == "__main__":
    main()
