"""The API server's address inside a node: what connects to it there is led to the real one on loopback."""

import asyncio
import ctypes
import os
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

CLONE_NEWNET = 0x40000000
CHUNK = 1 << 16


class Relay:
    """`with Relay(pid, (address, port), target)`: listens at the address in the network namespace of process `pid`."""

    def __init__(self, pid: int, address: tuple[str, int], target: tuple[str, int]) -> None:
        self._target = target
        with ThreadPoolExecutor(1) as other:  # a thread that enters a namespace stays there: it ends with the call
            self._socket = other.submit(_listening, pid, address).result()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name=f"relay of {pid}", daemon=True)

    def __enter__(self) -> "Relay":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._lead, sock=self._socket))
        self._loop.run_forever()
        server.close()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._loop.close()

    async def _lead(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.CancelledError):  # cancelled, it is over, and nobody waits to hear so
            there, back = await asyncio.open_connection(*self._target)
            await asyncio.gather(_copy(reader, back), _copy(there, writer))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One direction, to its end."""
    try:
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass  # either side may hang up
    finally:
        writer.close()


def _listening(pid: int, address: tuple[str, int]) -> socket.socket:
    libc = ctypes.CDLL(None, use_errno=True)
    namespace = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        if libc.setns(namespace, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"the network namespace of process {pid} cannot be entered")
        return socket.create_server(address)
    finally:
        os.close(namespace)
