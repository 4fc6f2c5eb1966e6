"""The bare extender in Go of `go_extender/`, built and run beside ours: what HTTP and JSON take by themselves."""

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from remediator_sim.ports import free_ports
from tests.cluster.control_plane import HOST

SOURCE = Path(__file__).parent / "go_extender"
READY_SECONDS = 30.0


class GoExtender(NamedTuple):
    """Where it answers, and its process."""

    url: str
    pid: int


@asynccontextmanager
async def running() -> AsyncIterator[GoExtender]:
    """It answers until the block is left. Needs Go on PATH; nothing is downloaded."""
    (port,) = free_ports(1)
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / SOURCE.name
        environment = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly"}
        build = ["go", "build", "-trimpath", "-o", str(program), "."]
        built = await asyncio.create_subprocess_exec(*build, cwd=SOURCE, env=environment)
        assert await built.wait() == 0, "Go's own words stand above"
        process = await asyncio.create_subprocess_exec(program, f"{HOST}:{port}")
        try:
            await _answers(port)
            yield GoExtender(f"http://{HOST}:{port}", process.pid)
        finally:
            process.terminate()
            await process.wait()


async def _answers(port: int) -> None:
    async with asyncio.timeout(READY_SECONDS):
        while True:
            with suppress(OSError):
                _, writer = await asyncio.open_connection(HOST, port)
                writer.close()
                return
            await asyncio.sleep(0.05)
