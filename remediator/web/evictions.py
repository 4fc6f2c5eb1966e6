"""Where the API server asks about each eviction of a drain. It shows no certificate, so everybody may ask: the answer
changes nothing, and nothing is read from the API server for who names no drain that runs.
"""

from collections.abc import Callable

import msgspec
from aiohttp import web

from remediator.controller.evictions import EvictionJudge
from remediator.core.eviction import Ruling
from remediator.kube.api import eviction_review
from remediator.metrics import CALLS_REFUSED
from remediator.web.body import Bodies, NotTaken, Why
from remediator.web.listener import TRUST

PATH = "/evictions"
MOST, ROOM, SECONDS = 2**16, 2**22, 3.0  # the API server sends 2 KiB
NAME = "evictions"


def bodies() -> Bodies:
    """What is taken at once."""
    return Bodies(NAME, MOST, ROOM, SECONDS)


def routes(judge: EvictionJudge, taken: Bodies) -> list[web.RouteDef]:
    """One route."""

    async def post(request: web.Request) -> web.Response:
        try:
            async with taken.read(request) as body:
                asked = eviction_review.question(body)
        except NotTaken as refused:
            status = 413 if refused.why is Why.TOO_LARGE else 503
            made = web.Response(status=status, text=f"{refused.why.value}: ask again\n")
            made.force_close()
            return made
        except ValueError as error:
            CALLS_REFUSED.labels(NAME, "malformed").inc()
            return web.Response(status=400, text=f"{error}\n")
        ruled = await judge.ruling(eviction_review.asked_eviction(asked), _serious(request))
        if ruled.ruling is not Ruling.ALLOWED:
            CALLS_REFUSED.labels(NAME, ruled.ruling.value).inc()
        answer = msgspec.json.encode(eviction_review.answer(asked.uid, ruled))
        return web.Response(body=answer, content_type="application/json")

    return [web.post(PATH, post)]


def _serious(request: web.Request) -> Callable[[], None]:
    """Who names a drain that runs is not driven out by new connections before it is answered."""
    return lambda: request.app[TRUST](request)
