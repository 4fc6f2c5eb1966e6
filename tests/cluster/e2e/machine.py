"""A GPU machine: files that look like one, a scripted NVML, and a real node-problem-detector that dies with it."""

import asyncio
import json
import os
import sys
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from deploy.images.programs import binary
from remediator_sim.kubelet.host import SimulatedHost
from remediator_sim.kubelet.program import RunningProgram
from tests.detectors.node import Node, program_of

GPUS = 8
LOST = 3
SHIPPED = Path(__file__).resolve().parents[3] / "deploy/npd"
SECONDS = {"invoke_interval": "1s", "timeout": "20s"}
# The detectors besides detector_stale, each with what it is pointed at.
POINTED: dict[str, tuple[str, ...]] = {
    "gpu_ecc": ("proc", "sys"),
    "gpu_lost": ("proc", "sys", "dev"),
    "nfs_mount": ("proc",),
    "nfs_server": ("proc",),
    "unkillable_process": ("proc",),
}
# They run every second, so that an answer of NVML to the other, good for 20 seconds, would be all that they see.
ASKING = ("gpu_ecc", "gpu_lost")
# Its only process, and its only mount.
INIT = {"stat": "1 (systemd) S 0 1 1 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0\n"}
INIT["mountinfo"] = "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
XID = "NVRM: Xid (PCI:0000:13:00): 79, pid=1234, GPU has fallen off the bus."


class Machine(SimulatedHost):
    """A host with GPUs under a simulated kubelet. A reboot kills its detectors and mends its GPU.

    `detectors` are those that it runs, and detector_stale. While `services` is clear a booted machine waits before it
    starts them.
    """

    def __init__(self, directory: Path, name: str, library: Path, detectors: Collection[str]) -> None:
        files = directory.absolute() / "root"
        files.mkdir(parents=True)
        self.node = Node(files, library, GPUS)
        super().__init__(directory, name, down_time=0.5)
        (self.root / "proc/1").mkdir()
        for file, text in INIT.items():
            (self.root / "proc/1" / file).write_text(text)
        self.pointed = {name: parts for name, parts in POINTED.items() if name in detectors}
        self.services = asyncio.Event()
        self.services.set()
        self._boots = 0
        self._start: Callable[[], Any] | None = None
        self._detectors: RunningProgram | None = None
        self._serving: asyncio.Future[None] | None = None
        log = self.root / "var/log/kern.log"
        log.parent.mkdir(parents=True)
        log.touch()

    def lose_gpu(self) -> None:
        """From now on one GPU does not answer, and the kernel has said why."""
        with (self.root / "var/log/kern.log").open("a") as log:
            log.write(f"Nov 21 00:00:00 {self.name} kernel: {XID}\n")
        self.node.orders(f"gpu {LOST} error 15")

    async def start_detectors(self, url: str, kubeconfig: Path) -> None:
        """Run node-problem-detector for this machine, now and after each boot."""
        self._start = lambda: self._run_detectors(url, kubeconfig)
        await self._start()

    async def stop_detectors(self) -> None:
        """Kill them, and start none that were still to come."""
        if self._serving is not None:
            self._serving.cancel()
        if self._detectors is not None:
            await self._detectors.kill()

    async def boot_again(self) -> None:
        """Everything on the machine dies with it; the GPU is back on the bus afterwards."""
        await self.stop_detectors()
        await super().boot_again()
        self.node.orders()
        self._serving = asyncio.ensure_future(self._serve())

    async def _serve(self) -> None:
        await self.services.wait()
        if self._start is not None:
            await self._start()

    async def _run_detectors(self, url: str, kubeconfig: Path) -> None:
        configs = self._configs()
        command = [
            binary("node-problem-detector"),
            f"--hostname-override={self.name}",
            f"--apiserver-override={url}?inClusterConfig=false&auth={kubeconfig}",
            f"--config.custom-plugin-monitor={','.join(map(str, configs))}",
            "--prometheus-port=0",
            "--port=0",
            "--k8s-exporter-heartbeat-period=1s",
        ]
        # The detectors' first line asks for python3: ours has the real pynvml, which loads the scripted NVML.
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
        env = {"NODE_NAME": self.name, "PATH": path, **self.node.nvml.environment(self.node.library)}
        self._detectors = await RunningProgram.start(command, self.directory / "npd.log", env)

    def _configs(self) -> list[Path]:
        """The shipped configuration with this machine's paths, and seconds in place of minutes."""
        self._boots += 1
        # A folder for each boot, as memory file systems are: what still runs from the last boot cannot write into it.
        state = self.directory / f"state-{self._boots}"
        state.mkdir()
        seen = self.root / "run/remediator/detectors"
        seen.parent.mkdir(parents=True, exist_ok=True)
        seen.symlink_to(state)
        wanted = [f"{name.replace('_', '-')}.json" for name in (*self.pointed, "detector_stale")]
        return [self._config(SHIPPED / name, state) for name in wanted]

    def _config(self, shipped: Path, state: Path) -> Path:
        config = json.loads(shipped.read_text())
        config["pluginConfig"] |= SECONDS
        for rule in config["rules"]:
            program = program_of(rule)
            rule |= {"path": str(program), "timeout": "20s"}
            rule["args"] = [f"--state={state}", *self._arguments(program.stem)]
        path = self.directory / shipped.name
        path.write_text(json.dumps(config))
        return path

    def _arguments(self, detector: str) -> list[str]:
        if detector == "detector_stale":
            return [f"--proc={self.root / 'proc'}", *(f"--detector={name}=10" for name in self.pointed)]
        anew = ["--fresh=0"] if detector in ASKING else []
        return [*(f"--{part}={self.root / part}" for part in self.pointed[detector]), "--deadline=15", *anew]
