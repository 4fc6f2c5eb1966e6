"""Endpoints on loopback, with certificates of an authority of their own, and sockets that talk to them."""

import asyncio
import os
import ssl
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import cache

from aiohttp import web

from remediator.web import certificates
from remediator.web.caller import Anybody, Callers
from remediator.web.listener import ConnectionLimits, Endpoint
from remediator.web.serving import Pem, PemOrigins, context, served_names
from tests.cluster.control_plane import HOST

NOW = datetime.now(UTC)
HOUR = timedelta(hours=1)


@cache
def authority() -> Mapping[str, bytes]:
    """What a Secret of ours holds, good for loopback."""
    made = certificates.renewed({}, served_names("remediator-system"), NOW)
    assert made is not None
    return made


def server_context(*, token: bool = False) -> ssl.SSLContext:
    """What an endpoint serves with."""
    found = authority()
    places = PemOrigins("tls.crt", "tls.key", "ca.crt")
    return context(Pem(found["tls.crt"], found["tls.key"], found["ca.crt"].decode(), places), token=token)


@cache
def caller_context(name: str = "", newest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> ssl.SSLContext:
    """What a caller trusts, and, where it has a name, what it shows."""
    made = showing(authority(), name)
    made.maximum_version = newest
    return made


def showing(secret: Mapping[str, bytes], name: str = "") -> ssl.SSLContext:
    """What a caller trusts who has this Secret, and what it shows under this name."""
    return _trusting(secret, certificates.for_caller(secret, name, HOUR, NOW) if name else {})


def context_of_another(name: str) -> ssl.SSLContext:
    """It trusts us, and shows a certificate of this name from an authority that is not ours."""
    other = certificates.renewed({}, [], NOW)
    assert other is not None
    return _trusting(authority(), certificates.for_caller(other, name, HOUR, NOW))


def server_as_caller() -> ssl.SSLContext:
    """It shows our own certificate, which is for servers."""
    return _trusting(authority(), authority())


def _trusting(secret: Mapping[str, bytes], shown: Mapping[str, bytes]) -> ssl.SSLContext:
    made = ssl.create_default_context(cadata=secret["ca.crt"].decode())
    if shown:
        with os.fdopen(os.memfd_create("caller"), "wb") as file:
            file.write(shown["tls.crt"] + shown["tls.key"])
            file.flush()
            made.load_cert_chain(f"/proc/self/fd/{file.fileno()}")
    return made


@asynccontextmanager
async def served(
    routes: Iterable[web.RouteDef],
    *,
    limits: ConnectionLimits = ConnectionLimits(),  # noqa: B008
    callers: Callers | None = None,
    tls: Callable[[], ssl.SSLContext | None] | None = None,
    open_to_all: bool = False,
) -> AsyncIterator[tuple[Endpoint, int]]:
    """An endpoint and its port; everybody may ask where nothing else is said, with `open_to_all` as a stranger."""
    app = web.Application()
    app.add_routes(routes)
    endpoint = Endpoint("extender", app, limits, None if open_to_all else callers or Anybody(), tls)
    async with endpoint.served(f"{HOST}:0") as port:
        yield endpoint, port


ELSEWHERE = "127.0.0.2"  # on this machine, too, but another address


async def connected(port: int, sent: bytes = b"", tls: ssl.SSLContext | None = None, at: str = HOST) -> "Talk":
    """A connection from an address over which something was sent."""
    reader, writer = await asyncio.open_connection(
        HOST, port, ssl=tls, server_hostname=HOST if tls else None, local_addr=(at, 0)
    )
    writer.write(sent)
    return Talk(reader, writer)


class Talk:
    """One side of a connection, byte by byte."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def ended(self) -> bytes:
        """All that comes until the other side ends it."""
        try:
            return await self.reader.read()
        except (ConnectionError, ssl.SSLError):
            return b""
        finally:
            self.writer.transport.abort()

    def end(self) -> None:
        """Without a word."""
        self.writer.transport.abort()
