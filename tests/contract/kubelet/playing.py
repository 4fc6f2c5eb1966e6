"""A namespace, a simulated node and small programs for it, on whatever server a test is given."""

import asyncio
import contextlib
import shutil
import uuid

from remediator.clock import SYSTEM
from remediator.kube.wire import errors
from remediator_sim.kubelet.host import SimulatedHost
from remediator_sim.kubelet.kubelet import SimulatedKubelet
from remediator_sim.kubelet.runtime import Runtime
from remediator_sim.kubelet.worker import PodWorker, WorkerNode
from remediator_sim.plain import ACCOUNTS, LEASES, NODES, PODS, condition
from tests.harness.kinds import NAMESPACES
from tests.harness.waiting import until


class Play:
    """One node and one namespace of a test's own. `client` reaches the server, `endpoint` is what Pods are told."""

    def __init__(self, client, endpoint, directory):
        self.client, self.endpoint, self.directory = client, endpoint, directory
        self.space = self.node = f"play-{uuid.uuid4().hex[:8]}"
        self.host = SimulatedHost(directory / "host", self.node, down_time=0.1)
        self.programs = directory / "image"
        (self.programs / "operations").mkdir(parents=True)
        self._task = None

    async def set_up(self):
        await self.client.create(
            NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.space}}
        )
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "runner"}}
        await self.client.create(ACCOUNTS, account, namespace=self.space)

    async def tear_down(self):
        await self.stop()
        for kind, name, space in (
            (NODES, self.node, ""),
            (LEASES, self.node, "kube-node-lease"),
            (NAMESPACES, self.space, ""),
        ):
            with contextlib.suppress(errors.ApiError):
                await self.client.delete(kind, name, namespace=space)

    async def start(self):
        """Start a kubelet and wait until its node is Ready."""
        kubelet = SimulatedKubelet(
            self.client,
            self.node,
            host=self.host,
            programs=self.programs,
            endpoint=self.endpoint,
            heartbeat=0.2,
        )
        self._task = asyncio.create_task(kubelet.run())
        await until(lambda: self.node_says("Ready", "True"))

    async def stop(self):
        if self._task:
            self._task.cancel()
            await asyncio.wait([self._task])
            if not self._task.cancelled():
                self._task.result()
            self._task = None

    async def node_says(self, kind, value):
        """Whether the node's condition `kind` has the status `value`; the condition if so."""
        try:
            shown = condition(await self.client.get(NODES, self.node), kind)
        except errors.NotFound:
            return None
        return shown if shown and shown["status"] == value else None

    async def boot_id(self):
        return (await self.client.get(NODES, self.node))["status"]["nodeInfo"]["bootID"]

    def program(self, text, name="program"):
        """Put a Python program into the image; gives the command that runs it."""
        (self.programs / f"operations/{name}.py").write_text(text)
        return ["python3", "-I", "-S", f"/opt/remediator/operations/{name}.py"]

    async def pod(self, command, *, name="p", env=(), finalizers=(), **spec):
        """Create a Pod on the node."""
        container = {"name": "main", "image": "operations:test", "command": command, "env": list(env)}
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": self.space, "finalizers": list(finalizers)},
            "spec": {
                "nodeName": self.node,
                "restartPolicy": "Never",
                "serviceAccountName": "runner",
                "automountServiceAccountToken": False,
                "containers": [container],
                **spec,
            },
        }
        return await self.client.create(PODS, body, namespace=self.space)

    async def seen(self, name="p"):
        """The Pod as it is now; None if it is gone."""
        with contextlib.suppress(errors.NotFound):
            return await self.client.get(PODS, name, namespace=self.space)
        return None

    async def in_phase(self, *phases, name="p"):
        """Wait until the Pod is in one of `phases`; its status."""

        async def there():
            pod = await self.seen(name)
            return pod if pod and pod["status"]["phase"] in phases else None

        return (await until(there))["status"]

    async def end(self, name="p"):
        """Wait for the Pod's end; its status and how its container terminated."""
        status = await self.in_phase("Succeeded", "Failed", name=name)
        return status, status["containerStatuses"][0]["state"]["terminated"]

    async def delete(self, name="p"):
        await self.client.delete(PODS, name, namespace=self.space)

    async def is_gone(self, name="p"):
        return await self.seen(name) is None

    async def delete_by_force(self, name="p"):
        await self.client.transport.request("DELETE", PODS.path(name, self.space), body=b'{"gracePeriodSeconds":0}')

    def disk_is_empty(self):
        """Whether the host keeps nothing of any Pod."""
        return not any(self.host.pods.iterdir())

    def lose_disk(self):
        """Take from the host all that it keeps of its Pods."""
        shutil.rmtree(self.host.pods)
        self.host.pods.mkdir()

    def worker(self, pod):
        """What a kubelet of this node plays `pod` with."""
        runtime = Runtime(self.host.pods)
        return PodWorker(WorkerNode(self.client, self.host, runtime, self.programs, self.endpoint, SYSTEM), pod)

    @contextlib.contextmanager
    def server_away(self):
        """While open no request is answered; gives the list of the paths that were asked for."""
        transport = self.client.transport
        self.client.transport = away = _Away()
        try:
            yield away.refused
        finally:
            self.client.transport = transport


class _Away:
    """A transport to nowhere."""

    def __init__(self):
        self.refused = []

    async def request(self, method, path, **_):
        self.refused.append(path)
        raise errors.Unavailable(0, "Away", "nobody answers")
