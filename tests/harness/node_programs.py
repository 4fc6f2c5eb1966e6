"""Programs of nodes, run to their end: forked from one fork server, or as processes of their own."""

import asyncio
import atexit
import os
import signal
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import NamedTuple

from remediator_sim.npd import ForkServer, Processes, Runner
from remediator_sim.npd.runner import head

OUTPUT_LIMIT = 1 << 20  # bytes of each stream
SECONDS = 90.0  # a program that asks a silent BMC for as long as it may takes 62


class Finished(NamedTuple):
    """A program that has ended: its exit code, what it wrote to standard output and to standard error."""

    code: int
    out: str
    err: str


def run(words: Sequence[str], env: Mapping[str, str] | None = None, *, forked: bool = True) -> Finished:
    """Run one program, blocking until it has ended; not `forked`, as the kernel starts it. `env`: ours if None.

    Raises TimeoutError after a minute, and OSError where the file cannot be started.
    """
    return _shared().run(words, os.environ if env is None else env, forked=forked)


@cache
def _shared() -> "ForkedPrograms":
    programs = ForkedPrograms()
    atexit.register(programs.close)
    return programs


class ForkedPrograms:
    """Runs programs that begin with "#!/usr/bin/env -S python3 -I -S" by fork, in a tenth of an interpreter's start."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._fork_server, self._processes = ForkServer(), Processes()
        self._thread = threading.Thread(target=self._loop.run_forever, name="forked programs", daemon=True)
        self._thread.start()

    def run(self, words: Sequence[str], env: Mapping[str, str], *, forked: bool = True) -> Finished:
        """Run one program, blocking until it has ended."""
        runner = self._fork_server if forked else self._processes
        return asyncio.run_coroutine_threadsafe(_finish(runner, words, env), self._loop).result()

    def close(self) -> None:
        """End the fork server and what still runs in it."""
        asyncio.run_coroutine_threadsafe(self._fork_server.close(), self._loop).result(SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _finish(runner: Runner, words: Sequence[str], env: Mapping[str, str]) -> Finished:
    running = await runner.start(words, env)
    try:
        async with asyncio.timeout(SECONDS):
            out, err = await asyncio.gather(head(running.stdout, OUTPUT_LIMIT), head(running.stderr, OUTPUT_LIMIT))
            code = await running.ended()
    except BaseException:
        with suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)
        await running.ended()
        raise
    return Finished(code, out.decode(), err.decode())
