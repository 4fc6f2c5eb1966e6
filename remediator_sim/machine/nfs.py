"""An NFS server as far as anybody asks a simulated one: it answers RPC NULL over TCP, or is down."""

import asyncio
import struct
from collections.abc import Callable

CALL = struct.Struct(">10I")  # xid, CALL, RPC version, program, its version, procedure, two empty credentials
NFS_PROGRAM, NFS_VERSIONS = 100003, (3, 4)
SUCCESS, NO_PROGRAM, NO_VERSION = 0, 1, 2


class NfsServer:
    """A server on 127.0.0.1 with a port of its own, which it keeps from its first start on. Down until started.

    Each of `on_change` is called without arguments after it came up or went down.
    """

    def __init__(self) -> None:
        self.port = 0
        self.on_change: list[Callable[[], None]] = []
        self._server: asyncio.Server | None = None
        self._streams: set[asyncio.StreamWriter] = set()

    @property
    def address(self) -> str:
        """Where it listens."""
        return "127.0.0.1"

    @property
    def running(self) -> bool:
        """Whether it answers."""
        return self._server is not None

    async def start(self) -> "NfsServer":
        """Answer from now on; harmless while it runs."""
        if self._server is None:
            self._server = await asyncio.start_server(self._serve, self.address, self.port)
            self.port = self._server.sockets[0].getsockname()[1]
            self._tell()
        return self

    async def stop(self) -> None:
        """Be down: whoever connects is turned away, whoever is connected is cut off."""
        if self._server is not None:
            self._server.close()
            for stream in list(self._streams):
                stream.close()
            await self._server.wait_closed()
            self._server = None
            self._tell()

    async def __aenter__(self) -> "NfsServer":
        return await self.start()

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def _tell(self) -> None:
        for hear in self.on_change:
            hear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._streams.add(writer)
        try:
            while True:
                mark = int.from_bytes(await reader.readexactly(4), "big") & 0x7FFFFFFF
                writer.write(answer(await reader.readexactly(min(mark, 4096))))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, struct.error):
            pass
        finally:
            self._streams.discard(writer)
            writer.close()


def answer(call: bytes) -> bytes:
    """The reply to one RPC call of any procedure, with its record mark. Raises struct.error for what is no call."""
    xid, _, _, program, version = CALL.unpack(call[: CALL.size])[:5]
    known = NO_PROGRAM if program != NFS_PROGRAM else SUCCESS if version in NFS_VERSIONS else NO_VERSION
    versions = struct.pack(">2I", *NFS_VERSIONS) if known == NO_VERSION else b""
    body = struct.pack(">6I", xid, 1, 0, 0, 0, known) + versions
    return (0x80000000 | len(body)).to_bytes(4, "big") + body
