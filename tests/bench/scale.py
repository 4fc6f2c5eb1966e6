"""The controller and the extender at full size, in memory: `python -m tests.bench.scale`.

One process: the embedded server without a network, and the parts of a replica as they are shipped. Each line is one
thing that happens to a calm replica that leads, from its cause until nothing is left to do.

stall: the longest turn of the loop, in which nobody is answered; where: the functions seen most often in it.
cpu: processor time of the replica, all turns together. The server's own time is in neither.
"""

import argparse
import asyncio
import gc
import json
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import structlog
from rich.console import Console
from rich.table import Table

from remediator import collector
from remediator.app import elector
from remediator.clock import SYSTEM
from remediator.controller.keys import ADMISSION
from remediator.controller.run import Controller
from remediator.core.breaker import Breaker
from remediator.kube import api
from remediator.kube.api.builtin import NODE
from remediator.kube.informers import Informers
from remediator.kube.runtime.leader import Leader
from remediator.kube.wire.client import Client, Kind
from remediator.scheduler.extender import Extender
from remediator.settings import Settings
from remediator.web import probes
from tests.bench import large
from tests.bench.stalls import MeasuredTransport, Meter, measured_loop
from tests.harness.kinds import Object
from tests.harness.waiting import until

CALM_TURNS, CALM = 10, 0.02  # so many looks in a row that find nothing to do, and the seconds between them
CALM_CPU = 0.002  # seconds of processor time in a calm look
BURST = 500
LEADING_SECONDS = 300.0
SIZES = (1000, 5000, 15000)
Report = dict[str, Any]


class Bench:
    """A replica of which each part is measured."""

    def __init__(self, size: large.Size, meter: Meter) -> None:
        self.size, self.meter = size, meter
        self.server = server = large.server(size)
        settings = Settings(breaker=Breaker(starts=1_000_000))
        client = Client(MeasuredTransport(server.transport(), meter))
        self.informers = Informers(client, SYSTEM, settings.namespaces)
        self.leader = Leader(elector(client, settings, SYSTEM), SYSTEM)
        self.controller = Controller(client, settings, self.informers, self.leader, SYSTEM)
        self.extender = Extender(client, self.informers, SYSTEM)
        self.leading: asyncio.Task[None] | None = None
        self.lines: dict[str, Report] = {}

    async def run(self) -> None:
        """Everything that this benchmark states of one size, into `lines`."""
        collector.keep()  # the server's objects
        await asyncio.sleep(0)  # what was made so far belongs to another turn
        following = [asyncio.ensure_future(part) for part in (self.informers.run(), self.extender.run())]
        await self._line("all lists at the start", self._synced)
        gc.collect()  # as app.py does
        await self._line("first lease, all is written", self._win)
        await self._line("a lease won", self._win_again)
        await self._line("a sweep", self._sweep)
        await self._line("an admission pass", self._admit)
        await self._line("a policy edit", self._edit)
        await self._line(f"{BURST} node events", self._burst)
        await self._line("a list anew", self._relist)
        await self._line("a scrape", self._scrape)
        for task in (*following, self.leading):
            if task is not None:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task

    async def _line(self, name: str, happens: Callable[[], Awaitable[None]]) -> None:
        self.meter.reset()
        await happens()
        await self._calm()
        meter = self.meter
        self.lines[name] = {
            "stall_ms": round(1000 * meter.longest, 1),
            "cpu_ms": round(1000 * meter.total, 1),
            "gc_ms": round(1000 * meter.collected, 1),
            "turns": meter.turns,
            "where": meter.where,
        }
        print(json.dumps({"nodes": self.size.nodes, "what": name} | self.lines[name]), file=sys.stderr, flush=True)

    async def _calm(self) -> None:
        """Wait until nothing is left to do."""
        calm = 0
        while calm < CALM_TURNS:
            before = self.meter.total
            await asyncio.sleep(CALM)
            idle = self.controller._queue.depth == 0 and self.meter.in_flight == 0
            calm = calm + 1 if idle and self.meter.total - before < CALM_CPU else 0

    # --- what happens ------------------------------------------------------------------------------------------------

    async def _synced(self) -> None:
        await self.informers.synced()
        await self.extender.synced()

    async def _win(self) -> None:
        self.leading = asyncio.ensure_future(self.leader.run())
        await until(lambda: self.controller._queue.leading, LEADING_SECONDS)

    async def _win_again(self) -> None:
        assert self.leading is not None
        self.leading.cancel()
        with suppress(asyncio.CancelledError):
            await self.leading
        await self._win()

    async def _sweep(self) -> None:
        self.controller._queue.add_all()

    async def _admit(self) -> None:
        self.controller._queue.add(ADMISSION)

    async def _edit(self) -> None:
        policy = self._stored(api.POLICY, "gpu-lost")
        policy["spec"] |= {"when": [{"condition": "GpuLost", "for": "3m"}], "cooldown": "31m"}
        policy["metadata"]["generation"] += 1
        self._store(api.POLICY, policy)

    async def _burst(self) -> None:
        """A condition turns that must hold for minutes, on nodes of all racks; each second one is not Ready as well."""
        turned = {"lastTransitionTime": large.stamp(SYSTEM.now()), "lastHeartbeatTime": large.stamp(SYSTEM.now())}
        slow = {"type": "PcieLinkDegraded", "status": "True", "reason": "Slow", "message": "x8"} | turned
        down = {"type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": ""} | turned
        step = max(1, self.size.nodes // BURST)
        for index in range(0, step * min(BURST, self.size.nodes), step):
            node = self._stored(NODE, large.name(index))
            sick = any(said["status"] == "True" and said["type"] != "Ready" for said in node["status"]["conditions"])
            news = {said["type"]: said for said in ((slow, down) if index % 2 and not sick else (slow,))}
            node["status"]["conditions"] = [news.get(said["type"], said) for said in node["status"]["conditions"]]
            self._store(NODE, node)

    def _stored(self, kind: Kind[Any], name: str) -> Object:
        began = time.thread_time()
        entry = self.server.cluster.find(f"{kind.plural}.{kind.group}" if kind.group else kind.plural, "", name)
        assert entry is not None
        self.meter.server += time.thread_time() - began
        return entry.copy()

    def _store(self, kind: Kind[Any], body: Object) -> None:
        """Write as somebody else does, who takes no time of the replica."""
        began = time.thread_time()
        self.server.cluster.put(f"{kind.plural}.{kind.group}" if kind.group else kind.plural, body)
        self.meter.server += time.thread_time() - began

    async def _relist(self) -> None:
        for informer in (self.informers.cases, self.informers.operations, self.informers.nodes):
            informer._reflector.list_anew()
        await asyncio.sleep(2.0)

    async def _scrape(self) -> None:
        await self.controller.measure()
        await probes.page()


def measure(nodes: int, grouped: bool) -> Report:
    """One size, in a loop of its own."""
    meter = Meter()
    with collector.short_pauses(), asyncio.Runner(loop_factory=lambda: measured_loop(meter)) as runner:
        lines = runner.run(_measured(large.size(nodes, grouped), meter))
    gc.unfreeze()
    return {"nodes": nodes, "lines": lines}


async def _measured(size: large.Size, meter: Meter) -> dict[str, Report]:
    bench = Bench(size, meter)
    await bench.run()
    return bench.lines


def table(reports: list[Report]) -> Table:
    """The reports for a person: milliseconds, the longest stall and all processor time, by number of nodes."""
    shown = Table("", title="stall / cpu, ms")
    for report in reports:
        shown.add_column(f"{report['nodes']:,} nodes", justify="right")
    shown.add_column("where the longest stall is")
    for name in reports[0]["lines"]:
        lines = [report["lines"][name] for report in reports]
        cells = [f"{line['stall_ms']:.0f} / {line['cpu_ms']:.0f}" for line in lines]
        shown.add_row(name, *cells, max(lines, key=lambda line: line["stall_ms"])["where"])
    return shown


def main() -> None:
    """Measure; print one line of JSON to stdout and a table to stderr."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.scale", description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, nargs="+", default=list(SIZES), help="Sizes of the cluster, one by one.")
    parser.add_argument("--grouped", action="store_true", help="One budget with groupBy instead of one for each rack.")
    asked = parser.parse_args()
    with Path(os.devnull).open("w") as nowhere:
        structlog.configure(logger_factory=structlog.PrintLoggerFactory(nowhere))
        reports = [measure(nodes, asked.grouped) for nodes in asked.nodes]
    signal.setitimer(signal.ITIMER_PROF, 0)
    print(json.dumps(reports))
    Console(stderr=True, width=160).print(table(reports))


if __name__ == "__main__":
    main()
