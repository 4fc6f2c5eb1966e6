"""A loop in which time passes many times faster, and a thread beside it in which it does not."""

import asyncio
import selectors
import threading
import time
from collections.abc import Coroutine
from datetime import UTC, datetime
from typing import Any, TypeVar

from remediator.kube.wire.transport import Query, Reply, Transport

T = TypeVar("T")


class _Selector(selectors.DefaultSelector):
    """Waits for `faster` times less."""

    faster = 1.0

    def select(self, timeout: float | None = None) -> Any:
        return super().select(timeout and timeout / self.faster)


class HastyLoop(asyncio.SelectorEventLoop):
    """Time begins at 0; a second of it is over in 1/`faster` of a second. The clock on the wall is right."""

    def __init__(self, faster: float) -> None:
        self.faster, self._begun = faster, time.monotonic()
        selector = _Selector()
        selector.faster = faster
        super().__init__(selector)

    def time(self) -> float:
        return (time.monotonic() - self._begun) * self.faster

    def wall(self) -> datetime:
        """The time, aware UTC."""
        return datetime.now(UTC)


class Outside:
    """A thread with a loop of its own, for what has limits in real seconds: connections and processes."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="outside", daemon=True)
        self._thread.start()

    async def do(self, work: Coroutine[Any, Any, T]) -> T:
        """What comes of some work out there."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self.loop))

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """The same for whoever has no loop."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    def close(self) -> None:
        """End it."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


class OutsideTransport:
    """A transport whose connections live outside; it has no streams."""

    def __init__(self, outside: Outside, transport: Transport) -> None:
        self._outside, self._transport = outside, transport

    async def request(self, method: str, path: str, **options: Any) -> Reply:
        """See Transport.request."""
        return await self._outside.do(self._transport.request(method, path, **options))

    def stream(self, path: str, *, query: Query = (), idle_timeout: float = 75.0) -> Any:
        """There is none."""
        raise NotImplementedError

    async def close(self) -> None:
        """Its owner closes it."""
