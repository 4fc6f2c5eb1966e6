"""The page over HTTP: GET alone, but for signing in and out; who may, is asked before anything is looked up."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

from aiohttp import web

from remediator.clock import Clock
from remediator.core.case import Case
from remediator.core.case_data import in_json
from remediator.web.listener import TRUST, last
from remediator.web.page import openapi
from remediator.web.page.entry import Door
from remediator.web.page.fleet_view import fleet_data, nodes_data
from remediator.web.page.followed import FollowedView, ViewOfOne
from remediator.web.page.html import static
from remediator.web.page.search import Matches, matches
from remediator.web.page.snapshots import Snapshot, Snapshots
from remediator.web.page.source import PageSource
from remediator.web.page.stream import Follower, Streams

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "private, no-cache",
}
API, OPEN = "/api/", "/static/"  # the second for everybody, so that the form looks like one


class FleetPage:
    """Everything that is served on the port of the page."""

    def __init__(self, source: PageSource, door: Door, identity: str, clock: Clock) -> None:
        self._source, self._door, self._clock = source, door, clock
        self._pages = door.pages
        self._snapshots = Snapshots(source.facts, clock)
        source.on_move(self._snapshots.moved)
        self._streams = Streams(self._snapshots, identity, clock)
        self._followed: WeakValueDictionary[str, FollowedView] = WeakValueDictionary()  # by path, while somebody does
        self._turn = asyncio.Lock()

    def application(self) -> web.Application:
        """All routes."""
        app = web.Application(middlewares=[self._guarded])
        app.on_response_prepare.append(_harden)
        app.on_shutdown.append(self._stop)
        app.add_routes(
            [
                web.get("/", self._fleet),
                web.get("/now", self._now),
                web.get("/events", self._events, allow_head=False),
                web.get("/nodes/{name}", self._node),
                web.get("/nodes/{name}/events", self._node_events, allow_head=False),
                web.get("/cases/{name}", self._case),
                web.get("/cases/{name}/events", self._case_events, allow_head=False),
                web.get("/search", self._search),
                web.get("/static/{name}", self._static),
                web.post("/sign-in", self._door.sign_in),
                web.post("/sign-out", self._door.sign_out),
                web.get("/api", self._api),
                web.get("/api/v1/openapi.json", self._openapi),
                web.get("/api/v1/fleet", self._fleet_json),
                web.get("/api/v1/nodes", self._nodes_json),
                web.get("/api/v1/nodes/{name}", self._node_json),
                web.get("/api/v1/nodes/{name}/history", self._history_json),
                web.get("/api/v1/cases/{name}", self._case_json),
                web.get("/api/v1/search", self._search_json),
            ]
        )
        return app

    @web.middleware
    async def _guarded(self, request: web.Request, handler: Any) -> web.StreamResponse:
        """Who does not read gets one answer on a connection: without end they would take the time of the others."""
        if _is_signing(request):
            answer = await self._answered(request, handler)
            answer.force_close()  # what is left of a form that is too large is read, or its sender would see no answer
            return answer
        refused = await self._door.refusal(request)
        if refused is None:
            request.app[TRUST](request)
            return await self._answered(request, handler)
        answer = await self._answered(request, handler) if request.path.startswith(OPEN) else refused
        await last(request, answer)
        return answer

    async def _answered(self, request: web.Request, handler: Any) -> web.StreamResponse:
        try:
            answer: web.StreamResponse = await handler(request)
        except web.HTTPException as error:
            if error.status < 400:
                raise
            return self._told(request, error.status, error.reason, _ALLOWED.get(error.status, ""))
        return answer

    # --- the fleet ---------------------------------------------------------------------------------------------------

    async def _fleet(self, request: web.Request) -> web.StreamResponse:
        return await self._shared(request, "fleet", lambda now: self._pages.fleet(now.view, self._streams.tag(now)))

    async def _now(self, request: web.Request) -> web.StreamResponse:
        return await self._shared(request, "now", lambda now: self._pages.now(now.view))

    async def _fleet_json(self, request: web.Request) -> web.StreamResponse:
        return await self._shared(request, "fleet.json", lambda now: _json(fleet_data(now.facts)), JSON)

    async def _nodes_json(self, request: web.Request) -> web.StreamResponse:
        return await self._shared(request, "nodes.json", lambda now: _json(nodes_data(now.view, now.facts.fresh)), JSON)

    async def _shared(
        self, request: web.Request, name: str, make: Callable[[Snapshot], bytes], kind: str = ""
    ) -> web.StreamResponse:
        """What all readers get the same of, from memory."""
        snapshot = await self._snapshots.newest()
        body = await snapshot.body(name, make)
        headers = {"ETag": body.tag, "Vary": "Accept-Encoding"}
        if request.headers.get("If-None-Match") == body.tag:
            return web.Response(status=304, headers=headers)
        packed = "gzip" in request.headers.get("Accept-Encoding", "")
        headers |= {"Content-Encoding": "gzip"} if packed else {}
        return _answer(body.packed if packed else body.plain, kind or HTML, headers=headers)

    async def _events(self, request: web.Request) -> web.StreamResponse:
        return await self._follow(request, self._streams.of_fleet)

    async def _follow(self, request: web.Request, follower_of: Callable[[str], Follower]) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
        if not self._streams.room:
            return self._told(request, 503, "Too many readers", "so many follow the page that it is not live for more")
        shown = request.headers.get("Last-Event-ID") or request.query.get("of", "")
        async with self._streams.followed(follower_of(shown)) as events:
            await response.prepare(request)
            async for event in events:
                if not await self._door.lets_in(request):  # no right lasts longer in a stream than elsewhere
                    break
                try:
                    await response.write(event)
                except ConnectionError:  # it is gone; an error that is handed on keeps what it has for the collector
                    break
        return response

    async def _stop(self, _: web.Application) -> None:
        await self._streams.stop()

    # --- one thing ---------------------------------------------------------------------------------------------------

    async def _node(self, request: web.Request) -> web.StreamResponse:
        view = await self._node_view(request.match_info["name"])
        return _answer(self._pages.node(view), HTML) if view else self._missing(request)

    async def _node_events(self, request: web.Request) -> web.StreamResponse:
        return await self._follow_one(request, self._source.node_facts, self._node_view, self._pages.node)

    async def _node_view(self, name: str) -> Any:
        return await self._one(partial(self._source.node_view, name))

    async def _case(self, request: web.Request) -> web.StreamResponse:
        view = await self._case_view(request.match_info["name"])
        return _answer(self._pages.case(view), HTML) if view else self._missing(request)

    async def _case_events(self, request: web.Request) -> web.StreamResponse:
        return await self._follow_one(request, self._source.case_facts, self._case_view, self._pages.case)

    async def _case_view(self, name: str) -> Any:
        return await self._of_case(name, self._source.case_view)

    async def _follow_one(
        self,
        request: web.Request,
        facts: Callable[[str], object],
        make: Callable[[str], Awaitable[ViewOfOne | None]],
        page: Callable[[Any], bytes],
    ) -> web.StreamResponse:
        """All who follow one share its view; with the last of them it goes."""
        name = request.match_info["name"]
        view = self._followed.get(request.path)
        if view is None:
            view = FollowedView(partial(facts, name), partial(make, name), page, self._clock)
            self._followed[request.path] = view
        return await self._follow(request, view.events)

    async def _search(self, request: web.Request) -> web.StreamResponse:
        query = request.query.get("q", "")[:253]
        matched = await self._one(partial(self._matches, query))
        if (len(matched.nodes) == 1 and not matched.cases) or query in matched.nodes:
            raise web.HTTPSeeOther(f"/nodes/{query if query in matched.nodes else matched.nodes[0]}")
        return _answer(self._pages.search(query, matched, self._source.stale()), HTML)

    async def _node_json(self, request: web.Request) -> web.StreamResponse:
        return await self._data(request, self._source.node_data)

    async def _history_json(self, request: web.Request) -> web.StreamResponse:
        return await self._data(request, self._source.history_data)

    async def _case_json(self, request: web.Request) -> web.StreamResponse:
        data = await self._of_case(request.match_info["name"], self._source.case_data)
        return self._missing(request) if data is None else _answer(_json(data), JSON)

    async def _search_json(self, request: web.Request) -> web.StreamResponse:
        matched = await self._one(partial(self._matches, request.query.get("q", "")[:253]))
        data = {"nodes": matched.nodes, "cases": matched.cases, "cut": matched.cut}
        return _answer(_json(data | self._source.freshness_data()), JSON)

    async def _data(self, request: web.Request, make: Callable[[str], Any]) -> web.StreamResponse:
        data = await self._one(partial(make, request.match_info["name"]))
        return self._missing(request) if data is None else _answer(_json(data), JSON)

    async def _of_case(self, name: str, make: Callable[[Case], Any]) -> Any:
        """What is made of a case; None where there is no such case."""
        case = await self._source.case(name)
        return None if case is None else await self._one(partial(make, case))

    async def _one(self, make: Callable[[], Any]) -> Any:
        """One at a time, with a pause as long as it took: however many ask, half of the loop is left to others."""
        await self._snapshots.newest()  # who leads is read with it
        async with self._turn:
            began = self._clock.monotonic()
            made = make()
            await asyncio.sleep(self._clock.monotonic() - began)
        return made

    def _matches(self, query: str) -> Matches:
        return matches(query, *self._source.names())

    # --- the rest ----------------------------------------------------------------------------------------------------

    async def _static(self, request: web.Request) -> web.StreamResponse:
        content, kind = static().get(request.match_info["name"], (b"", ""))
        return _answer(content, kind) if kind else self._missing(request)

    async def _api(self, _: web.Request) -> web.StreamResponse:
        return _answer(self._pages.api(), HTML)

    async def _openapi(self, _: web.Request) -> web.StreamResponse:
        return _answer(_json(openapi.document()), JSON)

    def _missing(self, request: web.Request) -> web.Response:
        return self._told(request, 404, "Not Found", "nothing here has this name, or it is not kept any more")

    def _told(self, request: web.Request, status: int, title: str, text: str) -> web.Response:
        if request.path.startswith(API):
            return _answer(_json({"error": text or title}), JSON, status=status)
        return _answer(self._pages.message(title, text), HTML, status=status)


HTML, JSON = "text/html", "application/json"
_ALLOWED = {404: "nothing is at this address", 405: "this page only shows: it takes GET and HEAD"}


def _is_signing(request: web.Request) -> bool:
    return request.method == "POST" and request.path in ("/sign-in", "/sign-out")


def _answer(body: bytes, kind: str, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(body=body, content_type=kind, charset="utf-8", status=status, headers=headers)


def _json(data: Any) -> bytes:
    return json.dumps(data, default=in_json, separators=(",", ":")).encode()


async def _harden(_: web.Request, response: web.StreamResponse) -> None:
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
