"""Pods that share GPUs, bound at once on a real API server: `python -m tests.bench.binds`.

A real etcd and kube-apiserver with everything of deploy/ and deploy/shared-gpus; the binder of a replica has the rights
of the controller's account. In turn, Pods that ask for memory of a GPU and as many that do not, whose bind is one read
and one write: the floor. All of a round begin at once.
"""

import argparse
import asyncio
import json
import sys
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

import structlog

from remediator.clock import SYSTEM
from remediator.core.names import Namespaces
from remediator.kube.informers import Informers
from remediator.kube.wire.client import Client
from remediator.kube.wire.http import HttpTransport
from remediator.scheduler.shared.bind import Binder
from remediator.scheduler.shared.parts import SharedGpus
from tests.bench.cluster import ROOT, as_controller, kubectl
from tests.bench.extender import Report, quantiles
from tests.cluster.control_plane import ControlPlane
from tests.harness.kinds import NODES, PODS, Object
from tests.harness.replica import at_work
from tests.harness.waiting import until
from tests.remediator.scheduler.shared.stand import node, pod

CARDS = (16,) * 8
MEMORY = {"shared": 8, "floor": 0}  # of one Pod, by the sort of round


class World(NamedTuple):
    """Who makes nodes and Pods, and who binds them."""

    admin: Client
    binder: Binder
    nodes: list[str]


async def measure(binds: int, rounds: int, nodes: int) -> Report:
    """Everything that this benchmark states; milliseconds. Each round has nodes of its own."""
    samples: dict[str, list[list[float]]] = {sort: [] for sort in MEMORY}
    with ControlPlane(controllers=False, scheduler=False, kwok=False) as plane:
        apply(plane)
        for at in range(rounds + 1):
            for sort, memory in MEMORY.items():
                async with world(plane, nodes) as made:
                    took = await at_once(made, binds, memory)
                if at:  # the first warms up
                    samples[sort].append(took)
    return {"binds": binds, "rounds": rounds, "nodes": nodes, **{sort: stated(each) for sort, each in samples.items()}}


def stated(rounds: list[list[float]]) -> Report:
    """Of all binds together, and the slowest of each round."""
    return {
        "ms": quantiles([took for each in rounds for took in each]),
        "slowest_ms": [round(1000 * max(each), 1) for each in rounds],
    }


def apply(plane: ControlPlane) -> None:
    """All manifests, and the account of the Pods."""
    kubectl(plane, "apply", "-k", str(ROOT / "deploy" / "crds"))
    kubectl(plane, "wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
    for folder in ("deploy", "deploy/shared-gpus"):
        kubectl(plane, "apply", "-k", str(ROOT / folder))
    kubectl(plane, "-n", "default", "create", "serviceaccount", "default")


@asynccontextmanager
async def world(plane: ControlPlane, nodes: int) -> AsyncIterator[World]:
    """New nodes with eight cards each, and a replica that knows them."""
    root = await HttpTransport.from_kubeconfig(plane.kubeconfig)
    admin, names = Client(root), [f"gpu-{uuid.uuid4().hex[:8]}" for _ in range(nodes)]
    try:
        for name in names:
            await admin.create(NODES, node(name, *CARDS))
        async with as_controller(plane) as client:
            informers = Informers(client, SYSTEM, Namespaces())
            shared = SharedGpus.over(client, informers, SYSTEM)
            async with at_work(informers.run()):
                await informers.synced()
                await until(lambda: all(informers.nodes.get(name) for name in names))
                yield World(admin, shared.binder, names)
    finally:
        await root.close()


async def at_once(world: World, binds: int, memory: int) -> list[float]:
    """Seconds of each bind of a round."""
    bodies = [pod(f"p-{uuid.uuid4().hex[:8]}", memory) for _ in range(binds)]
    made = [await world.admin.create(PODS, body, namespace="default") for body in bodies]
    return await asyncio.gather(*(_timed(world, each, index) for index, each in enumerate(made)))


async def _timed(world: World, made: Object, index: int) -> float:
    meta = made["metadata"]
    asked = {"PodName": meta["name"], "PodNamespace": "default", "PodUID": meta["uid"]}
    body = json.dumps(asked | {"Node": world.nodes[index % len(world.nodes)]}).encode()
    began = time.perf_counter()
    answer = json.loads(await world.binder.bind(body))
    took = time.perf_counter() - began
    assert answer == {"Error": ""}, answer
    return took


def main() -> None:
    """Measure; print one line of JSON to stdout."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.binds", description=__doc__.splitlines()[0])
    parser.add_argument("--binds", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--nodes", type=int, default=10)
    asked = parser.parse_args()
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))  # stdout is for the report
    if asked.binds > 2 * len(CARDS) * asked.nodes:
        sys.exit(f"--binds {asked.binds}: {asked.nodes} nodes have room for {2 * len(CARDS) * asked.nodes}")
    print(json.dumps(asyncio.run(measure(asked.binds, asked.rounds, asked.nodes))))


if __name__ == "__main__":
    main()
