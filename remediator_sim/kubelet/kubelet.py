"""A simulated kubelet: plays one node against any API server and runs the Pods bound to it.

Pods whose command lies in /opt/remediator run as real processes of this machine, the programs taken from a checkout;
all others are made to look Running and ready until they are deleted. Unlike those of a real kubelet, the containers
end together with it.

    python -m remediator_sim.kubelet.kubelets --kubeconfig FILE --state DIR --node gpu-17 --node system-1=0
"""

import asyncio
import contextlib
import logging
from collections.abc import Mapping
from pathlib import Path

from remediator.clock import SYSTEM, Clock
from remediator.kube.runtime.reflector import Reflector
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client
from remediator.kube.wire.transport import STRATEGIC_PATCH
from remediator_sim.kubelet import node
from remediator_sim.kubelet.host import SimulatedHost
from remediator_sim.kubelet.runtime import Runtime
from remediator_sim.kubelet.worker import ApiAddress, PodWorker, WorkerNode
from remediator_sim.plain import LEASES, NODES, PODS, Object, patiently, whole

log = logging.getLogger(__name__)
LEASE_NAMESPACE = "kube-node-lease"


class _PowerOff(Exception):
    """The machine under the kubelet goes down."""


class SimulatedKubelet:
    """One node. `run` it as a task and cancel it to end it; hundreds fit into one loop.

    `programs` is the folder that holds operations/ and detectors/; `labels` are added to a node that is not there
    yet (a node that is, keeps its own); `gpus` is its capacity of nvidia.com/gpu; `heartbeat` is in seconds.
    """

    def __init__(
        self,
        client: Client,
        node_name: str,
        *,
        host: SimulatedHost,
        programs: Path,
        endpoint: ApiAddress,
        labels: Mapping[str, str] | None = None,
        gpus: int = 8,
        heartbeat: float = 10.0,
        clock: Clock = SYSTEM,
    ) -> None:
        self.client, self.name, self.host, self.heartbeat = client, node_name, host, heartbeat
        self._labels, self._gpus, self._clock = labels or {}, gpus, clock
        self._machine = WorkerNode(client, host, Runtime(host.pods), programs.absolute(), endpoint, clock)

    async def run(self) -> None:
        """Play the node, reboots included, until cancelled; then no process of it is left."""
        while True:
            await self._one_boot()
            log.info("%s: rebooting", self.name)
            await self.host.boot_again()

    async def _one_boot(self) -> None:
        with self.host.powered() as reset:
            try:
                async with asyncio.TaskGroup() as session:
                    session.create_task(self._beat())
                    session.create_task(self._play_pods(session))
                    await reset.wait()
                    raise _PowerOff
            except* _PowerOff:
                pass

    async def _beat(self) -> None:
        await patiently(self._register)
        while True:
            try:
                await self._post()
            except errors.ApiError as error:
                log.warning("%s: heartbeat: %s", self.name, error)
            await asyncio.sleep(self.heartbeat)

    async def _register(self) -> None:
        try:
            await self.client.get(NODES, self.name)
        except errors.NotFound:
            body = node.body(self.name, self.host.boot_id, self._labels, self._gpus, self._clock.wall())
            with contextlib.suppress(errors.AlreadyExists):
                await self.client.create(NODES, body)

    async def _post(self) -> None:
        """One heartbeat: the Node's status and its Lease."""
        now, seen = self._clock.wall(), await self.client.get(NODES, self.name)
        before = seen.get("status", {}).get("conditions", [])
        status = node.status(self.name, self.host.boot_id, self._gpus, before, self.host.trouble, now)
        await self.client.patch(
            NODES, self.name, {"status": status}, subresource="status", content_type=STRATEGIC_PATCH
        )
        try:
            renewal = {"spec": node.renewal(self.name, now)}
            await self.client.patch(LEASES, self.name, renewal, namespace=LEASE_NAMESPACE)
        except errors.NotFound:
            lease = node.lease(self.name, seen["metadata"]["uid"], now)
            await self.client.create(LEASES, lease, namespace=LEASE_NAMESPACE)

    async def _play_pods(self, session: asyncio.TaskGroup) -> None:
        crew = _Crew(self._machine, session)
        mine = f"spec.nodeName={self.name}"
        pods = Reflector(self.client, PODS, whole, crew.hear, fields=mine)
        session.create_task(pods.run())
        await pods.synced.wait()
        crew.clear_up()


class _Crew:
    """The workers of one boot, by Pod uid: a Pod never has two."""

    def __init__(self, machine: WorkerNode, session: asyncio.TaskGroup) -> None:
        self._machine, self._session = machine, session
        self._workers: dict[str, tuple[PodWorker, asyncio.Task[None]]] = {}

    def hear(self, key: str, old: Object | None, new: Object | None) -> None:
        """Bring the workers in line with one Pod's change; a namesake that took its place is another Pod."""
        if old and (new is None or _uid(old) != _uid(new)):
            self._dismiss(_uid(old))
        if new:
            self._see(new)

    def clear_up(self) -> None:
        """Forget what the disk holds of Pods that went while nobody played this node. All Pods were heard of before."""
        for uid in self._machine.runtime.known() - self._workers.keys():
            self._machine.runtime.forget(uid)

    def _see(self, pod: Object) -> None:
        uid = _uid(pod)
        if uid in self._workers:
            self._workers[uid][0].see(pod)
        else:
            worker = PodWorker(self._machine, pod)
            self._workers[uid] = worker, self._session.create_task(worker.run())

    def _dismiss(self, uid: str) -> None:
        """The Pod is gone: end what still runs, then forget it."""
        _, task = self._workers.pop(uid)
        task.add_done_callback(lambda _: self._machine.runtime.forget(uid))
        task.cancel()


def _uid(pod: Object) -> str:
    return str(pod["metadata"]["uid"])
