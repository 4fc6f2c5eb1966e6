"""A scheduler that asks the extenders about every node."""

import asyncio
from collections.abc import Callable, Collection

from remediator_sim.invariants.event import PROBE
from remediator_sim.simulation.hosts import ReplicaHost
from remediator_sim.simulation.judge import Judge

EVERY = 60.0  # seconds


async def probe(replicas: Collection[ReplicaHost], judge: Judge, pace: Callable[[], float]) -> None:
    """Let the judge see what each extender answers whose replica sees everything, until cancelled."""
    while True:
        await asyncio.sleep(EVERY * pace())
        for host in replicas:
            names = sorted(judge.nodes())
            if answer := await host.filter(names):
                judge.put(PROBE, None, {"asked": names, "answer": answer})
