"""Probes and metrics, served by every replica."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from remediator.metrics import REGISTRY
from remediator.settings import address


def application(
    ready: Callable[[], bool], measure: Callable[[], None], remark: Callable[[], str] = str
) -> web.Application:
    """/healthz while the loop turns, /readyz while the caches are fresh, with the remark, /metrics for Prometheus."""

    async def healthz(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def readyz(_: web.Request) -> web.Response:
        said = f"ok\n{remark()}\n".replace("\n\n", "\n")
        return web.Response(text=said) if ready() else web.Response(status=503, text="caches are not fresh\n")

    async def metrics(_: web.Request) -> web.Response:
        measure()
        return web.Response(body=generate_latest(REGISTRY), headers={"Content-Type": CONTENT_TYPE_LATEST})

    app = web.Application()
    app.add_routes([web.get("/healthz", healthz), web.get("/readyz", readyz), web.get("/metrics", metrics)])
    return app


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
