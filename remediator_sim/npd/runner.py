"""Programs as node-problem-detector starts them: a process group of their own, two pipes, nothing on stdin."""

import asyncio
import os
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from io import FileIO
from typing import Protocol


class Running(Protocol):
    """A program that was started: the leader of its process group, and the read ends of its two pipes.

    Whoever was given it closes the pipes and calls `ended`.
    """

    pid: int
    stdout: FileIO
    stderr: FileIO

    async def ended(self) -> int:
        """Wait for the program itself, not for its children; the exit code, or minus the number of the signal.

        Until this is called the id stays taken, so that the group can be killed without hitting a stranger.
        """
        ...


class Runner(Protocol):
    """Something that starts programs."""

    async def start(self, words: Sequence[str], env: Mapping[str, str]) -> Running:
        """Start `words` in our working directory. Raises OSError where the kernel would not."""
        ...


class Processes:
    """Each run is a process of ours, by fork and exec."""

    async def start(self, words: Sequence[str], env: Mapping[str, str]) -> Running:
        """Start `words`."""
        return _Process(words, env)


class AtMost:
    """Runs at most `limit` programs at a time with another runner: so many share one small machine and end in time."""

    def __init__(self, runner: Runner, limit: int) -> None:
        self._runner, self._free = runner, asyncio.Semaphore(limit)

    async def start(self, words: Sequence[str], env: Mapping[str, str]) -> Running:
        """Start `words` once there is room."""
        await self._free.acquire()
        try:
            return _Counted(await self._runner.start(words, env), self._free)
        except BaseException:
            self._free.release()
            raise


class _Counted:
    """A program that makes room at its end."""

    def __init__(self, running: Running, free: asyncio.Semaphore) -> None:
        self._running, self._free = running, free
        self.pid, self.stdout, self.stderr = running.pid, running.stdout, running.stderr

    async def ended(self) -> int:
        """Wait for the program itself."""
        code = await self._running.ended()
        self._free.release()
        return code


class _Process:
    def __init__(self, words: Sequence[str], env: Mapping[str, str]) -> None:
        with Pipes() as pipes:
            self._process = subprocess.Popen(
                words,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=pipes.writers[0],
                stderr=pipes.writers[1],
                process_group=0,
            )
            self.stdout, self.stderr = pipes.keep()
        self.pid = self._process.pid

    async def ended(self) -> int:
        """Wait without a thread: a descriptor of the process becomes readable at its end."""
        descriptor = os.pidfd_open(self.pid)
        try:
            await readable(descriptor)
        finally:
            os.close(descriptor)
        return self._process.wait()


class Pipes:
    """Two pipes: the write ends are closed at the end of the block, the read ends too unless they were kept."""

    def __enter__(self) -> "Pipes":
        pairs = [os.pipe(), os.pipe()]
        self.readers, self.writers = ([pair[side] for pair in pairs] for side in (0, 1))
        return self

    def __exit__(self, *_: object) -> None:
        for descriptor in (*self.readers, *self.writers):
            os.close(descriptor)

    def keep(self) -> tuple[FileIO, FileIO]:
        """Take the read ends for stdout and stderr."""
        stdout, stderr = (FileIO(descriptor) for descriptor in self.readers)
        self.readers = []
        return stdout, stderr


async def readable(descriptor: int) -> None:
    """Wait until there is something to read."""
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    loop.add_reader(descriptor, ready.set_result, None)
    try:
        await ready
    finally:
        loop.remove_reader(descriptor)


async def head(pipe: FileIO, limit: int) -> bytes:
    """The first `limit` bytes of a pipe, once everyone has closed its other end; the rest is read and dropped."""
    loop = asyncio.get_running_loop()
    transport, reading = await loop.connect_read_pipe(lambda: _Head(limit), pipe)
    try:
        await reading.end
    finally:
        transport.close()
    return bytes(reading.read)


class _Head(asyncio.Protocol):
    def __init__(self, limit: int) -> None:
        self.read, self._limit = bytearray(), limit
        self.end: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def data_received(self, data: bytes) -> None:
        self.read += data[: self._limit - len(self.read)]

    def connection_lost(self, _: Exception | None) -> None:
        with suppress(asyncio.InvalidStateError):
            self.end.set_result(None)
