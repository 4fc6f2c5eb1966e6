"""A connection whose watches say nothing for as long as a test wants: what stands on it answers from a stale cache."""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Any

from remediator.kube.wire.transport import Query, Reply, Stream, Transport


class LateNews:
    """Holds what watches of these paths say, of all where none is named, while `arrives` is not set."""

    def __init__(self, inner: Transport, paths: Collection[str] = ()) -> None:
        self._inner, self._paths, self.arrives = inner, paths, asyncio.Event()
        self.arrives.set()

    async def request(self, method: str, path: str, **asked: Any) -> Reply:
        """See Transport.request."""
        return await self._inner.request(method, path, **asked)

    @asynccontextmanager
    async def stream(self, path: str, *, query: Query = (), idle_timeout: float = 75.0) -> AsyncIterator[Stream]:
        """See Transport.stream."""
        async with self._inner.stream(path, query=query, idle_timeout=idle_timeout) as found:
            yield _Held(found, self.arrives) if not self._paths or path in self._paths else found

    async def close(self) -> None:
        """See Transport.close."""
        await self._inner.close()


class _Held:
    def __init__(self, stream: Stream, arrives: asyncio.Event) -> None:
        self.status, self.headers, self._stream, self._arrives = stream.status, stream.headers, stream, arrives

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            await self._arrives.wait()
            yield chunk
