"""Evictions by many drains, beside the wire floor: `python -m tests.bench.evictions --pods 5000 --drains 50`.

A real etcd and kube-apiserver, nodes and Pods that KWOK plays, and everything in deploy/. The floor comes first: one
bare client, which has read names and uids beforehand, posts one eviction for each Pod, as many at a time as there are
drains, and does nothing else. Then the same Pods are made again, and the shipped drain program takes them away: one
process for each node, with the account, the roles and the rate that it is shipped with, on as many nodes at a time as
the controller would let drain.

In the measured time of the drains: the start of each process, reading the claim, listing, evicting, writing progress,
and waiting until no Pod is left. Not in it: the controller, and the start of a container.
"""

import argparse
import asyncio
import json
import ssl
import time
from collections.abc import Iterator, Mapping
from typing import Any

import aiohttp
from rich.console import Console
from rich.table import Table

from tests.bench import numbers, workload
from tests.bench.drains import Access, Drained, Drains
from tests.bench.workload import SPACE, Workload
from tests.harness.kinds import PODS

STARTS = 20
Report = dict[str, Any]


async def measure(pods: int, drains: int, per_node: int) -> Report:
    """Everything that this benchmark states, of one run; `pods` is a multiple of `per_node`."""
    async with workload.running(pods // per_node, per_node) as up:
        await up.fill("floor")
        floor = await _floor(up, drains)
        await up.fill("drain")
        processes = Drains(up.access, drains)
        starts = [await processes.start() for _ in range(STARTS)]
        drained = await _drained(up, processes)
        return {
            "pods": pods,
            "pods_per_node": per_node,
            "drains_at_once": drains,
            "floor": floor,
            "drains": drained,
            "ratio": round(drained["seconds"] / floor["seconds"], 2),
            "start_ms": numbers.quantiles(starts),
        }


async def _drained(up: Workload, processes: Drains) -> Report:
    """All Pods by drains: seconds from the first start to the last end."""
    claims, before = await up.claims(), await up.calls()
    began = time.perf_counter()
    drained = await processes.run(claims)
    seconds = time.perf_counter() - began
    return {"seconds": round(seconds, 1), **_asked(before, await up.calls()), **_costs(drained)}


def _costs(drained: Drained) -> Report:
    return {
        "cpu_seconds": round(drained.cpu_seconds, 1),
        "cpu_ms_of_a_drain": round(1000 * drained.cpu_seconds / len(drained.seconds)),
        "memory_mib": drained.memory,
        "drain_ms": numbers.quantiles(drained.seconds),
    }


async def _floor(up: Workload, at_once: int) -> Report:
    """All Pods by the bare client: seconds until the last one is gone, and until the last answer."""
    left, before = iter((await up.uids()).items()), await up.calls()
    async with _bare(up.access) as session:
        began = time.perf_counter()
        await asyncio.gather(*(_evict(session, left) for _ in range(at_once)))
        answered = time.perf_counter() - began
        await up.empty()
    seconds = time.perf_counter() - began
    return {"seconds": round(seconds, 1), "answered": round(answered, 1), **_asked(before, await up.calls())}


async def _evict(session: aiohttp.ClientSession, left: Iterator[tuple[str, str]]) -> None:
    """Evict one Pod after the other until none is left."""
    for name, uid in left:
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": SPACE},
            "deleteOptions": {"preconditions": {"uid": uid}},
        }
        async with session.post(PODS.path(name, SPACE, "eviction"), json=body) as answer:
            await answer.read()


def _bare(access: Access) -> aiohttp.ClientSession:
    context = ssl.create_default_context(cafile=str(access.folder / "ca.crt"))
    headers = {"Authorization": f"Bearer {(access.folder / 'token').read_text()}"}
    connector = aiohttp.TCPConnector(ssl=context, limit=0)
    return aiohttp.ClientSession(access.url, headers=headers, connector=connector, raise_for_status=True)


def _asked(before: Mapping[str, int], after: Mapping[str, int]) -> Report:
    """Evictions asked for in between, by the code of the answer."""
    more = {code: count - before.get(code, 0) for code, count in after.items()}
    return {"calls": {code: count for code, count in more.items() if count}}


def table(report: Report) -> Table:
    """The report for a person."""
    at_once, per_node = report["drains_at_once"], report["pods_per_node"]
    title = f"{report['pods']} evictions, {at_once} drains at a time, {per_node} Pods a node"
    shown = Table("", "drains", "wire floor", title=title)
    drains, floor = report["drains"], report["floor"]
    shown.add_row("seconds", f"{drains['seconds']} ({report['ratio']} times the floor)", str(floor["seconds"]))
    shown.add_row("eviction calls for each Pod", *(_per_pod(side, report["pods"]) for side in (drains, floor)))
    shown.add_row("processor time, s", f"{drains['cpu_seconds']} ({drains['cpu_ms_of_a_drain']} ms a drain)", "")
    shown.add_row("memory of the largest, MiB", str(drains["memory_mib"]), "")
    shown.caption = f"a drain that has nothing to do ends after {report['start_ms']['p50']} ms (p50)"
    return shown


def _per_pod(side: Report, pods: int) -> str:
    return f"{sum(side['calls'].values()) / pods:.2f}"


def main() -> None:
    """Measure; print one line of JSON to stdout and a table to stderr."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.evictions", description=__doc__.splitlines()[0])
    parser.add_argument("--pods", type=int, default=5000)
    parser.add_argument("--drains", type=int, default=50, help="How many nodes drain at a time.")
    parser.add_argument("--per-node", type=int, default=10, help="Pods on each node.")
    asked = parser.parse_args()
    if asked.pods % asked.per_node:
        parser.error(f"{asked.pods} Pods do not fill nodes of {asked.per_node} Pods")
    report = asyncio.run(measure(asked.pods, asked.drains, asked.per_node))
    print(json.dumps(report))
    Console(stderr=True).print(table(report))


if __name__ == "__main__":
    main()
