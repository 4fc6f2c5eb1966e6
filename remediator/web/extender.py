"""The scheduler extender over HTTP. What its protocol has words for is 200: kube-scheduler reads no other answer."""

from collections.abc import Awaitable, Callable

from aiohttp import web

from remediator.scheduler import metrics, protocol, victims
from remediator.scheduler.extender import Extender
from remediator.web.body import Bodies, NotTaken, Why

MIB = 2**20
NAMES_BYTES, NODES_BYTES = 4 * MIB, 96 * MIB
SECONDS, NODES_SECONDS = 2.0, 10.0


def bodies(whole_nodes: bool) -> Bodies:
    """What is taken at once: names of nodes, or whole Nodes, which are hundreds of times as large."""
    if whole_nodes:
        return Bodies("extender", NODES_BYTES, NODES_BYTES, NODES_SECONDS)
    return Bodies("extender", NAMES_BYTES, 4 * NAMES_BYTES, SECONDS)


def routes(extender: Extender, taken: Bodies) -> list[web.RouteDef]:
    """POST /scheduler/filter, /scheduler/prioritize and /scheduler/preempt."""
    return [
        web.post("/scheduler/filter", handler("filter", extender.filter, protocol.error, taken)),
        web.post("/scheduler/prioritize", handler("prioritize", extender.prioritize, lambda _: b"[]", taken)),
        web.post("/scheduler/preempt", handler("preempt", extender.preempt, lambda _: victims.NOBODY, taken)),
    ]


def handler(
    call: str, answer: Callable[[bytes], bytes | Awaitable[bytes]], fail: Callable[[str], bytes], taken: Bodies
) -> Callable[[web.Request], Awaitable[web.Response]]:
    """Answers one call of the protocol, at once or when it is done."""
    why = {
        Why.TOO_LARGE: f"the request is larger than {taken.most // MIB} MiB; set nodeCacheCapable: true for this "
        "extender, or give Remediator --extender-whole-nodes",
        Why.TOO_SLOW: f"the request was not there after {taken.seconds:g} s",
        Why.FULL: "too many requests at once; ask again",
    }

    async def handle(request: web.Request) -> web.Response:
        try:
            async with taken.read(request) as body:
                made = answer(body)
                made = made if isinstance(made, bytes) else await made
                return web.Response(body=made, content_type="application/json")
        except NotTaken as refused:
            metrics.ANSWERS.labels(call, refused.why.value).inc()
            refusal = web.Response(body=fail(why[refused.why]), content_type="application/json")
            refusal.force_close()
            return refusal

    return handle
