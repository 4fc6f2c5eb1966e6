"""Probes and metrics, served by every replica."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.openmetrics import exposition as openmetrics

from remediator.metrics import REGISTRY

OPEN_METRICS = "application/openmetrics-text"  # has exemplars; Prometheus asks for it by itself
NOT_FRESH, ENDING = "caches are not fresh", "this replica ends"


def application(
    functions: Mapping[str, Callable[[], bool]],
    measure: Callable[[], Awaitable[None]],
    remark: Callable[[], str] = str,
    ending: Callable[[], bool] = bool,
) -> web.Application:
    """/healthz while the loop turns, /metrics for Prometheus, and readiness.

    /readyz/FUNCTION tells of one function of the replica, while the caches are fresh that it needs; /readyz of all of
    them, with the remark. Once the replica is `ending` nothing is ready.
    """

    def missing(ready: Callable[[], bool]) -> str:
        return ENDING if ending() else "" if ready() else NOT_FRESH

    async def healthz(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def readyz(_: web.Request) -> web.Response:
        wrong = [f"{name}: {why}" for name, ready in functions.items() if (why := missing(ready))]
        lines = [*(wrong or ["ok"]), *filter(None, [remark()])]
        return web.Response(status=503 if wrong else 200, text="\n".join(lines) + "\n")

    async def readyz_of(request: web.Request) -> web.Response:
        ready = functions.get(request.match_info["function"])
        if ready is None:
            return web.Response(status=404, text=f"no such function here; there are {', '.join(functions)}\n")
        why = missing(ready)
        return web.Response(status=503 if why else 200, text=f"{why or 'ok'}\n")

    async def measured(*, is_open: bool) -> bytes:
        await measure()
        return await page(is_open=is_open)

    asked: dict[bool, asyncio.Task[bytes]] = {}

    async def metrics(request: web.Request) -> web.Response:
        is_open = OPEN_METRICS in request.headers.get("Accept", "")
        if is_open not in asked or asked[is_open].done():
            asked[is_open] = asyncio.create_task(measured(is_open=is_open))
        body = await asyncio.shield(asked[is_open])  # for all who ask meanwhile: many are as much work as one
        kind = openmetrics.CONTENT_TYPE_LATEST if is_open else CONTENT_TYPE_LATEST
        return web.Response(body=body, headers={"Content-Type": kind})

    app = web.Application()
    app.add_routes([web.get("/healthz", healthz), web.get("/metrics", metrics)])
    app.add_routes([web.get("/readyz", readyz), web.get("/readyz/{function}", readyz_of)])
    return app


async def page(*, is_open: bool = False) -> bytes:
    """What Prometheus reads. A thousand budgets take tenths of a second, in a thread: the loop turns meanwhile."""
    return await asyncio.to_thread(openmetrics.generate_latest if is_open else generate_latest, REGISTRY)
