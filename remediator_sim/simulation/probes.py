"""A scheduler that asks the extenders about every node."""

import asyncio
from collections.abc import Collection

import msgspec

from remediator_sim.invariants.event import PROBE
from remediator_sim.invariants.observer import PROBE_POD
from remediator_sim.simulation.judge import Judge
from remediator_sim.simulation.replica import ReplicaModel

EVERY = 60.0  # seconds


async def probe(replicas: Collection[ReplicaModel], judge: Judge) -> None:
    """Let the judge see what each extender answers whose replica sees everything, until cancelled."""
    while True:
        await asyncio.sleep(EVERY)
        for model in replicas:
            if model.replica is not None and model.sees():
                names = sorted(judge.nodes())
                body = msgspec.json.encode({"Pod": PROBE_POD, "NodeNames": names})
                answer = msgspec.json.decode(model.replica.extender.filter(body))
                judge.put(PROBE, None, {"asked": names, "answer": answer})
