"""A runner for many nodes on one machine: Python programs are forked from one process, the fork server."""

import asyncio
import contextlib
import errno
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from io import FileIO
from pathlib import Path
from typing import Any, Self

from remediator_sim.npd.runner import Pipes, Processes, Running, readable

PROGRAM = Path(__file__).parents[1] / "forkserver" / "server.py"
PACKET = 1 << 16


class ForkServer:
    """Starts Python programs by fork from an interpreter that has started, for a tenth of the time; all others by exec.

    A program is for us where its first line asks for python3 with -S and -E or -I, and nothing else that changes how it
    runs; whichever python3 that is, it runs in this process's interpreter. Use `async with ForkServer() as runner`, in
    one event loop, for all nodes. Its process starts with the first program, and again should it ever die; it and all
    that runs in it ends with us, even by SIGKILL.
    """

    def __init__(self) -> None:
        self._exec = Processes()
        self._server: _Server | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def start(self, words: Sequence[str], env: Mapping[str, str]) -> Running:
        """Start `words`."""
        if self._server is None or self._server.lost:
            await self.close()
            self._server = _Server()
        with Pipes() as pipes:
            answer = await self._server.start(words, env, pipes.writers)
            if "errno" in answer:
                raise OSError(answer["errno"], os.strerror(answer["errno"]), words[0])
            if "pid" in answer:
                return _Forked(self._server, answer["pid"], *pipes.keep())
        return await self._exec.start(words, env)

    async def close(self) -> None:
        """End the server and all that runs in it."""
        if self._server is not None:
            server, self._server = self._server, None
            await server.close()


class _Forked:
    def __init__(self, server: "_Server", pid: int, stdout: FileIO, stderr: FileIO) -> None:
        self._server, self.pid, self.stdout, self.stderr = server, pid, stdout, stderr

    async def ended(self) -> int:
        """Wait for the program itself."""
        return await self._server.ended(self.pid)


class _Server:
    """The server's process, seen from outside."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            command = [sys.executable, "-I", "-S", str(PROGRAM), str(theirs.fileno()), str(os.getpid())]
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        ours.setblocking(False)
        self.lost = False
        self._socket, self._sending, self._number = ours, asyncio.Lock(), 0
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._ends: dict[int, asyncio.Future[int]] = {}
        asyncio.get_running_loop().add_reader(ours, self._hear)

    async def start(self, words: Sequence[str], env: Mapping[str, str], streams: Sequence[int]) -> dict[str, Any]:
        """What the server answers to the wish to run `words`. Raises OSError where it is gone."""
        self._number += 1
        path, *args = words
        asked = {"run": self._number, "path": path, "args": args, "env": dict(env), "cwd": str(Path.cwd())}
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._answers[self._number] = answer
        try:
            await self._send(asked, streams)
        except OSError:
            self._lose()
        try:
            return await answer
        except asyncio.CancelledError:
            if answer.done() and not answer.cancelled() and "pid" in answer.result():
                self._abandon(answer.result()["pid"])  # it was answered and cancelled in one turn of the loop
            raise

    async def ended(self, pid: int) -> int:
        """The exit code of a program that was started, or minus its signal; may be asked again after a cancel."""
        if pid not in self._ends:
            self._ends[pid] = asyncio.get_running_loop().create_future()
            if self.lost:
                return -signal.SIGKILL
            try:
                await self._send({"wait": pid})
            except OSError:
                self._lose()
            except asyncio.CancelledError:
                del self._ends[pid]  # it was not asked; whoever asks again must
                raise
        code = await asyncio.shield(self._ends[pid])
        self._ends.pop(pid, None)
        return code

    async def close(self) -> None:
        """End it, and wait until it is gone."""
        self._lose()
        descriptor = os.pidfd_open(self._process.pid)
        try:
            await readable(descriptor)
        finally:
            os.close(descriptor)
        self._process.wait()

    async def _send(self, asked: Mapping[str, Any], streams: Sequence[int] = ()) -> None:
        packet = json.dumps(asked).encode()
        async with self._sending:
            while not self.lost:
                try:
                    socket.send_fds(self._socket, [packet], streams)
                except BlockingIOError:
                    await _writable(self._socket)
                else:
                    return
        raise BrokenPipeError(errno.EPIPE, "the fork server is gone")

    def _hear(self) -> None:
        """Hand out all answers that have come."""
        while not self.lost:
            try:
                packet = self._socket.recv(PACKET)
            except BlockingIOError:
                return
            except OSError:
                packet = b""
            if packet:
                self._take(json.loads(packet))
            else:
                self._lose()

    def _take(self, message: dict[str, Any]) -> None:
        if "ended" in message:
            _settle(self._ends.get(message["ended"]), message["code"])
        elif not _settle(self._answers.pop(message["run"]), message) and "pid" in message:
            self._abandon(message["pid"])

    def _abandon(self, pid: int) -> None:
        """End a program that was started for someone who has gone."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        asyncio.ensure_future(self.ended(pid))  # noqa: RUF006  nobody waits for it, the socket keeps it

    def _lose(self) -> None:
        """The server is gone, or is to go; everything that it has started goes with it."""
        if self.lost:
            return
        self.lost = True
        asyncio.get_running_loop().remove_reader(self._socket)
        self._socket.close()
        for answer in self._answers.values():
            _settle(answer, {"errno": errno.EPIPE})
        for end in self._ends.values():
            _settle(end, -signal.SIGKILL)


def _settle(future: "asyncio.Future[Any] | None", value: Any) -> bool:
    """Whether someone still waited for this value."""
    if future is None or future.done():
        return False
    future.set_result(value)
    return True


async def _writable(asked: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    loop.add_writer(asked, ready.set_result, None)
    try:
        await ready
    finally:
        loop.remove_writer(asked)
