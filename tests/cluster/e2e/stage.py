"""Everything a case needs, around one API server: machines, kubelets, detectors, workload, and the controller."""

import asyncio
import math
import signal
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from remediator.core import names
from remediator.kube.api.builtin import LEASE
from remediator.kube.wire import errors
from remediator.kube.wire.client import Kind
from remediator_sim.accounts import node_token, token
from remediator_sim.controller import COMMAND, start_controller
from remediator_sim.kubeconfig import write_kubeconfig
from remediator_sim.kubelet.binder import Binder
from remediator_sim.kubelet.host import SimulatedHost
from remediator_sim.kubelet.kubelet import SimulatedKubelet
from remediator_sim.kubelet.program import RunningProgram
from remediator_sim.kubelet.worker import ApiAddress
from remediator_sim.manifests import deploy, withdraw
from remediator_sim.plain import NODES, PODS
from remediator_sim.scenarios.timescale import Scale, policy
from remediator_sim.tasks import TaskExitStack
from tests.cluster.e2e.administrator import REMEDIATOR, Administrator
from tests.cluster.e2e.machine import GPUS, Machine
from tests.cluster.e2e.proxy import Mutation, Proxy, Tape
from tests.cluster.e2e.workload import Workload
from tests.cluster.keys import Keys
from tests.cluster.servers import Server
from tests.harness.kinds import CASES, OPERATIONS
from tests.harness.waiting import until

ROOT = Path(__file__).parents[3]
SYSTEM = "system-1"
AT_ONCE = Scale(tolerance=math.inf, escalation=math.inf, verify=300, timeout=20, cooldown=math.inf)
# What the machines of a stage can show. A policy more is a write more at which the controller is killed.
SHOWN = {"GpuLost", "GpuEccFault", "NfsStale", "NfsUnavailable", "UnkillableProcess", "Ready", "MemoryPressure"}
TEAM = {"team": "blue"}
RESERVED = {"key": "example.com/reserved", "value": "blue", "effect": "PreferNoSchedule"}


class Replica(NamedTuple):
    """One controller process behind its own proxy."""

    name: str
    program: RunningProgram
    proxy: Proxy


class Stage(Administrator):
    """`async with Stage(server, directory, library, ["gpu-17"])`: up, healthy, and without a controller yet.

    Each node has a workload of its own. `tape` records what all controllers change. On the way out every process is
    ended and all objects of these nodes are removed, policies and budgets too, so that a server can carry one stage
    after another.
    """

    def __init__(
        self,
        server: Server,
        directory: Path,
        library: Path,
        nodes: list[str],
        *,
        detectors: Collection[str] = ("gpu_lost",),
    ) -> None:
        super().__init__(server)
        self.directory, self.lease = directory, 15.0  # outlasts a machine that is slow for seconds
        self.machines = {name: Machine(directory / name, name, library, detectors) for name in nodes}
        real = server.name == "real"
        self.workloads = {name: Workload(self.client, name, controllers=real) for name in nodes}
        self.tape = Tape()
        self.replicas: list[Replica] = []
        self._kubelets: list[SimulatedKubelet] = []
        self._ends, self._programs = TaskExitStack(), TaskExitStack()

    async def __aenter__(self) -> "Stage":
        try:
            await self._set()
        except BaseException:
            await self._ends.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._ends.aclose()

    async def _set(self) -> None:
        self._keys = await asyncio.to_thread(Keys, self.directory)  # an RSA key takes longer than a lease may wait
        await deploy(self.client, hurried)
        self._ends.push_async_callback(self._clear)
        self._ends.push_async_callback(self._programs.aclose)
        system = SimulatedHost(self.directory / SYSTEM, SYSTEM, down_time=0.5)
        self._play(system, 0)
        if self.server.name != "real":
            self._ends.run(Binder(self.client).run())
        for name, machine in self.machines.items():
            await self.client.create(NODES, registered(name))
            self._ends.push_async_callback(machine.stop_detectors)
            self._play(machine, GPUS)
        for name in (SYSTEM, *self.machines):
            await until(lambda name=name: self.condition(name, "Ready", "True"), 30)
        for name, machine in self.machines.items():
            await machine.start_detectors(self.server.url, await self._detector_kubeconfig(name))
            await self.workloads[name].start()
        for name in self.machines:
            await until(lambda name=name: self.condition(name, "GpuLost", "False"), 30)
            await until(lambda name=name: self.condition(name, "DetectorStale", "False"), 30)

    def _play(self, host: SimulatedHost, gpus: int) -> None:
        assert self.server.ca_file
        kubelet = SimulatedKubelet(
            self.client,
            host.name,
            host=host,
            programs=ROOT,
            endpoint=ApiAddress(self.server.url, self.server.ca_file),
            gpus=gpus,
            heartbeat=0.5,
        )
        self._kubelets.append(kubelet)
        self._programs.run(kubelet.run())

    async def restart_kubelets(self) -> None:
        """On machines that run on. What they remember of Pods is forgotten, and what is on their disks is not."""
        await self._programs.aclose()
        for kubelet in self._kubelets:
            self._programs.run(kubelet.run())

    # --- controllers -------------------------------------------------------------------------------------------------

    async def start_controller(self, *more: str, command: Sequence[str] = COMMAND) -> Replica:
        """One more controller, with the rights that are shipped and `more` options, behind a proxy of its own.

        `command` is the build that runs; this one, where nothing else is said.
        """
        name = f"replica-{len(self.replicas) + 1}"
        assert self.server.ca_file
        proxy = Proxy(self.server.url, self.server.ca_file, self.tape)
        await self._ends.enter_async_context(proxy.listening(self._keys))
        ours = await token(self.client, "remediator", names.SYSTEM_NAMESPACE)
        kubeconfig = write_kubeconfig(self.directory, name, proxy.url, ours, self._keys.ca_file)
        log, options = self.directory / f"{name}.log", ("--log-level", "debug", *more)
        program = await start_controller(kubeconfig, name, log, options, command, lease=self.lease)
        self._ends.push_async_callback(program.kill)
        self.replicas.append(Replica(name, program, proxy))
        return self.replicas[-1]

    async def command(self, *words: str) -> RunningProgram:
        """`remediator` as an administrator starts it, with a log of its own."""
        whole = (REMEDIATOR, *words, "--kubeconfig", str(self.server.kubeconfig))
        return await RunningProgram.start(whole, self.directory / f"{words[0]}.log")

    async def crash(self, _: Mutation) -> None:
        """SIGKILL the newest controller; nothing that it still says is heard. Another one starts, and may lead at once.

        That one waits until the lease has run out is a matter of other tests.
        """
        replica = self.replicas[-1]
        replica.program.signal(signal.SIGKILL)
        replica.proxy.severed = True
        await replica.program.kill()
        free = {"spec": {"holderIdentity": ""}}
        await self.client.patch(LEASE, "remediator", free, namespace=names.SYSTEM_NAMESPACE)
        await self.start_controller()

    async def over(self, node: str) -> dict[str, Any] | None:
        """As for any administrator; AssertionError where no controller is left that could end the case."""
        if self.replicas and all(replica.program.code is not None for replica in self.replicas):
            last = self.replicas[-1]
            killed = last.proxy.severed  # by `crash`: another one is about to start
            assert killed, f"{last.name} ended by itself with {last.program.code}: {last.program.log_end()}"
        return await super().over(node)

    async def _detector_kubeconfig(self, node: str) -> Path:
        granted = await node_token(self.client, "node-problem-detector", names.SYSTEM_NAMESPACE, node)
        assert self.server.ca_file
        return write_kubeconfig(self.directory, f"npd-{node}", self.server.url, granted, self.server.ca_file)

    # --- clearing ----------------------------------------------------------------------------------------------------

    async def _clear(self) -> None:
        """Remove what belongs to this stage's nodes; the last step, when only the server is left."""
        for pod in await self.operation_pods():
            await self._remove(PODS, pod)
        for kind in (CASES, OPERATIONS):
            for node in self.machines:
                for obj in await self.of_node(kind, node):
                    await self._remove(kind, obj)
        await withdraw(self.client)
        for lease in await self.client.list_all(LEASE, namespace=names.SYSTEM_NAMESPACE):  # starts are kept with it
            await self.client.delete(LEASE, lease.metadata["name"], namespace=names.SYSTEM_NAMESPACE)
        for workload in self.workloads.values():
            await workload.remove()
        for name in (SYSTEM, *self.machines):
            with suppress(errors.NotFound):
                await self.client.delete(NODES, name)

    async def _remove(self, kind: Kind[dict], obj: dict[str, Any]) -> None:
        meta = obj["metadata"]
        namespace = meta.get("namespace", "")
        with suppress(errors.NotFound):
            await self.client.patch(kind, meta["name"], {"metadata": {"finalizers": None}}, namespace=namespace)
            body = b'{"gracePeriodSeconds":0}'
            await self.client.transport.request("DELETE", kind.path(meta["name"], namespace), body=body)


def hurried(document: dict[str, Any]) -> dict[str, Any] | None:
    """A policy that acts at once; None for one on what no machine of a stage shows; any other object as it is."""
    if document["kind"] == "RemediationPolicy" and not SHOWN & {when["condition"] for when in document["spec"]["when"]}:
        return None
    return policy(document, AT_ONCE)


def registered(name: str) -> dict[str, Any]:
    """A GPU node as somebody set it up: with a label, a taint and a note that are not ours; the controller knows it."""
    labels = {"kubernetes.io/hostname": name, "nvidia.com/gpu.present": "true", names.GPU_PRESENT: "true", **TEAM}
    notes = {"example.com/note": "rack 7"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": notes},
        "spec": {"taints": [RESERVED]},
    }
