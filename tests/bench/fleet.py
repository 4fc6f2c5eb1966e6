"""An API server that is only played: nodes, Pods and a policy to be watched, and node events at a rate that can be set.

`python -m tests.bench.fleet PORT NODES`; POST /rate sets events a second, GET /sent says how many there were.
"""

import asyncio
import itertools
import json
import sys
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from aiohttp import web

from tests.cluster.control_plane import HOST

GPU, GPUS, CONDITION = "nvidia.com/gpu", 8, "GpuLost"
PODS_PER_NODE = 4
SICK_IN = 20  # one node in so many
TICK = 0.002
NAME = "@NAME@"
NOISE = {f"feature.node.kubernetes.io/cpu-feature-{index}": "true" for index in range(120)}
IMAGES = [
    {"names": [f"registry.example/team/image-{index}@sha256:{index:064x}"], "sizeBytes": 10**9} for index in range(50)
]
END = {"metadata": {"resourceVersion": "1", "annotations": {"k8s.io/initial-events-end": "true"}}}


def names(count: int) -> list[str]:
    """Names as clouds give them."""
    return [f"gpu-node-{index:05d}.pool-a.example" for index in range(count)]


def request(nodes: Sequence[str], gpus: int = 2) -> bytes:
    """ExtenderArgs for a Pod that asks for so many GPUs, as Go writes them."""
    container = {"name": "main", "image": "job:1", "resources": {"limits": {GPU: str(gpus), "cpu": "8"}}}
    env = [{"name": f"VARIABLE_{index}", "value": "x" * 40} for index in range(30)]
    meta = {"name": "job", "namespace": "team", "uid": "u", "creationTimestamp": None, "labels": {"app": "job"}}
    pod = {"metadata": meta, "spec": {"containers": [container | {"env": env}]}, "status": {"phase": "Pending"}}
    args = {"Pod": pod, "Nodes": None, "NodeNames": list(nodes)}
    return json.dumps(args, separators=(",", ":")).encode()


def kubeconfig(url: str) -> dict[str, Any]:
    """How to reach it."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "bench",
        "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
        "clusters": [{"name": "bench", "cluster": {"server": url}}],
        "users": [{"name": "bench", "user": {"token": "bench"}}],
    }


def node(name: str, sick: bool) -> dict[str, Any]:
    """A node of 15 KB, as one with a GPU operator is."""
    now = datetime.now(UTC).isoformat()
    said = {"Ready": "True", "MemoryPressure": "False", "DiskPressure": "False", CONDITION: str(sick)}
    times = {"lastHeartbeatTime": now, "lastTransitionTime": now, "reason": "Bench", "message": "bench"}
    conditions = [{"type": kind, "status": status, **times} for kind, status in said.items()]
    room = {"cpu": "96", "memory": "1Ti", "pods": "110", GPU: str(GPUS)}
    status = {"allocatable": room, "capacity": room, "conditions": conditions, "images": IMAGES}
    meta = {"name": name, "uid": f"uid-{name}", "resourceVersion": "1", "labels": {"pool": "a"} | NOISE}
    return {"metadata": meta, "spec": {}, "status": status}


def pod(node: str, index: int) -> dict[str, Any]:
    """A Pod on the node; two GPUs for every second one."""
    wants = {"requests": {"cpu": "4"}, "limits": {GPU: "2"} if index % 2 else {}}
    meta = {"name": f"{node}-{index}", "namespace": "team", "resourceVersion": "1"}
    return {"metadata": meta, "spec": {"nodeName": node, "containers": [{"name": "main", "resources": wants}]}}


POLICY = {
    "metadata": {"name": "gpu-lost", "resourceVersion": "1"},
    "spec": {
        "mode": "Paused",
        "nodeSelector": {"matchLabels": {"pool": "a"}},
        "when": [{"condition": CONDITION, "for": "2m"}],
        "ladder": [{"operation": "reboot"}],
    },
}


def line(kind: str, found: dict[str, Any]) -> bytes:
    """One line of a watch."""
    return json.dumps({"type": kind, "object": found}).encode() + b"\n"


class Feed:
    """What is served, and how fast nodes change."""

    def __init__(self, count: int) -> None:
        self.names, self.rate, self.sent = names(count), 0.0, 0

    async def watch_nodes(self, request: web.Request) -> web.StreamResponse:
        """Every node, and then the events."""
        sick = {name: index % SICK_IN == 0 for index, name in enumerate(self.names)}
        answer = await _begin(request, (node(name, sick[name]) for name in self.names))
        # Of these every second one is sick at first: how many are sick stays the same.
        turn = itertools.cycle(self.names[:: SICK_IN // 2])
        changed = {said: line("MODIFIED", node(NAME, said)) for said in (False, True)}
        loop = asyncio.get_running_loop()
        owed, before = 0.0, loop.time()
        with suppress(ConnectionResetError):  # the extender has ended
            while True:
                await asyncio.sleep(TICK)
                owed, before = owed + self.rate * (loop.time() - before), loop.time()
                for _ in range(int(owed)):
                    name = next(turn)
                    sick[name] = not sick[name]
                    await answer.write(changed[sick[name]].replace(NAME.encode(), name.encode()))
                    self.sent += 1
                owed -= int(owed)
        return answer

    async def watch_pods(self, request: web.Request) -> web.StreamResponse:
        """Four Pods to a node, and then nothing."""
        found = (pod(name, index) for name in self.names for index in range(PODS_PER_NODE))
        return await _rest(await _begin(request, found))

    async def watch_namespaces(self, request: web.Request) -> web.StreamResponse:
        """One namespace."""
        return await _rest(await _begin(request, [{"metadata": {"name": "team", "resourceVersion": "1"}}]))

    async def watch_policies(self, request: web.Request) -> web.StreamResponse:
        """One policy."""
        return await _rest(await _begin(request, [POLICY]))

    async def watch_cases(self, request: web.Request) -> web.StreamResponse:
        """No case."""
        return await _rest(await _begin(request, []))

    async def set_rate(self, request: web.Request) -> web.Response:
        """Events a second from now on."""
        self.rate = float(await request.text())
        return web.Response()

    async def tell_sent(self, _: web.Request) -> web.Response:
        """How many events there were."""
        return web.json_response(self.sent)


async def _begin(request: web.Request, found: Any) -> web.StreamResponse:
    answer = web.StreamResponse()
    await answer.prepare(request)
    for one in found:
        await answer.write(line("ADDED", one))
    await answer.write(line("BOOKMARK", END))
    return answer


async def _rest(answer: web.StreamResponse) -> web.StreamResponse:
    while True:
        await asyncio.sleep(30)
        await answer.write(line("BOOKMARK", {"metadata": {"resourceVersion": "1"}}))


def main(port: int, count: int) -> None:
    """Serve until ended."""
    feed = Feed(count)
    ours = "/apis/remediator.dev/v1alpha1"
    app = web.Application()
    app.add_routes(
        [
            web.get("/api/v1/nodes", feed.watch_nodes),
            web.get("/api/v1/pods", feed.watch_pods),
            web.get("/api/v1/namespaces", feed.watch_namespaces),
            web.get(f"{ours}/remediationpolicies", feed.watch_policies),
            web.get(f"{ours}/noderemediations", feed.watch_cases),
            web.post("/rate", feed.set_rate),
            web.get("/sent", feed.tell_sent),
        ]
    )
    web.run_app(app, host=HOST, port=port, print=None, shutdown_timeout=0.1)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
