"""Programs run as processes of ours, ended with us however we end."""

import asyncio
import ctypes
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None) if sys.platform == "linux" else None


def die_with_parent() -> None:
    """Run in a new child: the kernel kills it when its parent ends, however that ends. Linux only; else nothing."""
    if _libc is not None:
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class RunningProgram:
    """A running process; what it says goes to `log`."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self._process, self.log = process, log

    @classmethod
    async def start(
        cls, command: Sequence[str | Path], log: Path, env: Mapping[str, str] | None = None
    ) -> "RunningProgram":
        """Start it in a session of its own; `env` is added to ours."""
        with log.open("ab") as output:
            process = await asyncio.create_subprocess_exec(
                *map(str, command),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, **(env or {})},
                start_new_session=True,
                preexec_fn=die_with_parent,
            )
        return cls(process, log)

    @property
    def pid(self) -> int:
        """Its process id, which is also that of its session."""
        return self._process.pid

    @property
    def code(self) -> int | None:
        """How it ended; None while it runs."""
        return self._process.returncode

    def written(self) -> str:
        """All it has written so far."""
        return self.log.read_text(errors="replace")

    def log_end(self, lines: int = 15) -> str:
        """The last lines that it has written, for a person who wonders why it ended."""
        return "\n".join(self.written().splitlines()[-lines:])

    def signal(self, number: signal.Signals) -> None:
        """Send one signal; nothing happens after its end."""
        with suppress(ProcessLookupError):
            self._process.send_signal(number)

    async def kill(self) -> int:
        """SIGKILL, and wait; the exit code."""
        self.signal(signal.SIGKILL)
        return await self._process.wait()

    async def ended(self, seconds: float) -> int:
        """Wait for its end by itself; the exit code. Raises TimeoutError."""
        return await asyncio.wait_for(self._process.wait(), seconds)


async def output(*command: str | Path) -> str:
    """What a program prints, both streams, when run to its end. Raises RuntimeError where it fails."""
    process = await asyncio.create_subprocess_exec(
        *map(str, command), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    printed, _ = await process.communicate()
    if process.returncode:
        raise RuntimeError(f"{command[0]} ended with {process.returncode}: {printed.decode()}")
    return printed.decode()
