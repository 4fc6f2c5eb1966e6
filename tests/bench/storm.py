"""Many faults at once: `python -m tests.bench.storm --nodes 5000 --faults 1000`.

A real etcd and kube-apiserver, nodes that KWOK plays, heartbeats, everything in deploy/, on the cores that all of them
share. Twice so many nodes get their fault within two seconds: first those of the bare client, which makes the writes of
a controller (case, ledger in batches, taint) and nothing else, while no controller runs; then those of `remediator
run`, under a budget for all of them. With `--breaker` as shipped: ten claims, and all others held with their reason.

In the measured time: from the first patch that sets a condition to the sight of each claim, or of what holds a case, in
a watch of this process. The times are compared claim by claim in the order in which they are seen: the quantiles of
one side with those of the other.
"""

import argparse
import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table

from remediator.kube import api
from remediator.kube.wire import frames as wire
from remediator.kube.wire.client import Client, Kind, check
from remediator.kube.wire.transport import STRATEGIC_PATCH
from tests.bench import cluster, ended, faults, floor, measured, numbers
from tests.bench.faults import FLOOR, REMEDIATOR, Side
from tests.cluster.processes import Child
from tests.harness.kinds import NODES
from tests.harness.waiting import until

WITHIN_SECONDS = 2.0
AT_ONCE = 50
STORM_SECONDS = 300.0
SETTLE_SECONDS = 5.0
FLOOR_CASES: Kind[dict] = Kind(floor.GROUP, "v1alpha1", api.CASE.plural, api.CASE.name, dict)
Report = dict[str, Any]


class _Taint(msgspec.Struct):
    key: str


class _Spec(msgspec.Struct):
    taints: list[_Taint] = []


class _Block(msgspec.Struct):
    reason: str


class _Status(msgspec.Struct, rename="camel"):
    blocked_by: list[_Block] = []


class _Object(msgspec.Struct):
    metadata: wire.Meta
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


class Seen:
    """When each object of a kind was first seen to show what is waited for, on the loop's clock."""

    def __init__(self, kind: Kind[Any], shows: Callable[[_Object], bool]) -> None:
        self.at: dict[str, float] = {}
        self._path, self._shows = kind.path(), shows
        self._object = msgspec.json.Decoder(_Object).decode

    async def follow(self, client: Client) -> None:
        """Watch until cancelled. Raises RuntimeError when the watch ends: what it missed is unknown."""
        page = check(await client.transport.request("GET", self._path, query=[("limit", "1")]))
        version = msgspec.json.decode(page.body)["metadata"]["resourceVersion"]
        query = [("watch", "true"), ("resourceVersion", version), ("timeoutSeconds", "86400")]
        async with client.transport.stream(self._path, query=query, idle_timeout=3600) as stream:
            async for line in wire.lines(aiter(stream)):
                found = self._object(wire.EVENT.decode(line).object)
                if self._shows(found):
                    self.at.setdefault(found.metadata.name, asyncio.get_running_loop().time())
        raise RuntimeError("the watch of the benchmark ended")


async def measure(nodes: int, count: int, breaker: bool, cases: int) -> Report:
    """Everything that this benchmark states, of one run."""
    admitted = 10 if breaker else count
    async with measured.fleet(nodes) as (plane, client, fleet):
        with measured.floor(plane, "tests.bench.bare", str(admitted)) as child:
            await asyncio.sleep(SETTLE_SECONDS)
            bare = await play(client, child, FLOOR, FLOOR_CASES, fleet[:count], admitted)
        async with cluster.as_controller(plane) as controller:
            await ended.create(controller, fleet, cases)
        with measured.controller(plane, [] if breaker else ["--starts", "1000000"]) as child:
            await until(lambda: cluster.works(client), measured.START_SECONDS)
            await asyncio.sleep(SETTLE_SECONDS)
            synced, before = numbers.memory(child.running.pid), await cluster.writes(client)
            ours = await play(client, child, REMEDIATOR, api.CASE, fleet[count : 2 * count], admitted)
            wrote = (await cluster.writes(client))["writes"] - before["writes"]
            after = numbers.memory(child.running.pid)
    return {
        "nodes": nodes,
        "faults": count,
        "admitted": admitted,
        "ended_cases": cases,
        "remediator": ours,
        "bare": bare,
        "ratio": {shown: _ratios(ours[shown], bare[shown]) for shown in ("claimed_s", "held_s") if ours[shown]},
        "writes_per_fault": round(wrote / count, 2),
        "memory_mib": {"synced": synced, "after_storm": after},
    }


async def play(
    client: Client, child: Child, side: Side, cases: Kind[Any], nodes: Sequence[str], admitted: int
) -> Report:
    """One storm: when its claims were seen, when its holds were, and the processor time that each fault took."""
    claims = Seen(NODES, lambda node: any(taint.key == side.taint for taint in node.spec.taints))
    holds = Seen(cases, lambda case: bool(case.status.blocked_by))
    watches = [asyncio.create_task(seen.follow(client)) for seen in (claims, holds)]
    held = len(nodes) - admitted

    async def over() -> bool:
        return len(claims.at) >= admitted and (not held or len(holds.at) >= held)

    try:
        await asyncio.sleep(1.0)  # until the watches are open
        used, began = numbers.cpu_seconds(child.running.pid), asyncio.get_running_loop().time()
        set_within = await _set(client, side, nodes)
        await until(over, STORM_SECONDS)
        used = numbers.cpu_seconds(child.running.pid) - used
    finally:
        for watch in watches:
            watch.cancel()
    return {
        "set_s": round(set_within, 2),
        "claimed_s": _quantiles([at - began for at in claims.at.values()]),
        "held_s": _quantiles([at - began for at in holds.at.values()]) if held else {},
        "cpu_ms_per_fault": round(1000 * used / len(nodes), 2),
    }


async def _set(client: Client, side: Side, nodes: Sequence[str]) -> float:
    """Set the condition on each node, all within two seconds where the server can; how long it took."""
    loop, at_once = asyncio.get_running_loop(), asyncio.Semaphore(AT_ONCE)
    began, body = loop.time(), msgspec.json.encode(faults.condition(side.condition, "True"))

    async def set_one(at: int, node: str) -> None:
        await asyncio.sleep(WITHIN_SECONDS * at / len(nodes))
        async with at_once:
            path = NODES.path(node, subresource="status")
            check(await client.transport.request("PATCH", path, body=body, content_type=STRATEGIC_PATCH))

    await asyncio.gather(*(set_one(at, node) for at, node in enumerate(nodes)))
    return loop.time() - began


def _quantiles(samples: Sequence[float]) -> dict[str, float]:
    return {name: round(value / 1000, 2) for name, value in numbers.quantiles(samples).items()}


def _ratios(ours: dict[str, float], bare: dict[str, float]) -> dict[str, float]:
    return {at: round(ours[at] / max(bare[at], 0.01), 2) for at in ours}


def table(report: Report) -> Table:
    """The report for a person."""
    title = f"{report['faults']} of {report['nodes']} nodes at once, {report['admitted']} admitted: seconds"
    shown = Table("", *numbers.QUANTILES, "set within", "CPU ms a fault", title=title)
    for side in ("bare", "remediator"):
        for what in ("claimed_s", "held_s"):
            if times := report[side][what]:
                cells = [*map(str, times.values()), str(report[side]["set_s"]), str(report[side]["cpu_ms_per_fault"])]
                shown.add_row(f"{side}, {what.removesuffix('_s')}", *cells)
    for what, ratios in report["ratio"].items():
        shown.add_row(f"times the bare client, {what.removesuffix('_s')}", *map(str, ratios.values()))
    memory = report["memory_mib"]
    shown.caption = (
        f"memory {memory['synced']['resident']} MiB, after the storm {memory['after_storm']['resident']} "
        f"({report['ended_cases']} ended cases); {report['writes_per_fault']} writes a fault until the last was seen"
    )
    return shown


def main() -> None:
    """Measure; print one line of JSON to stdout and a table to stderr."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.storm", description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--faults", type=int, default=1000)
    parser.add_argument("--breaker", action="store_true", help="The breaker as shipped: ten claims, all others held.")
    parser.add_argument("--ended", type=int, default=0, help="Ended cases that the controller finds when it starts.")
    asked = parser.parse_args()
    if asked.nodes < 2 * asked.faults:
        parser.error(f"{asked.faults} faults for each side want at least {2 * asked.faults} nodes")
    report = asyncio.run(measure(asked.nodes, asked.faults, asked.breaker, asked.ended))
    print(json.dumps(report))
    Console(stderr=True).print(table(report))


if __name__ == "__main__":
    main()
