"""The scheduler extender over HTTP. Every answer is 200, because kube-scheduler does not read the body of any other."""

from collections.abc import Awaitable, Callable

from aiohttp import web

from remediator.scheduler import metrics, protocol
from remediator.scheduler.extender import Extender

MOST_BYTES = 64 * 2**20
TOO_LARGE = f"the request is larger than {MOST_BYTES // 2**20} MiB; set nodeCacheCapable: true for this extender"


def routes(extender: Extender) -> list[web.RouteDef]:
    """POST /scheduler/filter and /scheduler/prioritize."""
    return [
        web.post("/scheduler/filter", _handler("filter", extender.filter, protocol.error(TOO_LARGE))),
        web.post("/scheduler/prioritize", _handler("prioritize", extender.prioritize, b"[]")),
    ]


def _handler(
    call: str, answer: Callable[[bytes], bytes], too_large: bytes
) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handle(request: web.Request) -> web.Response:
        body = await _body(request)
        if body is None:
            metrics.ANSWERS.labels(call, "too-large").inc()
        return web.Response(body=too_large if body is None else answer(body), content_type="application/json")

    return handle


async def _body(request: web.Request) -> bytes | None:
    """All of the body, whatever limit the application has; None where it is too large, and then read to its end."""
    chunks: list[bytes] = []
    size = 0
    async for chunk in request.content.iter_any():
        size += len(chunk)
        if size > MOST_BYTES:
            chunks.clear()
        else:
            chunks.append(chunk)
    return None if size > MOST_BYTES else b"".join(chunks)
