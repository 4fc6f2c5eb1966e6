"""How long the loop of a process does not turn, and what it does then.

A turn is what the loop does between two looks at its sockets: nobody is answered meanwhile. It is measured in time of
the processor, so that others who use the machine change nothing; what the server in the same process takes, and the
collector of garbage in it, is counted apart.
"""

import asyncio
import gc
import selectors
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from remediator.kube.wire.transport import Query, Reply, Stream
from remediator_sim.apiserver.transport import MemoryTransport

SAMPLE_EVERY = 0.005  # seconds of processor time between two looks at what runs
CHUNK = 64 * 1024  # what a socket gives at once
FRAME = ("kube/runtime/queue.py", "controller/run.py", "controller/changes.py")  # below them is what takes the time


@dataclass
class Meter:
    """What has been measured since `reset`: seconds of processor time."""

    turns: int = 0
    longest: float = 0.0
    where: str = ""
    total: float = 0.0
    collected: float = 0.0  # the longest pause of the collector
    server: float = 0.0  # in this turn: what is not the product's
    in_flight: int = 0
    samples: Counter[str] = field(default_factory=Counter)

    def reset(self) -> None:
        """Measure anew."""
        self.turns, self.longest, self.where, self.total, self.collected = 0, 0.0, "", 0.0, 0.0
        self.samples = Counter()

    def turned(self, seconds: float) -> None:
        """A turn of the loop is over."""
        own = max(0.0, seconds - self.server)
        self.turns, self.total = self.turns + 1, self.total + own
        samples, self.samples = self.samples, Counter()  # a signal may add one at any time: not to what is counted here
        if own > self.longest:
            self.longest = own
            self.where = ", ".join(name for name, _ in samples.most_common(3))
        self.server = 0.0


class _Selector(selectors.DefaultSelector):
    """Tells the meter of each turn: it ends where the loop looks at its sockets again."""

    meter: Meter
    began = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.meter.turned(time.thread_time() - self.began)
        try:
            return super().select(timeout)
        finally:
            self.began = time.thread_time()


def measured_loop(meter: Meter) -> asyncio.AbstractEventLoop:
    """A loop whose turns are measured, in the main thread."""
    selector = _Selector()
    selector.meter, selector.began = meter, time.thread_time()
    _sample(meter)
    _watch_collector(meter)
    return asyncio.SelectorEventLoop(selector)


def _sample(meter: Meter) -> None:
    """Note now and then which functions of the product run."""

    def look(_: int, frame: FrameType | None) -> None:
        names: dict[str, None] = {}
        innermost = frame.f_code.co_qualname if frame else ""
        while frame is not None:
            code = frame.f_code
            module = code.co_filename.rpartition("/remediator/")[2]
            if "/remediator/" in code.co_filename and module not in FRAME:
                names[f"{module} {code.co_qualname}"] = None
            frame = frame.f_back
        meter.samples.update(names.keys() or [innermost])

    signal.signal(signal.SIGPROF, look)
    signal.setitimer(signal.ITIMER_PROF, SAMPLE_EVERY, SAMPLE_EVERY)


def _watch_collector(meter: Meter) -> None:
    began = 0.0

    def collected(phase: str, _: Mapping[str, Any]) -> None:
        nonlocal began
        if phase == "start":
            began = time.thread_time()
        else:
            meter.collected = max(meter.collected, time.thread_time() - began)

    gc.callbacks.append(collected)


class MeasuredTransport:
    """The verbs of a transport: what the server does in this process is not counted, streams come in pieces."""

    def __init__(self, transport: MemoryTransport, meter: Meter) -> None:
        self._transport, self._meter = transport, meter
        inner = transport._dispatcher.handle

        async def handle(request: Any) -> Any:
            began = time.thread_time()
            try:
                return await inner(request)
            finally:
                meter.server += time.thread_time() - began

        transport._dispatcher.handle = handle  # type: ignore[method-assign]

    async def request(self, method: str, path: str, **options: Any) -> Reply:
        """See Transport.request."""
        self._meter.in_flight += 1
        try:
            return await self._transport.request(method, path, **options)
        finally:
            self._meter.in_flight -= 1

    @asynccontextmanager
    async def stream(self, path: str, *, query: Query = (), idle_timeout: float = 75.0) -> AsyncIterator[Stream]:
        """See Transport.stream."""
        async with self._transport.stream(path, query=query, idle_timeout=idle_timeout) as stream:
            yield _Pieces(stream, self._meter)

    async def close(self) -> None:
        """See Transport.close."""


class _Pieces:
    """A stream as a socket gives it: a piece of it, and others may run."""

    def __init__(self, stream: Stream, meter: Meter) -> None:
        self._stream, self._meter = stream, meter
        self.status, self.headers = stream.status, stream.headers

    async def __aiter__(self) -> AsyncIterator[bytes]:
        chunks = aiter(self._stream)
        while True:
            turn, began = self._meter.turns, time.thread_time()
            try:
                chunk = await anext(chunks)
            except StopAsyncIteration:
                return
            if self._meter.turns == turn:  # the server made it, and nobody else ran
                self._meter.server += time.thread_time() - began
            for at in range(0, len(chunk), CHUNK):
                yield chunk[at : at + CHUNK]
                await asyncio.sleep(0)
