"""Where the commands of a page are tried: a folder like a checkout, an API server, a sick node, our own PATH."""

import asyncio
import json
import os
import shlex
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from remediator.app import Replica
from remediator.clock import SYSTEM
from remediator.kube.wire.client import Client
from remediator.kube.wire.transport import Transport
from remediator.settings import Settings
from remediator_sim.kubelet.host import SimulatedHost
from remediator_sim.machine import FaultKind, Machine, MachineFault, NfsServer
from remediator_sim.ports import free_ports
from tests.contract.docs import on_node
from tests.contract.docs.output import missing
from tests.contract.docs.pages import ROOT, Command, Recipe, filled
from tests.contract.docs.world import CASE, DETECTOR_POD, NODE
from tests.harness.waiting import until
from tests.remediator.kube.manifests.examples import manifest

SECONDS = 300.0
MARK = "\x1e"
STANDS_IN = ("kubectl", "remediator", "python3", "python")
FAULTS = (MachineFault(FaultKind.GPU_ECC, 3), MachineFault(FaultKind.MOUNT_STUCK, "/mnt/data"))
MACHINE_SEES = ("gpu_lost", "gpu_ecc", "nfs_mount", "nfs_server", "unkillable_process", "detector_stale")


class Ran(NamedTuple):
    """What came of one command: its exit code, and all that it printed on either stream."""

    code: int
    output: str


class Terminal:
    """Runs commands as a reader would, who has filled in what the pages leave open."""

    def __init__(self, folder: Path, kubeconfig: Path, machine: Machine, kubectl: Path | None) -> None:
        self.machine, self.words = machine, {"FILE": str(kubeconfig), "NAME": CASE, "NODE": NODE, "POD": DETECTOR_POD}
        self.work, bin_ = folder / "work", folder / "bin"
        self.port, self.extender = free_ports(2)
        _furnish(self.work)
        _install(bin_, folder / "setting.json", self._setting(kubectl, self.port))
        path = f"{bin_}{os.pathsep}{machine.host.bin}{os.pathsep}{os.environ['PATH']}"
        self.env = {
            "PATH": path,
            "HOME": str(folder),
            "KUBECONFIG": str(kubeconfig),
            "PYTHONPATH": str(ROOT),
            "HOST_ROOT": str(machine.host.root),
            "TERMINATION_LOG": str(folder / "termination-log"),
            "TERM": "dumb",
            "COLUMNS": "200",
        }

    async def play(self, commands: Sequence[Command]) -> list[Ran]:
        """Run commands one after the other in one shell; what came of each. The first that fails ends it."""
        script = "\n".join(f"{self._typed(one.text)}\nprintf '\\n{MARK}%s{MARK}\\n' \"$?\"" for one in commands)
        process = await asyncio.create_subprocess_exec(
            "bash",
            "-uc",
            script,
            cwd=self.work,
            env=self.env,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(SECONDS):
                told, _ = await process.communicate()
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        return self._read(told.decode(), len(commands))

    @asynccontextmanager
    async def answering(self, transport: Transport, wanted: bool) -> AsyncIterator[None]:
        """While open, the controller answers on our ports, where that is `wanted`."""
        if not wanted:
            yield
            return
        running = Replica(Client(transport), self._settings(), SYSTEM)
        task = asyncio.create_task(running.run())
        try:
            await until(lambda: task.done() or running.ready())
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    def _settings(self) -> Settings:
        return Settings(listen=f"127.0.0.1:{self.port}", listen_extender=f"127.0.0.1:{self.extender}")

    def _typed(self, text: str) -> str:
        if "lint" in text:
            text = filled(text, {"FILE…": "operations my-policy.yaml"})
        typed = filled(text, self.words).replace("localhost:8080", f"127.0.0.1:{self.port}")
        return typed.replace("localhost:8443", f"127.0.0.1:{self.extender}")

    def _read(self, told: str, count: int) -> list[Ran]:
        parts = told.split(MARK)
        found = [Ran(int(code), self._plain(text)) for text, code in zip(parts[::2], parts[1::2], strict=False)]
        return found if len(found) == count else [*found, Ran(-1, parts[-1])]

    def _plain(self, text: str) -> str:
        """The output with the places of this terminal as they are called where the page is read."""
        return text.strip("\n").replace(str(self.machine.host.root), "/host")

    def _setting(self, kubectl: Path | None, port: int) -> on_node.Setting:
        environment = {**self.machine.environment, "PARAMETERS": '{"probeSeconds": 0.5}'}
        options = {name: [*self.machine.detector_options(name)] for name in MACHINE_SEES}
        options["nfs_mount"] += ["--deadline=0.5"]
        return on_node.Setting(str(ROOT), str(self.machine.host.root), environment, options, str(kubectl or ""), port)


def _furnish(work: Path) -> None:
    """A folder that looks like a checkout; what commands write there goes with it."""
    work.mkdir()
    for path in ROOT.iterdir():
        if not path.name.startswith("."):
            (work / path.name).symlink_to(path)
    (work / "my-policy.yaml").write_text(json.dumps(manifest("RemediationPolicy", name="mine")))
    (work / "noc.yaml").symlink_to(ROOT / "tests/remediator/kube/manifests/noc.yaml")
    (work / "objects.yaml").symlink_to(ROOT / "tests/remediator/tickets/preview.yaml")
    (work / "gpu.md.j2").write_text("{{ headline }}")
    (work / "app.pem").write_text("as GitHub gave it")
    for name in ("chat.yaml", "slack-token", "pager-urls"):
        (work / name).write_text("as docs/chat.md says")


def _install(folder: Path, setting: Path, found: on_node.Setting) -> None:
    """The stand-ins; make only says what it would do."""
    folder.mkdir()
    setting.write_text(json.dumps(found._asdict()))
    for name in STANDS_IN:
        call = shlex.join([sys.executable, "-S", "-E", on_node.__file__, str(setting), name])
        _script(folder / name, f'exec {call} "$@"')
    _script(folder / "make", f'exec make -n PYTHON={sys.executable} "$@"', "PATH=${PATH#*:}\n")


def _script(path: Path, line: str, before: str = "") -> None:
    path.write_text(f"#!/bin/sh\n{before}{line}\n")
    path.chmod(0o755)


def check(recipe: Recipe, commands: Sequence[Command], ran: Sequence[Ran]) -> None:
    """Fail unless each command went well and printed what the page shows below it, or below them all."""
    for command, told in zip(commands, ran, strict=False):
        assert told.code == 0, f"{command.text}\n{told.output}"
        assert missing(command.output, told.output) == [], told.output
    assert len(ran) == len(commands)
    if len(commands) == len(recipe.commands):
        whole = "\n".join(told.output for told in ran)
        assert missing(recipe.output, whole) == [], whole


@asynccontextmanager
async def sick_node(folder: Path) -> AsyncIterator[Machine]:
    """gpu-17: GPU 3 waits for a reset, and the mount /mnt/data hangs though its server answers."""
    host = SimulatedHost(folder / NODE, NODE)
    async with NfsServer() as server:
        machine = Machine(host, mounts={"/mnt/data": server})
        for fault in FAULTS:
            machine.break_(fault)
        with host.powered():
            yield machine
