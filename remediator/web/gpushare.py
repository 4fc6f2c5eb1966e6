"""GPUs that Pods share by memory, under the paths of gpushare-scheduler-extender."""

from importlib.metadata import version

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler

from remediator.scheduler import protocol, victims
from remediator.scheduler.extender import Extender
from remediator.scheduler.shared import inspect
from remediator.scheduler.shared.parts import SharedGpus
from remediator.scheduler.turns import in_turns
from remediator.web.body import Bodies
from remediator.web.extender import handler

PATH = "/gpushare-scheduler"


def routes(extender: Extender, shared: SharedGpus, taken: Bodies) -> list[web.RouteDef]:
    """POST filter and bind, GET inspect and version; prioritize and preempt, too, which gpushare does not have."""
    return [
        web.post(
            f"{PATH}/filter", handler("filter", lambda body: in_turns(extender.filtering(body)), protocol.error, taken)
        ),
        web.post(
            f"{PATH}/prioritize",
            handler("prioritize", lambda body: in_turns(extender.prioritizing(body)), lambda _: b"[]", taken),
        ),
        web.post(f"{PATH}/preempt", handler("preempt", extender.preempt, lambda _: victims.NOBODY, taken)),
        web.post(f"{PATH}/bind", handler("bind", shared.binder.bind, _not_bound, taken)),
        web.get(f"{PATH}/inspect", _inspect(shared)),
        web.get(f"{PATH}/inspect/{{node}}", _inspect(shared)),
        web.get(f"{PATH}/version", _version),
    ]


def _not_bound(why: str) -> bytes:
    return msgspec.json.encode({"Error": why})


def _inspect(shared: SharedGpus) -> Handler:
    async def handle(request: web.Request) -> web.Response:
        status, body = inspect.answer(shared.books, request.match_info.get("node", ""))
        return web.Response(status=status, body=body, content_type="application/json")

    return handle


async def _version(request: web.Request) -> web.Response:
    return web.Response(text=version("remediator") + "\n")
