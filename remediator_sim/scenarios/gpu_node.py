"""One GPU node of the demo: machine, kubelet, and a node-problem-detector that lives and dies with each boot."""

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path

from remediator.clock import Clock
from remediator.kube.wire.client import Client
from remediator_sim.kubelet.host import SimulatedHost
from remediator_sim.kubelet.kubelet import SimulatedKubelet
from remediator_sim.kubelet.worker import ApiAddress
from remediator_sim.machine import Machine, NfsServer
from remediator_sim.npd import Monitor, NodeProblemDetector, Runner
from remediator_sim.scenarios.fleet import Place
from remediator_sim.shipped import folder

TIMEOUT = 20.0
HEARTBEAT = 2.0
STALE = 60.0  # seconds without a run after which a detector is stale; a busy machine takes its time
# Those of the faults of the demo: 24 nodes with all detectors are more than a small machine can run at once.
DETECTORS = ("gpu_lost", "gpu_ecc", "nfs_mount", "nfs_server", "unkillable_process")
SHORT_TIMES = {
    "unkillable_process": ("--apart=3",),
    "nfs_mount": ("--deadline=3",),
    "nfs_server": ("--deadline=3",),
    **dict.fromkeys(("gpu_lost", "gpu_ecc", "gpu_recovery"), ("--fresh=1",)),
}
DOWN_TIME = 1.5  # seconds that a reboot takes


class Host(SimulatedHost):
    """A machine that says when it goes down and when it is up again."""

    def __init__(self, directory: Path, name: str) -> None:
        super().__init__(directory, name, down_time=DOWN_TIME)
        self.down, self.up = asyncio.Event(), asyncio.Event()
        self.up.set()

    async def boot_again(self) -> None:
        """Everything on the machine dies with it."""
        self.up.clear()
        self.down.set()
        await super().boot_again()
        self.down.clear()
        self.up.set()


class GpuNode:
    """Run it as a task. Its detectors run every `interval` seconds, after a `delay` that keeps nodes apart."""

    def __init__(
        self,
        client: Client,
        place: Place,
        directory: Path,
        mounts: Mapping[str, NfsServer],
        endpoint: ApiAddress,
        runner: Runner,
        interval: float,
        delay: float,
        clock: Clock,
    ) -> None:
        self.name, self._client, self._runner = place.name, client, runner
        self._interval, self._delay, self._clock = interval, delay, clock
        self.host = Host(directory, place.name)
        self.machine = Machine(self.host, gpus=place.gpus, mounts=mounts)
        self._endpoint = endpoint
        self._kubelet = SimulatedKubelet(
            client,
            place.name,
            host=self.host,
            programs=folder(),
            endpoint=endpoint,
            labels=place.labels,
            gpus=place.gpus,
            heartbeat=HEARTBEAT,
            clock=clock,
        )

    async def run(self) -> None:
        """Play the node until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._kubelet.run())
            group.create_task(self._detect())

    async def _detect(self) -> None:
        """One node-problem-detector for each boot, as the DaemonSet's Pod is."""
        await asyncio.sleep(self._delay)
        while True:
            await self.host.up.wait()
            detecting = asyncio.ensure_future(self._detector().run())
            try:
                await self.host.down.wait()
            finally:
                detecting.cancel()
                await asyncio.wait({detecting})  # takes no notice of its cancellation, and would of ours

    def _detector(self) -> NodeProblemDetector:
        monitors = [
            self._monitor(folder() / "deploy/npd" / f"{name.replace('_', '-')}.json")
            for name in (*DETECTORS, "detector_stale")
        ]
        return NodeProblemDetector(
            self._client,
            self.name,
            monitors,
            env=self._environment(),
            heartbeat=HEARTBEAT,
            runner=self._runner,
            clock=self._clock,
        )

    def _environment(self) -> dict[str, str]:
        host, port = self._endpoint.address
        return {
            "NODE_NAME": self.name,
            "PATH": f"{self.host.bin}:{Path(sys.executable).parent}:/usr/bin:/bin",
            "KUBERNETES_SERVICE_HOST": host,
            "KUBERNETES_SERVICE_PORT": str(port),
            "TOKEN_DIR": str(self.host.directory / "token"),
            **self.machine.environment,
        }

    def _monitor(self, shipped: Path) -> Monitor:
        """A shipped file, pointed at this machine, and seconds where it has minutes."""
        arguments = self._arguments(shipped.stem.replace("-", "_"))
        monitor = Monitor.read(shipped, programs=folder())
        return monitor.with_(interval=self._interval, timeout=TIMEOUT, args=arguments)

    def _arguments(self, detector: str) -> list[str]:
        marks = [f"--detector={name}={STALE:g}" for name in DETECTORS]
        more = marks if detector == "detector_stale" else SHORT_TIMES.get(detector, ())
        return [*self.machine.detector_options(detector), *more]
