"""One port: TLS, who may ask, and how many connections callers may hold.

A connection begins as a stranger's, and becomes a caller's when a request on it was let in. Strangers are few and have
seconds, and one of an address that has many gives way to a new one: connections that are held, or made without end,
keep nobody out who comes from elsewhere.
"""

import asyncio
import logging
import os
import ssl
from asyncio import sslproto
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from socket import IPPROTO_TCP, TCP_USER_TIMEOUT, socket
from typing import Any

from aiohttp import hdrs, web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.typedefs import Handler

from remediator.metrics import CALLS_REFUSED
from remediator.settings import address
from remediator.web.broken_off import forget_broken_off
from remediator.web.caller import Callers
from remediator.web.stranger import StrangerReader, hold_at_most

READ_BYTES = 2**16  # of a body that nobody asks for yet
AT_ONCE, WAITING = 4, 128  # connections that a turn of the loop takes, some of its milliseconds, and that may wait
STOP_SECONDS = 5.0
UNREAD_MILLISECONDS = 10_000  # who does not take an answer does not keep it
TRUST: web.AppKey[Callable[[web.Request], None]] = web.AppKey("trust", Callable[[web.Request], None])  # type: ignore[arg-type]
Context = Callable[[], ssl.SSLContext | None]
# So much is read in a turn of the loop of a connection with TLS, or to an endpoint that lets everybody ask. asyncio
# reads 256 KiB, and has a buffer of that size for each TLS connection, which one whose handshake failed keeps until it
# is collected. All strangers of an endpoint may send chunks of a byte in the same turn.
TURN_BYTES = 2**13
CALLER_BYTES = 2**16  # of a caller's TLS connection: the names of 5,000 nodes in two turns rather than thirteen
sslproto.SSLProtocol.max_size = TURN_BYTES


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Most connections, strangers among them; seconds that a stranger has, and that a caller's connection may idle."""

    connections: int = 64
    strangers: int = 16
    first_seconds: float = 5.0
    idle_seconds: float = 75.0


class Endpoint:
    """What is served on one port.

    `callers`: who may ask; None lets everybody, and then every connection stays a stranger's, which has as many seconds
    again after each request. `context()`: the TLS of a
    new connection, None while there is no certificate, and then nobody comes in; None instead of it: no TLS.
    """

    def __init__(
        self,
        name: str,
        app: web.Application,
        limits: ConnectionLimits,
        callers: Callers | None = None,
        context: Context | None = None,
    ) -> None:
        self.limits, self.context, self.handlers = limits, context, _nobody
        self.open_to_all = callers is None
        self._name, self._app, self._callers = name, app, callers
        self._open: dict[Any, ServedConnection] = {}  # by socket, oldest first
        app.middlewares[:0] = [forget_broken_off, self._admit]  # before `trust`, which is what counts
        app[TRUST] = self.trust

    @asynccontextmanager
    async def served(self, listen: str, option: str = "--listen") -> AsyncIterator[int]:
        """Serve on host:port until left; gives the port. Raises OSError, for a person to read, where it cannot."""
        runner = web.AppRunner(
            self._app,
            access_log=None,
            logger=self._logger(),
            shutdown_timeout=STOP_SECONDS,
            keepalive_timeout=self.limits.idle_seconds,
            auto_decompress=False,
            lingering_time=1.0,  # what is too large is answered while it is still being sent
            read_bufsize=READ_BYTES,
            max_headers=64,
        )
        await runner.setup()
        try:
            assert runner.server is not None
            self.handlers = runner.server
            listening = await _bound(lambda: ServedConnection(self), listen, option)
            try:
                yield listening.sockets[0].getsockname()[1]
            finally:
                listening.close()
        finally:
            for connection in self._open.values():
                connection.give_up()
            await runner.cleanup()

    def _logger(self) -> logging.Logger:
        """What fails in our own code is said; what strangers send is counted: they may send it without end."""

        def ours(record: logging.LogRecord) -> bool:
            error = record.exc_info[1] if record.exc_info else None
            if isinstance(error, (HttpProcessingError, web.RequestPayloadError)):
                self.refused("malformed")
                return False
            return not isinstance(error, ConnectionError)  # who asked is gone

        logger = logging.Logger(f"remediator.web.{self._name}")
        logger.addFilter(ours)
        return logger

    # --- connections -------------------------------------------------------------------------------------------------

    @property
    def connections(self) -> int:
        """How many are open, also those that have not agreed on TLS."""
        return len(self._forget_closed())

    def opens(self, raw: Any, connection: "ServedConnection") -> bool:
        """Whether there is room for one more; a stranger makes some."""
        strangers = [held for held in self._forget_closed().values() if not held.known]
        if len(strangers) >= min(self.limits.strangers, self.limits.connections - len(self._open) + len(strangers)):
            self.refused("full")
            if not strangers:
                return False
            _gives_way(strangers, connection.address).end()
        self._open[raw] = connection
        return True

    def late(self, connection: "ServedConnection") -> None:
        """It has had the seconds of a stranger."""
        if connection.known or connection.ended:
            return
        if connection.asked:
            connection.asked = False
            self.wait_for(connection)
        else:
            self.refused("too-slow")
            connection.end()

    def wait_for(self, connection: "ServedConnection") -> None:
        """Give it the seconds of a stranger, from now on."""
        if connection.timer is not None:
            connection.timer.cancel()
        connection.timer = asyncio.get_running_loop().call_later(self.limits.first_seconds, self.late, connection)

    def refused(self, why: str) -> None:
        """Count it."""
        CALLS_REFUSED.labels(self._name, why).inc()

    def _forget_closed(self) -> "dict[Any, ServedConnection]":
        """A timer would keep what has ended for seconds, and Python's collector then for a day (collector.py)."""
        for raw in [raw for raw, held in self._open.items() if held.ended]:
            if (timer := self._open.pop(raw).timer) is not None:
                timer.cancel()
        return self._open

    # --- requests ----------------------------------------------------------------------------------------------------

    def trust(self, request: web.Request) -> None:
        """For what lets readers in by itself: this connection is a caller's until its answer is made."""
        if connection := self._open.get(request.get_extra_info("socket")):
            connection.asked, connection.known = True, True

    @web.middleware
    async def _admit(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Before anything of the body is read: who asks, and in which form."""
        if self._callers is not None and not self._callers.may(request):
            self.refused("unauthorized")
            return await self._last(request, 401, self._callers.wanted, {"WWW-Authenticate": "Bearer"})
        if request.headers.get("Content-Encoding", "identity").lower() != "identity":
            self.refused("encoding")
            return await self._last(request, 415, "send the body without Content-Encoding")
        if self.open_to_all and hdrs.TRANSFER_ENCODING in request.headers:  # a chunk may have one byte
            self.refused("encoding")
            return await self._last(request, 411, "send the body with Content-Length, not in chunks")
        if connection := self._open.get(request.get_extra_info("socket")):
            connection.asked, connection.known = True, False
            if self.open_to_all:
                return await self._answered(connection, handler(request))
            connection.let_in()
        return await handler(request)

    async def _answered(
        self, connection: "ServedConnection", answer: Awaitable[web.StreamResponse]
    ) -> web.StreamResponse:
        """Where everybody may ask, who was trusted while an answer was made has the seconds of a stranger after it."""
        try:
            return await answer
        finally:
            if connection.known:
                connection.known = False
                self.wait_for(connection)

    async def _last(
        self, request: web.Request, status: int, text: str, headers: dict[str, str] | None = None
    ) -> web.Response:
        answer = web.Response(status=status, text=text + "\n", headers=headers)
        connection = self._open.get(request.get_extra_info("socket"))
        stranger = connection is not None and not connection.known
        await last(request, answer, connection.reader if connection is not None and stranger else None)
        return answer


class ServedConnection(asyncio.Protocol):
    """One connection until TLS is agreed on; then aiohttp's handler has it, and we only know how to end it."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.known, self.asked, self.address = False, False, ""
        self.timer: asyncio.TimerHandle | None = None  # until it is late
        self.reader: StrangerReader | None = None  # of what it sends until it is known
        self._endpoint = endpoint
        self._raw: asyncio.Transport | None = None
        self._early = bytearray()
        self._agreeing: asyncio.Task[None] | None = None

    @property
    def ended(self) -> bool:
        """Whether nothing goes over it any more."""
        return self._raw is None or self._raw.is_closing()

    def end(self) -> None:
        """At once, whatever it is about."""
        if self._raw is not None:
            self._raw.abort()

    def let_in(self) -> None:
        """It is a caller's from now on."""
        protocol = self._raw.get_protocol() if self._raw is not None else None
        if isinstance(protocol, sslproto.SSLProtocol):
            vars(protocol)["max_size"] = CALLER_BYTES  # asyncio has no other way
        self.known = True

    def give_up(self) -> None:
        """Agree on nothing more."""
        if self._agreeing is not None and not self._agreeing.done():
            self._agreeing.cancel()
            self.end()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Somebody connects."""
        assert isinstance(transport, asyncio.Transport)
        self._raw, self.address = transport, str((transport.get_extra_info("peername") or ("",))[0])
        if self._endpoint.open_to_all:
            hold_at_most(transport, TURN_BYTES)
        raw = transport.get_extra_info("socket")
        raw.setsockopt(IPPROTO_TCP, TCP_USER_TIMEOUT, UNREAD_MILLISECONDS)
        if not self._endpoint.opens(raw, self):
            self.end()
            return
        self._endpoint.wait_for(self)
        context = self._endpoint.context
        if context is None:
            self._hand_over(transport)
        else:
            transport.pause_reading()
            self._agreeing = asyncio.get_running_loop().create_task(self._agree(transport, context()))

    def data_received(self, data: bytes) -> None:
        """What a caller sends with the end of its handshake."""
        self._early += data

    async def _agree(self, raw: asyncio.Transport, context: ssl.SSLContext | None) -> None:
        secured = None
        if context is not None and not raw.is_closing():
            seconds = self._endpoint.limits.first_seconds
            try:
                secured = await asyncio.get_running_loop().start_tls(
                    raw, self, context, server_side=True, ssl_handshake_timeout=seconds
                )
            except OSError as error:  # it speaks no TLS, shows a certificate of nobody, or is gone
                error.__traceback__ = None  # its frames hold it again: all of TLS would wait for the collector
                self._endpoint.refused("no-tls")
        if secured is None or raw.is_closing():
            self.end()
        else:
            self._hand_over(secured)

    def _hand_over(self, transport: asyncio.Transport) -> None:
        handler, early = self._endpoint.handlers(), bytes(self._early)
        self._early.clear()
        if not self._endpoint.open_to_all:
            self.reader = StrangerReader(transport, handler, lambda: self.known, self._say_too_much)
            self.reader.begin(early)
            return
        transport.set_protocol(handler)
        handler.connection_made(transport)
        if early:
            handler.data_received(early)

    def _say_too_much(self) -> None:
        self._endpoint.refused("unauthorized")
        self.end()


def _gives_way(strangers: "list[ServedConnection]", newcomer: str) -> "ServedConnection":
    """The oldest stranger of the address that has most of them: who comes from elsewhere is not driven out by many."""
    counts = Counter([newcomer, *(stranger.address for stranger in strangers)])
    crowd = max((counts[stranger.address], -place) for place, stranger in enumerate(strangers))
    return strangers[-crowd[1]]


def _nobody() -> asyncio.Protocol:
    raise RuntimeError("not served")


async def last(request: web.Request, answer: web.StreamResponse, reader: StrangerReader | None = None) -> None:
    """An answer after which the connection ends, whatever is still sent: reading it would be work for nothing."""
    answer.force_close()
    await answer.prepare(request)
    await answer.write_eof()
    left = (request.content_length or 0) - request.content.total_bytes
    if reader is not None and left > 0:
        await reader.drop(left)
    request.protocol.force_close()


async def _bound(made: Callable[[], asyncio.Protocol], listen: str, option: str) -> asyncio.Server:
    where = address(listen)
    assert where is not None, listen  # Settings has seen to it
    try:
        listening = await asyncio.get_running_loop().create_server(made, *where, backlog=AT_ONCE)
    except OSError as error:
        why = error.strerror or error
        raise OSError(f"{option} {listen}: {why}; name an address of this machine with a free port") from error
    for taken in listening.sockets:  # so many are taken in a turn of the loop, and more may wait
        with socket(fileno=os.dup(taken.fileno())) as waiting:
            waiting.listen(WAITING)
    return listening
