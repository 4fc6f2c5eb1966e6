"""GPU nodes that KWOK plays on a real API server."""

import asyncio
import contextlib
from typing import Any

from remediator.kube.wire import errors
from remediator.kube.wire.client import Client
from tests.harness.kinds import NODES

PER_RACK = 8
AT_ONCE = 20


def gpu_node(index: int) -> dict[str, Any]:
    """One node with eight GPUs, eight nodes to a rack."""
    name = f"gpu-{index}"
    room = {"cpu": "96", "memory": "1Ti", "pods": "110", "nvidia.com/gpu": "8"}
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "nvidia.com/gpu.present": "true",
        "remediator.dev/gpu.present": "true",
        "topology.kubernetes.io/rack": f"rack-{index // PER_RACK}",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": {"kwok.x-k8s.io/node": "fake"}},
        "status": {"capacity": room, "allocatable": room, "nodeInfo": {"bootID": f"boot-{name}"}},
    }


async def create_nodes(client: Client, count: int, first: int = 0) -> list[str]:
    """Create the nodes gpu-<first> and so on; those that are there already stay. Gives the names."""
    bodies = [gpu_node(first + at) for at in range(count)]
    for at in range(0, count, AT_ONCE):
        await asyncio.gather(*(_create(client, body) for body in bodies[at : at + AT_ONCE]))
    return [body["metadata"]["name"] for body in bodies]


async def _create(client: Client, body: dict[str, Any]) -> None:
    with contextlib.suppress(errors.AlreadyExists):
        await client.create(NODES, body)
