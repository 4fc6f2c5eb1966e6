"""The fake that listens on loopback."""

import asyncio
from collections.abc import Iterable
from typing import Self

from aiohttp import web

from remediator.clock import SYSTEM, Clock
from remediator_sim.github.memory import PREFIX, MemoryGitHub
from remediator_sim.github.pages import Pages

_LARGEST_BODY = 4 * 2**20


class FakeGitHub(MemoryGitHub):
    """GitHub on 127.0.0.1, for the length of an `async with`; it raises at its end where `broken` holds anything.

    Args: as MemoryGitHub, and `port`: 0 takes a free one.
    """

    def __init__(
        self,
        repositories: Iterable[str],
        users: Iterable[str] = (),
        *,
        bot: str = "remediator[bot]",
        clock: Clock = SYSTEM,
        port: int = 0,
    ) -> None:
        super().__init__(repositories, users, bot=bot, clock=clock)
        self._port, self._closing = port, asyncio.Event()

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=_LARGEST_BODY)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self._port).start()
        self._stand_at(f"http://127.0.0.1:{self._runner.addresses[0][1]}")
        self._pages = Pages(self._store, self._github.projects)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._closing.set()
        await self._runner.cleanup()
        if self._dispatcher.broken and kind is None:
            raise AssertionError("\n".join(["GitHub's description forbids answers of this fake:", *self.broken]))

    async def _handle(self, http: web.Request) -> web.StreamResponse:
        if not http.path.startswith((PREFIX + "/", "/api/graphql")):
            return self._pages.serve(http.method, http.path)
        reply = self.serve(http.method, http.raw_path, http.headers, await http.read())
        if reply.silent:
            await self._closing.wait()
        if (reply.cut or reply.silent) and http.transport is not None:
            http.transport.abort()
            return web.Response()
        kind = {"content-type": "application/json; charset=utf-8"} if reply.body else {}
        return web.Response(status=reply.status, body=reply.body, headers=kind | reply.headers)
