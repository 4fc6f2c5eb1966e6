"""What a heartbeat that changes nothing costs: `python -m tests.bench.heartbeat --nodes 5000 --beats 5000`.

A whole replica as it is shipped, all parts on, in one process with the embedded API server. Its watch of nodes is
played: lines as the API server sends them for real GPU nodes (27 conditions, 40 labels, 30 images, managed fields).
In the figures: processor time of this process. Per heartbeat from the line on (TLS and HTTP come on top: see
`tests.bench.claim`), and per second for what goes on without any event, which grows with the number of nodes.
`--profile` shows which functions it goes to.
"""

import argparse
import asyncio
import cProfile
import gc
import json
import os
import pstats
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from remediator import metrics
from remediator.app import Replica
from remediator.clock import SYSTEM
from remediator.kube.wire.client import Client
from remediator.kube.wire.transport import Query, Reply, Stream
from remediator.settings import Settings
from remediator_sim import manifests
from remediator_sim.apiserver import EmbeddedServer
from remediator_sim.controller import ANY_PORT
from tests.bench import features, numbers
from tests.harness.waiting import until

CONDITIONS = 27
NODES = "/api/v1/nodes"
ROUTES = "default: {repository: example/gpus}\n"
START_SECONDS = 120.0


def node(index: int, version: int, heartbeat: datetime) -> dict[str, Any]:
    """A GPU node of 15 KB, as its kubelet, node-problem-detector and the GPU operator make it."""
    beat, name = heartbeat.strftime("%Y-%m-%dT%H:%M:%SZ"), f"gpu-{index:05d}"
    labels = {f"feature.node.kubernetes.io/cpu-feature-{number}": "true" for number in range(36)}
    labels |= {
        "kubernetes.io/hostname": name,
        "nvidia.com/gpu.present": "true",
        "remediator.dev/gpu.present": "true",
        "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
        "topology.kubernetes.io/rack": f"rack-{index // 8}",
    }
    times = {"lastHeartbeatTime": beat, "lastTransitionTime": "2026-11-01T00:00:00Z"}
    names = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure", *_watched()][:CONDITIONS]
    conditions = [
        {"type": kind, "status": str(kind == "Ready"), "reason": f"No{kind}", "message": f"{kind}: as it should be"}
        | times
        for kind in names
    ]
    fields = {f'k:{{"type":"{kind}"}}': {".": {}, "f:lastHeartbeatTime": {}, "f:status": {}} for kind in names}
    managers = [
        {"manager": manager, "operation": "Update", "time": beat, "fieldsV1": {"f:status": {"f:conditions": fields}}}
        for manager in ("kubelet", "node-problem-detector")
    ]
    images = [
        {"names": [f"registry.example/team/image-{at}@sha256:{at:064x}", f"registry.example/team/image-{at}:v1"]}
        for at in range(30)
    ]
    room = {"cpu": "96", "memory": "1Ti", "pods": "110", "nvidia.com/gpu": "8"}
    meta = {"name": name, "uid": f"uid-{index}", "resourceVersion": str(version), "labels": labels}
    status = {"capacity": room, "allocatable": room, "conditions": conditions, "images": images}
    return {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": meta | {"annotations": {"example.com/volumes": "x" * 200}, "managedFields": managers},
        "spec": {"podCIDR": "10.0.0.0/24"},
        "status": status | {"nodeInfo": {"bootID": f"boot-{index}", "kubeletVersion": "v1.37.1"}},
    }


def _watched() -> list[str]:
    """The conditions that shipped policies ask about."""
    policies = manifests.documents(("deploy/policies",))
    clauses = (clause for policy in policies for when in policy["spec"]["when"] for clause in when.get("all", [when]))
    return list(dict.fromkeys(clause["condition"] for clause in clauses if clause["condition"] != "Ready"))


def line(kind: str, body: dict[str, Any]) -> bytes:
    """One line of a watch."""
    return json.dumps({"type": kind, "object": body}, separators=(",", ":")).encode() + b"\n"


class Played:
    """A transport whose watch of nodes is played; everything else goes to the embedded API server."""

    def __init__(self, server: EmbeddedServer, nodes: int) -> None:
        self._transport, self._nodes = server.transport(), nodes
        self.chunks: asyncio.Queue[bytes] = asyncio.Queue()

    async def request(self, method: str, path: str, **options: Any) -> Reply:
        """Of the nodes, only their heads are ever asked for."""
        if path != NODES:
            return await self._transport.request(method, path, **options)
        items = [{"metadata": {"name": f"gpu-{at:05d}", "resourceVersion": str(at + 1)}} for at in range(self._nodes)]
        return Reply(200, json.dumps({"metadata": {"resourceVersion": str(self._nodes)}, "items": items}).encode(), {})

    def stream(
        self, path: str, *, query: Query = (), idle_timeout: float = 75.0
    ) -> AbstractAsyncContextManager[Stream]:
        """The played watch, or a real one."""
        return self._watch() if path == NODES else self._transport.stream(path, query=query, idle_timeout=idle_timeout)

    async def close(self) -> None:
        """Nothing is open."""

    @asynccontextmanager
    async def _watch(self) -> AsyncIterator[Any]:
        now = datetime.now(UTC)
        for at in range(self._nodes):
            self.chunks.put_nowait(line("ADDED", node(at, at + 1, now)))
        end = {"resourceVersion": str(self._nodes), "annotations": {"k8s.io/initial-events-end": "true"}}
        self.chunks.put_nowait(line("BOOKMARK", {"metadata": end}))
        yield _Chunks(self.chunks)


class _Chunks:
    status, headers = 200, {}

    def __init__(self, chunks: asyncio.Queue[bytes]) -> None:
        self._chunks = chunks

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            yield await self._chunks.get()
            self._chunks.task_done()


async def measure(nodes: int, beats: int, seconds: float, profile: bool) -> dict[str, Any]:
    """Everything that this benchmark states."""
    server = EmbeddedServer()
    client = Client(server.transport())
    await manifests.deploy(client, lambda document: document)
    await manifests.create(client, *features.policies(), features.racks("topology.kubernetes.io/rack"))
    played = Played(server, nodes)
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, features.answered() as url:
        routes, token = Path(folder) / "routes.yaml", Path(folder) / "token"
        routes.write_text(ROUTES)
        token.write_text("none")
        asked = {"prometheus_url": url, "alertmanager_url": (url,)}
        settings = Settings(listen=ANY_PORT, routes=routes, github_token_file=token, **asked)
        replica = Replica(Client(played), settings, SYSTEM)
        running = asyncio.create_task(replica.run())
        try:
            await until(lambda: _settled(replica, nodes), START_SECONDS)
            idle = await _idle(seconds, profile)
            beat = await _beats(replica, played, nodes, beats, profile)
        finally:
            running.cancel()
            await asyncio.wait({running})
    gc.collect()
    return {
        "nodes": nodes,
        "line_bytes": len(line("MODIFIED", node(0, 1, datetime.now(UTC)))),
        "idle_cpu_percent": round(100 * idle, 2),
        "cpu_us_per_heartbeat": round(1e6 * beat, 1),
        "memory_mib": numbers.memory(os.getpid()),
    }


async def _settled(replica: Replica, nodes: int) -> bool:
    """Whether the replica leads, knows every node, and has nothing left to do."""
    known = len(replica.informers.nodes.keys()) == nodes
    return known and replica.ready() and replica.leader.is_leader and not replica.controller._queue.depth


async def _idle(seconds: float, profile: bool) -> float:
    """Seconds of processor time in each second without any event."""
    with _profiled(profile):
        began = time.process_time()
        await asyncio.sleep(seconds)
        return (time.process_time() - began) / seconds


@contextmanager
def _profiled(wanted: bool) -> Iterator[None]:
    """Show where the time of the block went, if that is wanted."""
    if not wanted:
        yield
        return
    with cProfile.Profile() as profile:
        yield
    pstats.Stats(profile, stream=sys.stderr).sort_stats("tottime").print_stats(25)


async def _beats(replica: Replica, played: Played, nodes: int, beats: int, profile: bool) -> float:
    """Seconds of processor time for each heartbeat, one line to a turn of the loop."""
    later = datetime.now(UTC) + timedelta(seconds=10)
    lines = [line("MODIFIED", node(at % nodes, nodes + 1 + at, later)) for at in range(beats)]
    with _profiled(profile):
        began = time.process_time()
        for chunk in lines:
            played.chunks.put_nowait(chunk)
            await asyncio.sleep(0)
        await played.chunks.join()
        return (time.process_time() - began) / beats


def main() -> None:
    """Measure; print one line of JSON to stdout."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.heartbeat", description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--beats", type=int, default=5000)
    parser.add_argument("--idle", type=float, default=60.0, help="Seconds to watch the idle replica for.")
    parser.add_argument("--profile", action="store_true", help="Show which functions the heartbeats went through.")
    asked = parser.parse_args()
    metrics.configure("error", json=False, clock=SYSTEM)
    print(json.dumps(asyncio.run(measure(asked.nodes, asked.beats, asked.idle, asked.profile))))


if __name__ == "__main__":
    main()
