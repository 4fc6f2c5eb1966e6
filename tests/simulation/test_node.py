"""What the model of a node says, and when."""

import asyncio
from random import Random

import pytest

from remediator.kube.wire.client import Client
from remediator_sim.apiserver import EmbeddedServer
from remediator_sim.simulation import loop
from remediator_sim.simulation.clock import now
from remediator_sim.simulation.fault import Fault
from remediator_sim.simulation.node import NodeModel


@pytest.mark.parametrize(
    ("proves", "ill", "beats"), [(True, False, [60, 120, 310]), (True, True, [300, 310]), (False, False, [300, 310])]
)
def test_a_busy_node_beats_every_5_minutes_and_each_minute_while_its_health_is_awaited_and_it_is_well(
    monkeypatch, proves, ill, beats
):
    spoken = []

    async def publish(self):
        spoken.append(now())

    async def minutes():
        node = NodeModel("gpu-1", Client(EmbeddedServer().transport()), [], Random(1), lambda who, text: None)
        node.registered, node.busy, node.proves = True, lambda: True, lambda: proves and now() < 130
        node.faults = {"GpuLost": Fault("GpuLost")} if ill else {}
        work = asyncio.ensure_future(node.run())
        for _ in range(31):
            await asyncio.sleep(10)
            node.wake()  # a look at its case is no heartbeat
        node.speak()
        await asyncio.sleep(1)
        work.cancel()

    monkeypatch.setattr(NodeModel, "publish", publish)
    loop.run(minutes())
    assert spoken == beats


async def test_a_node_is_registered_with_its_own_words_whatever_other_nodes_of_the_process_have_said(monkeypatch):
    server = EmbeddedServer()
    told = {}

    async def publish(self):
        told[self.name] = server.cluster.find("nodes", "", self.name).obj["status"]

    monkeypatch.setattr(NodeModel, "publish", publish)
    for name, gate in (("gpu-1", "example.com/new"), ("gpu-2", "")):
        node = NodeModel(name, Client(server.transport()), [], Random(1), lambda who, text: None)
        node.gate, node.kernel = gate, "6.8.0-40"
        await node.register()
    assert told["gpu-1"].pop("nodeInfo")["machineID"] == "gpu-1-1"
    assert told["gpu-1"] == told["gpu-2"]
