"""Where Alertmanager posts its alerts."""

import hmac
from collections.abc import Callable, Mapping

import structlog
from aiohttp import web

from remediator.tickets import metrics
from remediator.tickets.webhook.receiver import LATER_SECONDS, Receiver, Result

log = structlog.get_logger()
PATH = "/webhooks/alertmanager"
MOST_BYTES = 64 * 1024 * 1024
STATUS: Mapping[Result, int] = {Result.STORED: 200, Result.BAD: 400, Result.LATER: 503}


def routes(receiver: Receiver, token: Callable[[], str]) -> list[web.RouteDef]:
    """One route: 200 once the alerts are durable, 503 for "later", 400 for what is no payload of Alertmanager.

    `token()` is the bearer token that a post must carry, asked for each time so that it may be exchanged. While it is
    "" every post is refused: an open door to the tracker is worse than a late issue.
    """

    async def post(request: web.Request) -> web.Response:
        if not _may(request.headers.get("Authorization", ""), token().strip()):
            metrics.DELIVERIES.labels("unauthorized").inc()
            log.warning("alerts refused", why="missing or wrong bearer token", remote=request.remote)
            return web.Response(
                status=401,
                text="missing or wrong bearer token: set http_config.authorization of the receiver\n",
                headers={"WWW-Authenticate": "Bearer"},
            )
        body = await _body(request)
        if body is None:
            metrics.DELIVERIES.labels("too_large").inc()
            return web.Response(status=413, text=f"more than {MOST_BYTES} bytes: group by node\n")
        received = await receiver.receive(body)
        again = {"Retry-After": str(LATER_SECONDS)} if received.result is Result.LATER else {}
        return web.Response(status=STATUS[received.result], text=received.message + "\n", headers=again)

    return [web.post(PATH, post)]


def _may(header: str, token: str) -> bool:
    """Whether the header carries the token; takes as long for a wrong one as for the right one."""
    scheme, _, given = header.partition(" ")
    same = hmac.compare_digest(given.strip().encode(errors="replace"), token.encode())
    return same and bool(token) and scheme.lower() == "bearer"


async def _body(request: web.Request) -> bytes | None:
    """The whole body, None where it is too long; the application's own limit is for smaller things."""
    body = bytearray()
    async for chunk in request.content.iter_any():
        body += chunk
        if len(body) > MOST_BYTES:
            return None
    return bytes(body)
