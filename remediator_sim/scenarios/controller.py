"""The controller of the demo: the process that runs in production, started, killed and started again."""

import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

from remediator_sim.kubelet.program import Program

LEASE_SECONDS = 2.0
COMMAND = (sys.executable, "-m", "remediator")


def free_port() -> int:
    """A port of loopback that nobody listens on now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class ControllerProcess:
    """`remediator run`, one process after another under new names, always reached at the same `url`.

    `command` is what comes before `run`; `options` are added to it.
    """

    def __init__(self, command: Sequence[str], options: Sequence[str], log: Path) -> None:
        self._command, self._log, self._number = command, log, 0
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self._options = [*options, "--listen", f"127.0.0.1:{port}", "--lease-seconds", str(LEASE_SECONDS)]
        self._program: Program | None = None

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
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-15:])

    async def start(self) -> None:
        """One more process."""
        self._number += 1
        words = [*self._command, "run", *self._options, "--name", self.name]
        self._program = await Program.start(words, self._log)

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
