"""What the model of a node says, and when."""

import asyncio
from random import Random

from remediator.kube.wire.client import Client
from remediator_sim.apiserver import EmbeddedServer
from remediator_sim.simulation import loop
from remediator_sim.simulation.clock import now
from remediator_sim.simulation.node import NodeModel


def test_a_busy_node_beats_once_a_minute_and_a_look_at_its_case_is_no_heartbeat(monkeypatch):
    spoken = []

    async def publish(self):
        spoken.append(now())

    async def minutes():
        node = NodeModel("gpu-1", Client(EmbeddedServer().transport()), [], Random(1), lambda who, text: None)
        node.registered, node.busy = True, lambda: True
        work = asyncio.ensure_future(node.run())
        for _ in range(13):
            await asyncio.sleep(10)
            node.wake()
        node.speak()
        await asyncio.sleep(1)
        work.cancel()

    monkeypatch.setattr(NodeModel, "publish", publish)
    loop.run(minutes())
    assert spoken == [60, 120, 130]
