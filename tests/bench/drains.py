"""The drain program as a drain Pod starts it: one process for each node, so many at a time."""

import asyncio
import json
import resource
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from remediator_sim.kubelet.program import RunningProgram
from tests.bench import numbers

COMMAND = (sys.executable, "-I", "-S", Path(__file__).parents[2] / "operations" / "drain.py")
NAMESPACE, ACCOUNT, CASE_UID = "remediator-operations", "remediator-drain", "bench"
LOOK_SECONDS, END_SECONDS = 0.2, 600.0


class Access(NamedTuple):
    """How a drain Pod reaches the API server: its address, and the folder with the token that a kubelet mounts."""

    url: str
    folder: Path

    @classmethod
    def lay_out(cls, url: str, folder: Path, token: str, ca_file: Path) -> "Access":
        """Write the folder."""
        (folder / "token").write_text(token)
        (folder / "namespace").write_text(NAMESPACE)
        (folder / "ca.crt").write_bytes(ca_file.read_bytes())
        return cls(url, folder)

    def variables(self) -> dict[str, str]:
        """What the environment of the Pod says of it."""
        address = urlsplit(self.url)
        server = {"KUBERNETES_SERVICE_HOST": str(address.hostname), "KUBERNETES_SERVICE_PORT": str(address.port)}
        return {**server, "TOKEN_DIR": str(self.folder), "TERMINATION_LOG": "/dev/null"}


class Drained(NamedTuple):
    """All drains: seconds of each from its start to its end, their processor time together, MiB of the largest."""

    seconds: list[float]
    cpu_seconds: float
    memory: float


class Drains:
    """The processes. `access` says how they reach the API server; what they print goes to files beside the token."""

    def __init__(self, access: Access, at_once: int) -> None:
        self._access, self._places = access, asyncio.Semaphore(at_once)
        self._running: set[int] = set()
        self._memory = 0.0

    async def run(self, operations: Mapping[str, dict[str, Any]]) -> Drained:
        """Drain the nodes of `operations`, NodeOperations by node, at the shipped rate. Raises RuntimeError."""
        looks = asyncio.create_task(self._look())
        try:
            used = _children_seconds()
            seconds = await asyncio.gather(*(self._drain(*each) for each in operations.items()))
            return Drained(seconds, _children_seconds() - used, self._memory)
        finally:
            looks.cancel()

    async def start(self) -> float:
        """Seconds that a drain takes which has nothing to do: it starts, reads its orders and ends."""
        return await self._process("start", {"operation": "none", "operationUID": "none", "strategy": "None"})

    async def _drain(self, node: str, operation: Mapping[str, Any]) -> float:
        meta = operation["metadata"]
        async with self._places:
            return await self._process(node, {"operation": meta["name"], "operationUID": meta["uid"]})

    async def _process(self, node: str, orders: Mapping[str, str]) -> float:
        parameters = {"NODE_NAME": node, "PARAMETERS": json.dumps({**orders, "caseUID": CASE_UID})}
        began = time.perf_counter()
        process = await RunningProgram.start(
            COMMAND, self._access.folder / f"{node}.log", self._access.variables() | parameters
        )
        with self._looked_at(process.pid):
            code = await process.ended(END_SECONDS)
        if code:
            raise RuntimeError(f"the drain of {node} ended with {code}: {process.log_end()}")
        return time.perf_counter() - began

    @contextmanager
    def _looked_at(self, pid: int) -> Iterator[None]:
        self._running.add(pid)
        try:
            yield
        finally:
            self._running.discard(pid)

    async def _look(self) -> None:
        """Keep the largest memory that a drain has held."""
        while True:
            for pid in self._running:
                with suppress(OSError, KeyError):  # it has just ended
                    self._memory = max(self._memory, numbers.memory(pid)["peak"])
            await asyncio.sleep(LOOK_SECONDS)


def _children_seconds() -> float:
    """Processor time of all children that have ended and were waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
