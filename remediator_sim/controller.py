"""The controller as it runs in production, a process: how it is called, started, killed and started again."""

import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from remediator_sim.kubelet.program import RunningProgram
from remediator_sim.ports import free_port

LEASE_SECONDS = 2.0
COMMAND = (sys.executable, "-m", "remediator")
ANY_PORT = "127.0.0.1:0"


def run_command(
    kubeconfig: Path, options: Sequence[str] = (), command: Sequence[str] = COMMAND, listen: str = ANY_PORT
) -> list[str]:
    """The words of `remediator run`; `command` is what comes before `run`, `options` come last."""
    return [*command, "run", "--kubeconfig", str(kubeconfig), "--listen", listen, *options]


async def start_controller(
    kubeconfig: Path,
    name: str,
    log: Path,
    options: Sequence[str] = (),
    command: Sequence[str] = COMMAND,
    listen: str = ANY_PORT,
    lease: float = LEASE_SECONDS,
) -> RunningProgram:
    """One replica; `name` is who it is in the lease, which lasts `lease` seconds."""
    named = ["--name", name, "--lease-seconds", str(lease), *options]
    return await RunningProgram.start(run_command(kubeconfig, named, command, listen), log)


class ControllerProcess:
    """One process after another under new names, always reached at the same `url`."""

    def __init__(self, command: Sequence[str], kubeconfig: Path, options: Sequence[str], log: Path) -> None:
        self._command, self._kubeconfig, self._options, self._log = command, kubeconfig, options, log
        self._listen, self._number = f"127.0.0.1:{free_port()}", 0
        self.url = f"http://{self._listen}"
        self._program: RunningProgram | None = None

    @property
    def name(self) -> str:
        """Who the present process is in the lease."""
        return f"controller-{self._number}"

    @property
    def ended(self) -> bool:
        """Whether the present process has ended, which nobody asked for."""
        return self._program is not None and self._program.code is not None

    def log_end(self) -> str:
        """The end of what it wrote, for a person who wonders why it ended."""
        return self._program.log_end() if self._program is not None else ""

    async def start(self) -> None:
        """One more process."""
        self._number += 1
        self._program = await start_controller(
            self._kubeconfig, self.name, self._log, self._options, self._command, self._listen
        )

    async def kill(self) -> None:
        """SIGKILL: no goodbye, no cleaning up."""
        if self._program is not None:
            await self._program.kill()

    async def stop(self) -> None:
        """SIGTERM, and SIGKILL where that is not enough."""
        if self._program is None:
            return
        self._program.signal(signal.SIGTERM)
        try:
            await self._program.ended(5.0)
        except TimeoutError:
            await self._program.kill()
