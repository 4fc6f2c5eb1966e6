"""Where Alertmanager posts its alerts."""

from collections.abc import Mapping

from aiohttp import web

from remediator.tickets import metrics
from remediator.tickets.webhook.receiver import LATER_SECONDS, Receiver, Result
from remediator.web.body import Bodies, NotTaken, Why

PATH = "/webhooks/alertmanager"
MIB = 2**20
SECONDS = 10.0
STATUS: Mapping[Result, int] = {
    Result.STORED: 200,
    Result.BAD: 400,
    Result.FORBIDDEN: 403,
    Result.INVALID: 422,
    Result.LATER: 503,
}
AGAIN = {"Retry-After": str(LATER_SECONDS)}


def bodies(mebibytes: int) -> Bodies:
    """What is taken at once."""
    return Bodies("webhook", mebibytes * MIB, mebibytes * MIB * 3 // 2, SECONDS)


def routes(receiver: Receiver, taken: Bodies) -> list[web.RouteDef]:
    """One route: 200 once the alerts are durable, 503 for "later", 400 for what is no payload of Alertmanager.

    403 and 422 for parameters of the URL that are not allowed, or not understood.
    """

    async def post(request: web.Request) -> web.Response:
        try:
            async with taken.read(request) as body:
                received = await receiver.receive(body, tuple(request.query.items()))
        except NotTaken as refused:
            metrics.DELIVERIES.labels(refused.why.value.replace("-", "_")).inc()
            return _not_taken(refused.why, taken)
        again = AGAIN if received.result is Result.LATER else {}
        return web.Response(status=STATUS[received.result], text=received.message + "\n", headers=again)

    return [web.post(PATH, post)]


def _not_taken(why: Why, taken: Bodies) -> web.Response:
    if why is Why.TOO_LARGE:
        text = f"more than {taken.most // MIB} MiB: group by node, or give Remediator --webhook-mib\n"
        made = web.Response(status=413, text=text)
    else:
        made = web.Response(status=503, text=f"{why.value}: send it again later\n", headers=AGAIN)
    made.force_close()
    return made
