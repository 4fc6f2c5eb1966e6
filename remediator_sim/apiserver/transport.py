"""The transport that reaches the embedded server without a network."""

import asyncio
import math
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from urllib.parse import unquote

from remediator.kube.wire.errors import Unavailable
from remediator.kube.wire.transport import JSON, Query, Reply, Stream
from remediator_sim.apiserver.dispatch import ApiDispatcher, Request, Response


class MemoryTransport:
    """The verbs of remediator.kube.wire.transport.Transport, straight into a dispatcher."""

    def __init__(self, dispatcher: ApiDispatcher, user: str) -> None:
        self._dispatcher = dispatcher
        self._headers = {"accept": JSON, "authorization": f"Bearer {user}"}

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Query = (),
        body: bytes = b"",
        content_type: str = JSON,
        accept: str = JSON,
        timeout: float = 30.0,
    ) -> Reply:
        """See Transport.request."""
        headers = {**self._headers, "content-type": content_type, "accept": accept}
        asked = Request(method, _decoded(path), query, headers, body)
        try:
            if timeout == math.inf:
                return await self._answer(asked)
            async with asyncio.timeout(timeout):
                return await self._answer(asked)
        except TimeoutError:
            raise Unavailable(0, "", f"no answer within {timeout} s") from None

    async def _answer(self, asked: Request) -> Reply:
        answer = await self._dispatcher.handle(asked)
        whole = await _whole(answer)
        # A request always lets others run, as it would over a network.
        await asyncio.sleep(0)
        return Reply(answer.status, whole, answer.headers)

    @asynccontextmanager
    async def stream(self, path: str, *, query: Query = (), idle_timeout: float = 75.0) -> AsyncIterator[Stream]:
        """See Transport.stream."""
        await asyncio.sleep(0)
        answer = await self._dispatcher.handle(Request("GET", _decoded(path), query, self._headers))
        try:
            yield _MemoryStream(answer, idle_timeout)
        finally:
            if answer.watch is not None:
                answer.watch.close()

    async def close(self) -> None:
        """See Transport.close: there is nothing to close."""


class _MemoryStream:
    """An answer read chunk by chunk."""

    def __init__(self, answer: Response, idle_timeout: float) -> None:
        self.status = answer.status
        self.headers: Mapping[str, str] = answer.headers
        self._idle_timeout = idle_timeout
        self._chunks = aiter(answer.watch) if answer.watch is not None else _once(answer.body)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._chunks if self._idle_timeout == math.inf else self._timed()

    async def _timed(self) -> AsyncIterator[bytes]:
        """The chunks, none of which may let wait for too long."""
        while True:
            try:
                async with asyncio.timeout(self._idle_timeout):
                    chunk = await anext(self._chunks)
            except StopAsyncIteration:
                return
            except TimeoutError:
                raise Unavailable(0, "", f"silent for {self._idle_timeout} s") from None
            yield chunk


def _decoded(path: str) -> str:
    return unquote(path) if "%" in path else path


async def _whole(answer: Response) -> bytes:
    """The whole body; that of a watch when it has ended."""
    if answer.watch is None:
        return answer.body
    try:
        return b"".join([chunk async for chunk in answer.watch])
    finally:
        answer.watch.close()


async def _once(body: bytes) -> AsyncIterator[bytes]:
    yield body
