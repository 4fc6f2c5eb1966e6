"""The embedded API server for tests that are not asynchronous: over HTTPS, in a thread, with its store at hand."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import yaml

from remediator.clock import Clock
from remediator.kube.wire.client import Client
from remediator_sim.apiserver import EmbeddedServer, Endpoint
from remediator_sim.manifests import LOADER
from tests.harness import objects

Obj = dict[str, Any]
T = TypeVar("T")
NAMESPACE = "remediator-operations"
CRDS = Path(__file__).resolve().parents[2] / "deploy/crds"
DEFINED = ("nodeoperations", "noderemediations", "remediationpolicies")
PODS, DAEMON_SETS = "pods", "daemonsets.apps"
NODE = ("nodes", "", "gpu-1")  # where an object is stored: kind, namespace, name
OPERATION = ("nodeoperations.remediator.dev", "", "op-1")
CASE = ("noderemediations.remediator.dev", "", "gpu-1-gpu-lost")
POLICY = ("remediationpolicies.remediator.dev", "", "gpu-lost")
SYSTEM = ("namespaces", "", "remediator-system")
KUBELET_LEASE = ("leases.coordination.k8s.io", "kube-node-lease", "gpu-1")
STORED = {
    "Node": "nodes",
    "Namespace": "namespaces",
    "NodeOperation": OPERATION[0],
    "NodeRemediation": CASE[0],
    "RemediationPolicy": POLICY[0],
    "Pod": PODS,
    "DaemonSet": DAEMON_SETS,
    "PodDisruptionBudget": "poddisruptionbudgets.policy",
    "Lease": "leases.coordination.k8s.io",
    "ResourceSlice": "resourceslices.resource.k8s.io",
    "DeviceTaintRule": "devicetaintrules.resource.k8s.io",
    "VolumeAttachment": "volumeattachments.storage.k8s.io",
}
FOREVER = 10**9  # requests


@cache
def definition(plural: str) -> bytes:
    """One of our kinds."""
    return json.dumps(yaml.load((CRDS / f"{plural}.yaml").read_text(), LOADER)).encode()


def change(where: tuple[str, str, str], part: str, **fields: Any) -> Callable[["ApiServer"], None]:
    """Return what sets fields in one part of a stored object, its spec for example."""
    return lambda api: api.edit(where, lambda obj: obj.setdefault(part, {}).update(fields))


class ApiServer:
    """Node gpu-1, held by case-1 for operation op-1, and what tests put beside them.

    Tests write objects past every check, as they stand in etcd. Of a cluster's other programs only these are played:
    the kubelet ends a deleted Pod at once (`ends_pods`), and `replace(pod)` returns what a DaemonSet makes in its
    place. `on_request(method, path)` is called before each request is served; `faults` are those of the server.
    """

    def __init__(self, folder: Path) -> None:
        self._reset(EmbeddedServer())
        self._tokens = folder / "token-dir"
        self._tokens.mkdir()
        (self._tokens / "token").write_text("the-token-of-this-pod")
        (self._tokens / "namespace").write_text(NAMESPACE)
        self._up: Future[Endpoint] = Future()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="API server", daemon=True)
        self._thread.start()
        endpoint = self._up.result()
        (self._tokens / "ca.crt").write_bytes(endpoint.ca_file.read_bytes())
        self._address = urlsplit(endpoint.url)

    def _reset(self, server: EmbeddedServer) -> None:
        self.requests: list[tuple[str, str, Obj]] = []  # (method, path, body)
        self.on_request: Callable[[str, str], object] = lambda method, path: None
        self.replace: Callable[[Obj], Obj | None] = lambda pod: None
        self.ends_pods = True
        self._server = server
        self.faults = server.faults

    def environment(self) -> dict[str, str]:
        """Return the variables that tell a Pod's program where the API server is, and its token."""
        return {
            "KUBERNETES_SERVICE_HOST": str(self._address.hostname),
            "KUBERNETES_SERVICE_PORT": str(self._address.port),
            "TOKEN_DIR": str(self._tokens),
        }

    def close(self) -> None:
        """Listen no more."""
        with suppress(RuntimeError):  # it was closed before
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def put(self, *objs: Obj) -> None:
        """Store objects, as they are."""
        for obj in objs:
            self._do(lambda obj=obj: self._server.cluster.put(STORED[obj["kind"]], json.loads(json.dumps(obj))))

    def get(self, kind: str, namespace: str, name: str) -> Obj:
        """Return a copy of one object. Raises KeyError where there is none."""
        return self._do(lambda: self._server.cluster.store.collection(kind).entries[namespace, name].copy())

    def edit(self, where: tuple[str, str, str], change: Callable[[Obj], object]) -> None:
        """Let `change` change one stored object."""

        def edit() -> None:
            obj = self.get(*where)
            change(obj)
            self._server.cluster.put(where[0], obj)

        self._do(edit)

    def remove(self, kind: str, namespace: str, name: str) -> None:
        """Take one object away."""
        self._do(lambda: self._server.cluster.remove(kind, self.get(kind, namespace, name)))

    def refuse(self, *codes: int) -> None:
        """Answer the next requests, whatever they are, with these codes."""
        for code in codes:
            self._do(lambda code=code: self.faults.refuse(code))

    def refuse_evictions(self, code: int, message: str, times: int) -> None:
        """Answer the next evictions with this code and message, undone."""
        self._do(
            lambda: self.faults.refuse(
                code, times=times, when=lambda asked: asked.path.endswith("/eviction"), message=message
            )
        )

    def ready(self, status: str) -> None:
        """Let the node say that it is "True", "False" or "Unknown", or "" for nothing."""
        conditions = [{"type": "Ready", "status": status}] if status else []
        self.edit(NODE, lambda node: node["status"].update(conditions=conditions))

    @property
    def node(self) -> Obj:
        """A copy of the node."""
        return self.get(*NODE)

    @property
    def pods(self) -> tuple[Obj, ...]:
        """Copies of all Pods."""
        return self._list(PODS)

    @pods.setter
    def pods(self, pods: Iterable[Obj]) -> None:
        self._exchange(PODS, pods)

    @property
    def daemon_sets(self) -> tuple[Obj, ...]:
        """Copies of all DaemonSets."""
        return self._list(DAEMON_SETS)

    @daemon_sets.setter
    def daemon_sets(self, daemon_sets: Iterable[Obj]) -> None:
        self._exchange(DAEMON_SETS, daemon_sets)

    @property
    def leases(self) -> dict[str, Obj]:
        """Copies of all Leases but those of kubelets, by namespace/name."""
        leases = self._list(KUBELET_LEASE[0])
        named = {f"{lease['metadata']['namespace']}/{lease['metadata']['name']}": lease for lease in leases}
        return {name: lease for name, lease in named.items() if not name.startswith("kube-node-lease/")}

    @property
    def evicted(self) -> list[str]:
        """The Pods whose eviction was granted, in that order."""
        return [path.split("/")[6] for path in self._carried_out("create") if path.endswith("/eviction")]

    @property
    def deleted(self) -> list[str]:
        """The Pods that were deleted without asking a budget, in that order."""
        return [path.split("/")[6] for path in self._carried_out("delete") if "/pods/" in path]

    @property
    def progress(self) -> list[Obj]:
        """What drains have written to status.drain of their operation."""
        written = [body for method, path, body in self.requests if (method, path[-7:]) == ("PATCH", "/status")]
        return [body["status"]["drain"] for body in written]

    def writes(self) -> list[tuple[str, str]]:
        """Return (method, path) of each request that was to change something."""
        return [(method, path) for method, path, _ in self.requests if method != "GET"]

    def stored(self, kind: str) -> tuple[Obj, ...]:
        """Copies of all objects of a kind, by its name in the store."""
        return self._list(kind)

    def _carried_out(self, verb: str) -> Iterator[str]:
        return (done.path for done in tuple(self._server.audit) if done.verb == verb)

    def _list(self, kind: str) -> tuple[Obj, ...]:
        return self._do(lambda: tuple(entry.copy() for entry in self._server.cluster.store.collection(kind).scan("")))

    def _exchange(self, kind: str, objs: Iterable[Obj]) -> None:
        for obj in self._list(kind):
            self.remove(kind, obj["metadata"]["namespace"], obj["metadata"]["name"])
        self.put(*objs)

    def _do(self, step: Callable[[], T]) -> T:
        """Do something in the thread that the server lives in: nothing is served meanwhile."""
        if threading.current_thread() is self._thread:
            return step()

        async def do() -> T:
            return step()

        return asyncio.run_coroutine_threadsafe(do(), self._loop).result()

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        try:
            await self._begin()
            async with self._server.serve() as endpoint:
                self._up.set_result(endpoint)
                await self._stop.wait()
        except BaseException as error:
            if not self._up.done():
                self._up.set_exception(error)
            raise

    async def _begin(self) -> None:
        transport, followers = self._server.transport(), self._server.cluster.followers
        for path, body in (
            *(("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition(plural)) for plural in DEFINED),
            ("/api/v1/namespaces", json.dumps({"metadata": {"name": NAMESPACE}}).encode()),
        ):
            assert (await transport.request("POST", path, body=body)).status == 201
        del followers["nodes"]  # taints are those that a test writes
        self._count = followers["pods"]
        followers["pods"] = self._follow_pod
        self.put(objects.node(), objects.operation(), objects.kubelet_lease())
        self.put(objects.case(), objects.policy(), objects.namespace())
        self.faults.refuse(500, times=FOREVER, when=self._hear)

    def _hear(self, asked: Any) -> bool:
        """Take note of a request, and refuse none."""
        self.requests.append((asked.method, asked.path, json.loads(asked.body or b"{}")))
        self.on_request(asked.method, asked.path)
        return False

    def _follow_pod(self, cluster: Any, old: Any, new: Any) -> None:
        self._count(cluster, old, new)
        marked = new is not None and new.obj["metadata"].get("deletionTimestamp")
        if old is not None and marked and not old.obj["metadata"].get("deletionTimestamp") and self.ends_pods:
            cluster.remove(PODS, new.copy())
            successor = self.replace(new.copy())
            if successor is not None:
                self.put(successor)


class MemoryServer(ApiServer):
    """The same in the event loop that it is made in, without HTTPS: `begin` it first. `clock` gives its time."""

    def __init__(self, clock: Clock) -> None:
        self._reset(EmbeddedServer(clock=clock))

    async def begin(self) -> None:
        """What stands in an ApiServer."""
        await self._begin()

    def client(self) -> Client:
        """A client of an administrator."""
        return Client(self._server.transport())

    def close(self) -> None:
        """Nothing is left."""

    def _do(self, step: Callable[[], T]) -> T:
        return step()
