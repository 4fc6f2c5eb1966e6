"""What the janitor serves: probes, metrics, and the report of its last pass."""

from aiohttp import web

from remediator.core.text import printable
from remediator.janitor.run import Janitor
from remediator.web import probes
from remediator.web.listener import ConnectionLimits, Endpoint

LIMITS = ConnectionLimits(connections=16, strangers=16, first_seconds=30.0, idle_seconds=15.0)


def endpoint(janitor: Janitor) -> Endpoint:
    """/report for people, beside what `probes` serves."""

    async def report(_: web.Request) -> web.Response:
        if janitor.last is None:
            return web.Response(status=503, text="no pass has ended yet, or another replica makes them\n")
        return web.Response(text="".join(f"{printable(line)}\n" for line in janitor.last.rendered()))

    async def measured() -> None:
        """All is counted when it happens."""

    app = probes.application({"janitor": janitor.ready}, measured)
    app.add_routes([web.get("/report", report)])
    return Endpoint("janitor", app, LIMITS)
