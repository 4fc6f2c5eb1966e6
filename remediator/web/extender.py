"""The scheduler extender over HTTP. What its protocol has words for is 200: kube-scheduler reads no other answer."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator

from aiohttp import web

from remediator.scheduler import metrics, protocol, victims
from remediator.scheduler.extender import Extender
from remediator.scheduler.turns import in_turns
from remediator.web.body import Bodies, NotTaken, Why

MIB = 2**20
JSON = "application/json"
Answer = bytes | Iterator[bytes]
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
        web.post(
            "/scheduler/filter",
            handler("filter", lambda body: in_turns(extender.filtering(body)), protocol.error, taken),
        ),
        web.post(
            "/scheduler/prioritize",
            handler("prioritize", lambda body: in_turns(extender.prioritizing(body)), lambda _: b"[]", taken),
        ),
        web.post("/scheduler/preempt", handler("preempt", extender.preempt, lambda _: victims.NOBODY, taken)),
    ]


def handler(
    call: str, answer: Callable[[bytes], Answer | Awaitable[Answer]], fail: Callable[[str], bytes], taken: Bodies
) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """Answers one call of the protocol, at once or when it is done."""
    why = {
        Why.TOO_LARGE: f"the request is larger than {taken.most // MIB} MiB; set nodeCacheCapable: true for this "
        "extender, or give Remediator --extender-whole-nodes",
        Why.TOO_SLOW: f"the request was not there after {taken.seconds:g} s",
        Why.FULL: "too many requests at once; ask again",
    }

    async def handle(request: web.Request) -> web.StreamResponse:
        try:
            async with taken.read(request) as body:
                made = answer(body)
                made = await made if isinstance(made, Awaitable) else made
                if isinstance(made, bytes):
                    return web.Response(body=made, content_type=JSON)
                return await _in_parts(request, made, taken.seconds)
        except NotTaken as refused:
            metrics.ANSWERS.labels(call, refused.why.value).inc()
            refusal = web.Response(body=fail(why[refused.why]), content_type=JSON)
            refusal.force_close()
            return refusal

    return handle


async def _in_parts(request: web.Request, parts: Iterator[bytes], seconds: float) -> web.StreamResponse:
    """An answer that is large, while others are answered between its parts. Who takes too long gets no end of it."""
    response = web.StreamResponse(headers={"Content-Type": JSON})
    await response.prepare(request)
    try:
        async with asyncio.timeout(seconds):
            for part in parts:
                await response.write(part)
                await asyncio.sleep(0)
    except TimeoutError:
        if request.transport is not None:
            request.transport.abort()
    return response
