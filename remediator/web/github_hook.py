"""Where GitHub posts that somebody has commented, signed with a secret that both know."""

import hashlib
import hmac
from collections.abc import Callable, Mapping

import structlog
from aiohttp import web

from remediator.tickets import metrics
from remediator.tickets.commands.hint import Heard, Hints
from remediator.web.body import Bodies, NotTaken, Why

log = structlog.get_logger()
PATH = "/webhooks/github"
MOST, SECONDS = 2**20, 10.0  # GitHub tells of a comment, its issue and the repository in less
SIGNATURE, EVENT = "X-Hub-Signature-256", "X-GitHub-Event"
STATUS: Mapping[Heard, int] = {Heard.RECEIVED: 200, Heard.IGNORED: 200, Heard.BAD: 400, Heard.LATER: 503}


def bodies() -> Bodies:
    """What is taken at once."""
    return Bodies("github", MOST, 4 * MOST, SECONDS)


def is_signed(body: bytes, header: str, secret: str) -> bool:
    """Whether whoever knows the secret has signed the body: HMAC-SHA256, compared in constant time."""
    wanted = "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(header.encode(errors="replace"), wanted.encode()) and bool(secret)


def routes(hints: Hints, secret: Callable[[], str], taken: Bodies) -> list[web.RouteDef]:
    """One route. `secret` is read each time; while it is "", or cannot be read, nobody is believed."""

    async def post(request: web.Request) -> web.Response:
        try:
            async with taken.read(request) as body:
                return await _answer(request, body)
        except NotTaken as refused:
            metrics.HINTS.labels(refused.why.value.replace("-", "_")).inc()
            status = 413 if refused.why is Why.TOO_LARGE else 503
            made = web.Response(status=status, text=f"{refused.why.value}: comments are read all the same\n")
            made.force_close()
            return made

    async def _answer(request: web.Request, body: bytes) -> web.Response:
        if not is_signed(body, request.headers.get(SIGNATURE, ""), _read(secret)):
            metrics.HINTS.labels("unsigned").inc()
            text = f"{SIGNATURE} is not that of the body: give GitHub and Remediator the same secret\n"
            return web.Response(status=401, text=text)
        heard, message = await hints.hear(request.headers.get(EVENT, ""), body)
        metrics.HINTS.labels(heard.value).inc()
        return web.Response(status=STATUS[heard], text=message + "\n")

    return [web.post(PATH, post)]


def _read(secret: Callable[[], str]) -> str:
    try:
        return secret()
    except (OSError, ValueError) as error:
        log.error("nobody is believed to be GitHub", error=str(error))
        return ""
