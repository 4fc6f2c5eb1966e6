"""Probes and metrics, served by every replica."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from remediator.metrics import REGISTRY
from remediator.settings import address

NOT_FRESH = "caches are not fresh"


def application(
    functions: Mapping[str, Callable[[], bool]],
    measure: Callable[[], Awaitable[None]],
    remark: Callable[[], str] = str,
) -> web.Application:
    """/healthz while the loop turns, /metrics for Prometheus, and readiness.

    /readyz/FUNCTION tells of one function of the replica, while the caches are fresh that it needs; /readyz of all of
    them, with the remark.
    """

    async def healthz(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def readyz(_: web.Request) -> web.Response:
        missing = [f"{name}: {NOT_FRESH}" for name, ready in functions.items() if not ready()]
        lines = [*(missing or ["ok"]), *filter(None, [remark()])]
        return web.Response(status=503 if missing else 200, text="\n".join(lines) + "\n")

    async def readyz_of(request: web.Request) -> web.Response:
        ready = functions.get(request.match_info["function"])
        if ready is None:
            return web.Response(status=404, text=f"no such function here; there are {', '.join(functions)}\n")
        return web.Response(text="ok\n") if ready() else web.Response(status=503, text=f"{NOT_FRESH}\n")

    async def metrics(_: web.Request) -> web.Response:
        await measure()
        return web.Response(body=await page(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    app = web.Application()
    app.add_routes([web.get("/healthz", healthz), web.get("/metrics", metrics)])
    app.add_routes([web.get("/readyz", readyz), web.get("/readyz/{function}", readyz_of)])
    return app


async def page() -> bytes:
    """What Prometheus reads. A thousand budgets take tenths of a second, in a thread: the loop turns meanwhile."""
    return await asyncio.to_thread(generate_latest, REGISTRY)


@asynccontextmanager
async def served(app: web.Application, listen: str) -> AsyncIterator[None]:
    """Serve on host:port until left. Raises OSError, for a person to read, where that cannot be had."""
    where = address(listen)
    assert where is not None, listen  # Settings has seen to it
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await _bound(web.TCPSite(runner, *where), listen)
        yield
    finally:
        await runner.cleanup()


async def _bound(site: web.TCPSite, listen: str) -> None:
    try:
        await site.start()
    except OSError as error:
        why = error.strerror or error
        raise OSError(f"--listen {listen}: {why}; name an address of this machine with a free port") from error
