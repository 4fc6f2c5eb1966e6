"""How one process reaches the API server, and what goes wrong on the way: by seed, for this process alone."""

import asyncio
import contextvars
import math
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from random import Random
from typing import Any

import msgspec

from remediator.kube.wire.errors import Unavailable
from remediator.kube.wire.transport import JSON, Query, Reply, Stream, Transport
from remediator_sim.simulation.clock import now

REASONS = {409: "Conflict", 429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable", 504: "Timeout"}
GONE = "the process is gone"
BROKE = "the connection broke"
DEAF = 150.0  # seconds in which two watches that hear nothing are given up
RECOVERY = 90.0  # seconds after which all watches are open again, back-off included


@dataclass(slots=True)
class WireFault:
    """What happens to the next `left` requests that match, up to the time `until`.

    `what`: "refuse" (answer `code`; a 429 says to come again after `seconds`), "lose" (done, no answer), "late" (done,
    the answer comes after `seconds`), "double" (done twice), "die-before" and "die-after" (the process dies at this
    request).
    """

    what: str
    left: int = 1
    until: float = float("inf")
    methods: tuple[str, ...] = ()
    part: str = ""
    code: int = 503
    seconds: float = 0.0
    share: float = 1.0

    def matches(self, method: str, path: str) -> bool:
        """Whether the request is one of those that it is meant for."""
        return self.left > 0 and (not self.methods or method in self.methods) and self.part in path


class Network:
    """What all processes share: whether the API server can be reached."""

    def __init__(self) -> None:
        self.away = False
        self.wires: list[Wire] = []

    def leave(self) -> None:
        """Let the API server go away."""
        self.away = True
        self.cut()

    def cut(self) -> None:
        """Break all watches."""
        for wire in self.wires:
            wire.cut_streams()

    def forget(self) -> None:
        """Break all watches; those that ask for what is yet to come hear nothing until they give that up."""
        for wire in self.wires:
            wire.cut_streams()
            wire.troubled(DEAF)


class Wire:
    """A Transport around another one. `die` is called where a fault kills the process, `wrote` at each write.

    With the path, `wrote` is told when the write was asked for.
    """

    def __init__(self, inner: Transport, network: Network, chance: Random, die: Callable[[], None]) -> None:
        self._inner, self._network, self._chance, self._die = inner, network, chance, die
        self.wrote: Callable[[str, float], None] = lambda path, asked: None
        self.dead = self.away = False
        self.faults: list[WireFault] = []
        self.streams: list[_WireStream] = []
        self._troubled = now()
        network.wires.append(self)

    def kill(self) -> None:
        """From now on nothing goes out and nothing comes in."""
        self.dead = True
        self.cut_streams()
        self._network.wires.remove(self)

    def troubled(self, seconds: float) -> None:
        """For so long from now on something is wrong."""
        self._troubled = now() + seconds

    def clear(self) -> bool:
        """Whether all that the server says arrives at once, on every watch, for a while now."""
        calm = now() > self._troubled + RECOVERY and not self.away
        return calm and not any(stream.silent or stream.lag for stream in self.streams)

    def part(self, away: bool) -> None:
        """Let this process alone not reach the server, or reach it again."""
        self.away = away
        self.cut_streams()

    def cut_streams(self, part: str = "") -> None:
        """Break the watches whose path holds `part`."""
        self._troubled = now()
        for stream in self.streams:
            if part in stream.path:
                stream.cut()

    def silence(self, part: str) -> None:
        """Let nothing more arrive on the open watches whose path holds `part`: half-open connections."""
        for stream in self.streams:
            if part in stream.path:
                stream.silent = True

    def hold_back(self, part: str, seconds: float) -> None:
        """Let what arrives on the open watches whose path holds `part` come late."""
        for stream in self.streams:
            if part in stream.path:
                stream.lag = seconds

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
        try:
            return await self._carry(method, path, query, body, content_type, accept, now() + timeout)
        except TimeoutError:
            raise Unavailable(0, "", f"no answer within {timeout} s") from None

    async def _carry(
        self, method: str, path: str, query: Query, body: bytes, content_type: str, accept: str, until: float
    ) -> Reply:
        asked = now()
        fault = self._meet(method, path)
        await self._travel(until)
        if fault and fault.what == "refuse":
            return _refusal(fault)
        if fault and fault.what == "die-before":
            self._die()
            self._check()
        if method != "GET":
            self.wrote(path, asked)
        for _ in range(2 if fault and fault.what == "double" else 1):
            reply = await self._inner.request(
                method, path, query=query, body=body, content_type=content_type, accept=accept, timeout=math.inf
            )
        if fault and fault.what == "die-after":
            self._die()
        if fault and fault.what == "late":
            await _wait(fault.seconds, until)
        await self._travel(until)
        if fault and fault.what == "lose":
            raise Unavailable(0, "", BROKE)
        return reply

    def _meet(self, method: str, path: str) -> WireFault | None:
        if not self.faults:
            return None
        fault = next(
            (planned for planned in self.faults if planned.until >= now() and planned.matches(method, path)), None
        )
        self._troubled = now() if fault else self._troubled
        if fault is None or self._chance.random() >= fault.share:
            return None
        fault.left -= 1
        self.faults = [planned for planned in self.faults if planned.left > 0]
        return fault

    async def _travel(self, until: float = math.inf) -> None:
        self._check()
        await _wait(0.001 + 0.009 * self._chance.random(), until)
        self._check()

    def _check(self) -> None:
        if self.dead:
            raise Unavailable(0, "", GONE)
        if self._network.away or self.away:
            raise Unavailable(0, "", BROKE)

    @asynccontextmanager
    async def stream(self, path: str, *, query: Query = (), idle_timeout: float = 75.0) -> AsyncIterator[Stream]:
        """See Transport.stream."""
        await self._travel()
        async with self._inner.stream(path, query=query, idle_timeout=math.inf) as inner:
            stream = _WireStream(inner, _place(path, query), idle_timeout)
            self.streams.append(stream)
            try:
                yield stream
            finally:
                self.streams.remove(stream)

    async def close(self) -> None:
        """See Transport.close."""


class _WireStream:
    """A watch that can be cut, silenced and held back."""

    def __init__(self, inner: Stream, path: str, idle_timeout: float) -> None:
        self._inner, self.path, self._idle_timeout = inner, path, idle_timeout
        self.status, self.headers = inner.status, inner.headers
        self.silent, self.lag, self._cut = False, 0.0, False
        self._until, self._expired = math.inf, False
        self._reader: asyncio.Task[Any] | None = None  # who waits for a chunk
        self._alarm: asyncio.TimerHandle | None = None
        self._context = contextvars.copy_context()

    status: int
    headers: Mapping[str, str]

    def cut(self) -> None:
        """Break it."""
        self._cut, self._until = True, now()
        asyncio.get_running_loop().call_soon(self._expire)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        chunks = aiter(self._inner)
        self._until = now() + self._idle_timeout
        try:
            while not self._cut:
                try:
                    chunk = await self._next(chunks)
                except StopAsyncIteration:
                    return
                if not self.silent:
                    self._until = now() + self._idle_timeout
                    yield chunk
            raise Unavailable(0, "", BROKE)
        finally:
            if self._alarm is not None:
                self._alarm.cancel()

    async def _next(self, chunks: AsyncIterator[bytes]) -> bytes:
        """The next chunk. Raises Unavailable where it comes too late."""
        self._watch_over()
        self._reader, self._expired = asyncio.current_task(), False
        try:
            chunk = await anext(chunks)
            if self.lag:
                await asyncio.sleep(self.lag)
            return chunk
        except asyncio.CancelledError:
            if self._expired and self._reader is not None and not self._reader.uncancel():
                why = BROKE if self._cut else f"silent for {self._idle_timeout} s"
                raise Unavailable(0, "", why) from None
            raise
        finally:
            self._reader = None

    def _watch_over(self) -> None:
        """One alarm for many chunks: a timer for each, which hardly ever rings, would cost as much as the chunk."""
        if self._alarm is None:
            self._alarm = asyncio.get_running_loop().call_at(self._until, self._ring, context=contextvars.Context())

    def _ring(self) -> None:
        """Look whether the alarm is true; what comes of it is a turn of the process that reads."""
        self._alarm = None
        if now() < self._until:
            self._watch_over()
        else:
            asyncio.get_running_loop().call_soon(self._expire, context=self._context)

    def _expire(self) -> None:
        if self._reader is not None and not self._expired and now() >= self._until:
            self._expired = True
            self._reader.cancel()


async def _wait(seconds: float, until: float) -> None:
    """Sleep; raises TimeoutError at the time `until`, or at once where a process that was frozen wakes after it.

    A timer for each request, which hardly ever rings, would cost as much as the way itself.
    """
    time = asyncio.get_running_loop().time
    await asyncio.sleep(min(seconds, until - time()))
    if time() >= until:
        raise TimeoutError


def _place(path: str, query: Query) -> str:
    """The path, and what of its objects is watched."""
    return path + "?" + "&".join(value for key, value in query if key in ("labelSelector", "fieldSelector"))


def _refusal(fault: WireFault) -> Reply:
    code = fault.code
    reason = REASONS.get(code, "")
    body = {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": "refused on the way"}
    headers = {"retry-after": str(int(fault.seconds))} if code == 429 else {}
    return Reply(code, msgspec.json.encode(body), headers)
