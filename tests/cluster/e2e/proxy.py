"""A proxy between one controller and the API server: it counts what the controller changes, and cuts in."""

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
from aiohttp import web
from yarl import URL

from tests.cluster.keys import Keys

HOST = "127.0.0.1"
CHANGING = ("POST", "PUT", "PATCH", "DELETE")
OBJECT = re.compile(r"/(api|apis/[^/]+)/[^/]+(/namespaces/[^/]+)?/(?P<plural>[^/]+)(/[^/]+(?P<sub>/[^/]+)?)?")
OF_ONE_CONNECTION = ("host", "connection", "keep-alive", "transfer-encoding", "content-length", "upgrade")


@dataclass
class Mutation:
    """One request that changes something; `status` is 0 until it is answered.

    `number` counts from 1 over all controllers, `nth` those of the same verb on the same resource.
    """

    number: int
    nth: int
    method: str
    path: str
    body: Any
    status: int = 0

    def is_to(self, method: str, plural: str) -> bool:
        """Whether it is this verb on this resource."""
        return self.method == method and plural in self.path.split("/")

    @property
    def what(self) -> str:
        """The verb and the resource, whatever the object's name."""
        return sort(self.method, self.path)

    def __str__(self) -> str:
        return f"{self.number}: {self.method} {self.path} {self.status}"


@dataclass
class Cut:
    """Do `act` once, at the first request that `at` chooses: before it is sent on, or before its answer is."""

    at: Callable[[Mutation], bool]
    act: Callable[[Mutation], Awaitable[None]]
    before: bool = False


@dataclass
class Tape:
    """What went to the server, in order, and the cuts still to be made; each waits for the one before it."""

    mutations: list[Mutation] = field(default_factory=list)
    cuts: list[Cut] = field(default_factory=list)

    def expect(self, method: str, path: str, body: Any) -> Mutation:
        """The next request, as it will stand on the tape."""
        before = [one for one in self.mutations if one.what == sort(method, path)]
        return Mutation(len(self.mutations) + 1, len(before) + 1, method, path, body)

    async def cut(self, mutation: Mutation, *, before: bool) -> None:
        """Make the next cut if this is its place."""
        if self.cuts and self.cuts[0].before is before and self.cuts[0].at(mutation):
            await self.cuts.pop(0).act(mutation)

    def find(self, method: str, plural: str, chosen: Callable[[Any], bool] = lambda body: True) -> list[Mutation]:
        """Accepted requests of this verb on this resource whose body is `chosen`."""
        found = [one for one in self.mutations if one.is_to(method, plural) and 200 <= one.status < 300]
        return [one for one in found if chosen(one.body)]


class Proxy:
    """Carries every request on, word for word, until it is `severed`. `url` is where the controller reaches it."""

    def __init__(self, server_url: str, ca_file: Path, tape: Tape) -> None:
        self.url, self.severed = "", False
        self._server_url, self._tape = server_url, tape
        self._upstream = ssl.create_default_context(cafile=str(ca_file))

    @asynccontextmanager
    async def listening(self, keys: Keys) -> AsyncIterator["Proxy"]:
        """Listen on loopback with a certificate of `keys`."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*keys.issue("proxy", addresses=[HOST]))
        app = web.Application(client_max_size=2**26)
        app.router.add_route("*", "/{path:.*}", self._handle)
        # A watch whose client has gone ends at once; a change that was sent goes on.
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
        await runner.setup()
        connector = aiohttp.TCPConnector(ssl=self._upstream, limit=0)
        try:
            async with aiohttp.ClientSession(connector=connector, auto_decompress=False) as self._session:
                await web.TCPSite(runner, HOST, 0, ssl_context=context).start()
                self.url = f"https://{HOST}:{runner.addresses[0][1]}"
                yield self
        finally:
            await runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        try:
            if counts(request.method, request.path):
                return await asyncio.shield(self._change(request, body))
            return await self._pass_on(request, body)
        except (aiohttp.ClientError, ConnectionError):
            return self._drop(request)

    async def _change(self, request: web.Request, body: bytes) -> web.StreamResponse:
        """A request that counts: cut before it, number it, send it, cut after it."""
        tape = self._tape
        told = msgspec.json.decode(body) if body else None
        mutation = tape.expect(request.method, request.path, told)
        await tape.cut(mutation, before=True)
        if self.severed:
            return self._drop(request)
        now = tape.expect(request.method, request.path, told)  # others may have gone first
        mutation.number, mutation.nth = now.number, now.nth
        tape.mutations.append(mutation)
        async with self._asked(request, body) as answer:
            said = await answer.read()
        mutation.status = answer.status
        await tape.cut(mutation, before=False)
        if self.severed:
            return self._drop(request)
        return web.Response(status=answer.status, body=said, headers=kept(answer.headers))

    async def _pass_on(self, request: web.Request, body: bytes) -> web.StreamResponse:
        """Anything else, its answer as it comes: a watch has no end."""
        if self.severed:
            return self._drop(request)
        async with self._asked(request, body) as answer:
            response = web.StreamResponse(status=answer.status, headers=kept(answer.headers))
            response.enable_chunked_encoding()
            await response.prepare(request)
            async for chunk in answer.content.iter_any():
                await response.write(chunk)
            await response.write_eof()
        return response

    def _asked(self, request: web.Request, body: bytes) -> Any:
        url = URL(f"{self._server_url}{request.raw_path}", encoded=True)
        limits = aiohttp.ClientTimeout(total=None, sock_connect=5)
        return self._session.request(
            request.method, url, data=body or None, headers=kept(request.headers), timeout=limits
        )

    @staticmethod
    def _drop(request: web.Request) -> web.Response:
        if request.transport is not None:
            request.transport.abort()
        return web.Response()


def counts(method: str, path: str) -> bool:
    """Whether a request changes what a case is made of; leases and events are only about it."""
    return method in CHANGING and not {"leases", "events"} & set(path.split("/"))


def sort(method: str, path: str) -> str:
    """The verb and the resource of a request, with its subresource.

    >>> sort("PATCH", "/api/v1/nodes/gpu-17/status")
    'PATCH nodes/status'
    """
    found = OBJECT.fullmatch(path)
    assert found, path
    return f"{method} {found['plural']}{found['sub'] or ''}"


def kept(headers: Mapping[str, str]) -> list[tuple[str, str]]:
    """The headers that do not belong to one connection."""
    return [(name, value) for name, value in headers.items() if name.lower() not in OF_ONE_CONNECTION]
