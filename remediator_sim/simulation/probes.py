"""A scheduler that asks the extenders about every node."""

import asyncio
from collections.abc import Collection

from remediator_sim.invariants.event import PROBE
from remediator_sim.simulation.hosts import ReplicaHost
from remediator_sim.simulation.judge import Judge

EVERY = 60.0  # seconds


async def probe(replicas: Collection[ReplicaHost], judge: Judge) -> None:
    """Let the judge see what each extender answers whose replica sees everything, until cancelled."""
    while True:
        await asyncio.sleep(EVERY)
        for host in replicas:
            names = sorted(judge.nodes())
            if answer := await host.filter(names):
                judge.put(PROBE, None, {"asked": names, "answer": answer})
