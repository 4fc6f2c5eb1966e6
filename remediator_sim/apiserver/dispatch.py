"""One request in, one answer out: the verbs of the API over (method, path, query, headers, body)."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import format_datetime
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from remediator_sim.apiserver import (
    bodies,
    deletes,
    discovery,
    eviction,
    forms,
    listing,
    openapi,
    options,
    routes,
    status,
    tokens,
    writes,
)
from remediator_sim.apiserver.binding import bind
from remediator_sim.apiserver.cluster import Cluster
from remediator_sim.apiserver.faults import Faults, Severed
from remediator_sim.apiserver.options import Options
from remediator_sim.apiserver.status import Failure, Obj
from remediator_sim.apiserver.store import Entry
from remediator_sim.apiserver.watch import Watch
from remediator_sim.apiserver.writes import Target, WriteResult

JSON = "application/json"
_AUDITED = 100_000  # mutations remembered


class Request(NamedTuple):
    """One HTTP request. `headers` has lower-case names; `path` is decoded and without the query."""

    method: str
    path: str
    query: Sequence[tuple[str, str]] = ()
    headers: Mapping[str, str] = {}
    body: bytes = b""


@dataclass(slots=True)
class Response:
    """One answer: a whole body, or the events of a watch."""

    status: int
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    watch: Watch | None = None


class Mutation(NamedTuple):
    """One mutating request that was carried out."""

    user: str
    verb: str
    path: str


class ApiDispatcher:
    """The API over one cluster. Between the faults of a request and its answer nothing is awaited."""

    def __init__(self, cluster: Cluster, faults: Faults) -> None:
        self.cluster, self.faults = cluster, faults
        self.audit: deque[Mutation] = deque(maxlen=_AUDITED)

    async def handle(self, request: Request) -> Response:
        """Serve one request. Raises faults.Severed where a planned fault breaks the connection."""
        try:
            lost = await self.faults.meet(request)
            response = self._serve(request)
        except Failure as failure:
            response, lost = refusal(failure), False
        if lost:
            raise Severed
        response.headers["date"] = _date(self.cluster.now().replace(microsecond=0))
        return response

    def _serve(self, request: Request) -> Response:
        user = tokens.user_of(self.cluster, request.headers.get("authorization", ""))
        target = routes.resolve(self.cluster.registry, request.path)
        if request.path in tokens.REVIEWS and request.method == "POST":
            asked_of = _body(request).value
            return _json(201, msgspec.json.encode(tokens.review(self.cluster, request.path, user, asked_of)))
        if target is None:
            return self._elsewhere(request)
        asked = options.read(request.query)
        if target.resource.namespaced and not target.namespace and request.method != "GET":
            raise status.method_not_allowed()
        if request.method == "GET":
            return self._read(request, target, asked)
        perform = _VERBS.get((request.method, bool(target.name), target.sub if target.sub in _OWN else ""))
        if perform is None:
            raise status.method_not_allowed()
        response = perform[1](self, request, target, asked)
        if not asked.dry_run:
            self.audit.append(Mutation(user, perform[0], request.path))
        return response

    def _elsewhere(self, request: Request) -> Response:
        """Paths that speak of no object: health, version, discovery."""
        if request.path in _HEALTH:
            return Response(200, b"ok", {"content-type": "text/plain; charset=utf-8"})
        answer = _documents(self.cluster, request)
        if answer is None:
            return self._nowhere(request.path)
        if request.method not in ("GET", "HEAD"):
            raise status.method_not_allowed()
        return answer

    def _nowhere(self, path: str) -> Response:
        """A path of a group that is served is refused by the API, any other by the web server below it."""
        parts = path.strip("/").split("/")
        group = parts[1] if parts[0] == "apis" and len(parts) > 1 else ""
        if parts[0] in ("api", "apis") and group in self.cluster.registry.groups():
            raise status.no_such_path()
        return Response(404, b"404 page not found\n", {"content-type": "text/plain; charset=utf-8"})

    def _form(self, request: Request, target: Target, asked: Options) -> forms.Form:
        accept = request.headers.get("accept", "")
        return forms.choose(accept, target.resource, asked.include_object, self.cluster.now)

    def _read(self, request: Request, target: Target, asked: Options) -> Response:
        if target.sub in _OWN:
            raise status.method_not_allowed()
        form = self._form(request, target, asked)
        if asked.watch:
            return self._watch(target, asked, form)
        if target.name:
            return _json(200, form.one(self.cluster.get(target.resource, target.namespace, target.name)))
        options.check_list(asked)
        page = listing.page(self.cluster, target.resource, target.namespace, asked)
        return _json(200, form.many(page.entries, page.metadata))

    def _watch(self, target: Target, asked: Options, form: forms.Form) -> Response:
        options.check_list(asked)
        opened = Watch(self.cluster, target, asked, form, self.faults)
        opened.open()
        return Response(200, headers={"content-type": JSON}, watch=opened)

    def _written(self, request: Request, target: Target, asked: Options, result: WriteResult) -> Response:
        form = self._form(request, target, asked)
        entry = result.entry or Entry(target.resource.store(result.obj), 0)
        response = _json(201 if result.created else 200, form.one(entry))
        if result.warnings:
            response.headers["warning"] = ", ".join(f"299 - {status.shown(warning)}" for warning in result.warnings)
        return response

    def create(self, request: Request, target: Target, asked: Options) -> Response:
        """POST to a collection."""
        result = writes.create(self.cluster, target, _body(request), asked)
        return self._written(request, target, asked, result)

    def update(self, request: Request, target: Target, asked: Options) -> Response:
        """PUT to an object or its status."""
        result = writes.update(self.cluster, target, _body(request), asked)
        return self._written(request, target, asked, result)

    def patch(self, request: Request, target: Target, asked: Options) -> Response:
        """PATCH to an object or its status."""
        content_type = request.headers.get("content-type", "")
        result = writes.change(self.cluster, target, request.body, content_type, asked)
        return self._written(request, target, asked, result)

    def delete(self, request: Request, target: Target, asked: Options) -> Response:
        """DELETE of one object."""
        return _json(200, forms.encode(deletes.delete(self.cluster, target, _options(request), asked)))

    def delete_all(self, request: Request, target: Target, asked: Options) -> Response:
        """DELETE of a collection, or of what selectors choose of it."""
        form, wanted = self._form(request, target, asked), _options(request)
        page = listing.page(self.cluster, target.resource, target.namespace, asked)
        for entry in page.entries:
            one = target._replace(name=entry.obj["metadata"]["name"])
            deletes.delete(self.cluster, one, wanted, asked)
        return _json(200, form.many(page.entries, page.metadata))

    def evict(self, request: Request, target: Target, asked: Options) -> Response:
        """POST to pods/eviction."""
        return _json(201, forms.encode(eviction.evict(self.cluster, target, _body(request).value, asked)))

    def bind(self, request: Request, target: Target, asked: Options) -> Response:
        """POST to pods/binding."""
        return _json(201, forms.encode(bind(self.cluster, target, _body(request).value)))

    def token(self, request: Request, target: Target, asked: Options) -> Response:
        """POST to serviceaccounts/token."""
        return _json(201, forms.encode(tokens.issue(self.cluster, target, _body(request).value)))


Verb = Callable[[ApiDispatcher, Request, Target, Options], Response]
# Subresources with a verb of their own; status takes the verbs of the object.
_OWN = ("eviction", "binding", "token")
_VERBS: dict[tuple[str, bool, str], tuple[str, Verb]] = {
    ("POST", False, ""): ("create", ApiDispatcher.create),
    ("PUT", True, ""): ("update", ApiDispatcher.update),
    ("PATCH", True, ""): ("patch", ApiDispatcher.patch),
    ("DELETE", True, ""): ("delete", ApiDispatcher.delete),
    ("DELETE", False, ""): ("deletecollection", ApiDispatcher.delete_all),
    ("POST", True, "eviction"): ("create", ApiDispatcher.evict),
    ("POST", True, "binding"): ("create", ApiDispatcher.bind),
    ("POST", True, "token"): ("create", ApiDispatcher.token),
}
_HEALTH = ("/readyz", "/healthz", "/livez")


def _json(code: int, body: bytes) -> Response:
    return Response(code, body, {"content-type": JSON})


@lru_cache(maxsize=1)
def _date(second: datetime) -> str:
    return format_datetime(second, usegmt=True)


def refusal(failure: Failure) -> Response:
    """The answer that tells of a refusal."""
    response = _json(failure.code, forms.encode(failure))
    if failure.retry_after:
        response.headers["retry-after"] = str(failure.retry_after)
    return response


def _body(request: Request) -> bodies.Body:
    return bodies.read(request.body, request.headers.get("content-type", JSON))


def _options(request: Request) -> Any:
    """The DeleteOptions of a request; none is none."""
    return bodies.read(request.body, request.headers.get("content-type", JSON)).value if request.body.strip() else None


def _documents(cluster: Cluster, request: Request) -> Response | None:
    """The document at a path of discovery, or None."""
    registry, parts = cluster.registry, request.path.strip("/").split("/")
    modern = f"g={discovery.AGGREGATED}" in request.headers.get("accept", "")
    if modern and parts in (["api"], ["apis"]):
        return _modern(cluster, request, core=parts == ["api"])
    match parts:
        case ["version"]:
            answer: Obj = discovery.VERSION
        case ["api"]:
            answer = discovery.core_versions()
        case ["apis"]:
            answer = discovery.legacy_groups(registry)
        case ["api", version]:
            answer = discovery.resources(registry, "", version)
        case ["apis", group]:
            answer = discovery.group(registry, group)
        case ["apis", group, version]:
            answer = discovery.resources(registry, group, version)
        case ["openapi", "v2"]:
            return Response(200, openapi.V2_EMPTY, {"content-type": openapi.V2_MEDIA})
        case ["openapi", "v3"]:
            answer = openapi.index(registry)
        case ["openapi", "v3", *place]:
            answer = openapi.document(registry, "/".join(place))
        case _:
            return None
    return _json(200, msgspec.json.encode(answer))


def _modern(cluster: Cluster, request: Request, *, core: bool) -> Response:
    version = "v2" if "v=v2;" in request.headers["accept"] + ";" else "v2beta1"
    document = discovery.aggregated(cluster.registry, core=core, version=version)
    content_type = f"{JSON};g={discovery.AGGREGATED};v={version};as=APIGroupDiscoveryList"
    return Response(200, msgspec.json.encode(document), {"content-type": content_type})
