"""Typed requests over a Transport: one `Kind` gives the path of its objects and the struct to decode them to."""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import msgspec

from remediator.kube.wire import errors
from remediator.kube.wire import frames as wire
from remediator.kube.wire.transport import HEADS, JSON, MERGE_PATCH, Query, Reply, Transport

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """One resource of the API: its address, and the msgspec struct that its objects decode to."""

    group: str  # "" is the core group
    version: str
    plural: str
    name: str
    type: type[T]
    namespaced: bool = False

    def path(self, name: str = "", namespace: str = "", subresource: str = "") -> str:
        """The URL path of the collection, or of one object, or of one subresource of it.

        Raises Invalid for what can be no name: an API server decodes a path before it takes it apart, so that quoting
        alone would let "a/proxy" reach the proxy of a.
        """
        name, namespace = _part(name), _part(namespace)
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        scope = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        return root + scope + "".join(f"/{part}" for part in (self.plural, name, subresource) if part)

    @property
    def api_version(self) -> str:
        """What stands in `apiVersion`."""
        return f"{self.group}/{self.version}" if self.group else self.version


_PLAIN = re.compile("[A-Za-z0-9-]*").fullmatch


def _part(name: str) -> str:
    """A name, or "", as it stands in a path; Invalid for those that no Kubernetes object may have."""
    if _PLAIN(name):  # as nearly all
        return name
    if name in (".", "..") or "/" in name or "%" in name:
        raise errors.Invalid(400, "BadRequest", f"{name[:64]!r} can be no name of an object")
    return quote(name, safe="")


def check(reply: Reply) -> Reply:
    """Raise the ApiError for a refusal; give an accepted answer back."""
    if reply.status < 400:
        return reply
    try:
        status = msgspec.json.decode(reply.body, type=wire.WatchFailure)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        status = wire.WatchFailure(message=" ".join(reply.body[:200].decode("utf-8", "replace").split()))
    after = reply.headers.get("retry-after", "")
    message = status.message or f"HTTP {reply.status} without a word"
    raise errors.from_status(reply.status, status.reason, message, float(after) if after.isdecimal() else None)


def decode(body: bytes | msgspec.Raw, answer: type[T]) -> T:
    """What an accepted answer says. Raises Unavailable for what an API server would not say: a page, a login form."""
    try:
        return msgspec.json.decode(body, type=answer)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        why = f"the answer is not one of Kubernetes ({error}): the server may be no API server, or a proxy before it"
        raise errors.Unavailable(200, "Unreadable", why) from error


class Client:
    """Get, list, create, patch, delete. Every refusal is an `errors.ApiError`; nothing is retried here."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport

    async def get(self, kind: Kind[T], name: str, *, namespace: str = "") -> T:
        """Read one object, live from the server. Raises Invalid without a name: that would be a list of all."""
        if not name:
            raise errors.Invalid(400, "BadRequest", f"one of {kind.plural} is read by its name")
        reply = check(await self.transport.request("GET", kind.path(name, namespace)))
        return decode(reply.body, kind.type)

    async def list_all(
        self, kind: Kind[T], *, namespace: str = "", labels: str = "", fields: str = "", limit: int = 250
    ) -> list[T]:
        """Read all objects that match, page by page. A 410 between pages is raised as Expired."""
        return [item async for page in self.pages(kind, namespace, labels, fields, limit) for item in page]

    async def heads(
        self, kind: Kind[Any], *, namespace: str = "", labels: str = "", fields: str = ""
    ) -> tuple[dict[str, str], str]:
        """Key and version of every object that matches, as of a read that misses nothing, and the version of the list.

        Only metadata is asked for. A 410 between pages is raised as Expired.
        """
        versions: dict[str, str] = {}
        following = ""
        while True:
            asked = (("limit", "1000"), ("labelSelector", labels), ("fieldSelector", fields), ("continue", following))
            query = [(key, value) for key, value in asked if value]
            path = kind.path("", namespace)
            page = decode(check(await self.transport.request("GET", path, query=query, accept=HEADS)).body, wire.Heads)
            versions |= {head.metadata.key: head.metadata.resource_version for head in page.items or ()}
            following = page.metadata.continue_
            if not following:
                return versions, page.metadata.resource_version

    async def count(self, kind: Kind[Any]) -> int | None:
        """How many objects of a kind there are, by a list of one; None where the server does not say."""
        reply = check(await self.transport.request("GET", kind.path(), query=[("limit", "1")], accept=HEADS))
        page = decode(reply.body, wire.Heads)
        rest = page.metadata.remaining_item_count if page.metadata.continue_ else 0
        return None if rest is None else len(page.items or ()) + rest

    async def metadata(self, kind: Kind[T], *, namespace: str = "") -> list[T]:
        """Read the metadata of all objects, page by page: all that `kind.type` may look at."""
        return [item async for page in self.metadata_pages(kind, namespace=namespace) for item in page]

    def metadata_pages(self, kind: Kind[T], *, namespace: str = "") -> AsyncIterator[list[T]]:
        """The pages of that."""
        return self.pages(kind, namespace, "", "", 1000, HEADS)

    async def pages(
        self, kind: Kind[T], namespace: str, labels: str, fields: str, limit: int, accept: str = JSON
    ) -> AsyncIterator[list[T]]:
        """The pages of a list, each decoded."""
        following = ""
        while True:
            asked = (
                ("limit", str(limit)),
                ("labelSelector", labels),
                ("fieldSelector", fields),
                ("continue", following),
            )
            query = [(key, value) for key, value in asked if value]
            reply = check(await self.transport.request("GET", kind.path("", namespace), query=query, accept=accept))
            page = decode(reply.body, wire.Page)
            yield [decode(item, kind.type) for item in page.items or ()]
            following = page.metadata.continue_
            if not following:
                return

    async def create(self, kind: Kind[T], body: Any, *, namespace: str = "", query: Query = ()) -> T:
        """Create one object and give back what the server stored."""
        return await self.send("POST", kind.path("", namespace), kind.type, body, query=query)

    async def patch(
        self,
        kind: Kind[T],
        name: str,
        body: Any,
        *,
        namespace: str = "",
        subresource: str = "",
        content_type: str = MERGE_PATCH,
    ) -> T:
        """Patch one object. With `metadata.resourceVersion` in the body it is refused (Conflict) if it moved."""
        path = kind.path(name, namespace, subresource)
        return await self.send("PATCH", path, kind.type, body, content_type=content_type)

    async def replace(self, kind: Kind[T], name: str, body: Any, *, namespace: str = "") -> T:
        """PUT one whole object; only for kinds whose every field we own (Leases)."""
        return await self.send("PUT", kind.path(name, namespace), kind.type, body)

    async def delete(
        self,
        kind: Kind[Any],
        name: str,
        *,
        namespace: str = "",
        uid: str = "",
        version: str = "",
        propagation: str = "",
    ) -> None:
        """Delete one object; `uid` protects a namesake that came later, `version` what was written meanwhile.

        `propagation`: Background, Foreground or Orphan, for what it owns; "" as its kind has it.
        Raises NotFound where it is gone, Conflict where it is another one.
        """
        body = wire.DeleteOptions(wire.Preconditions(uid, version) if uid or version else None, propagation)
        check(
            await self.transport.request(
                "DELETE", kind.path(name, namespace), body=msgspec.json.encode(body), content_type="application/json"
            )
        )

    async def send(
        self,
        method: str,
        path: str,
        answer: type[T],
        body: Any,
        *,
        content_type: str = "application/json",
        query: Query = (),
    ) -> T:
        """Send `body` as JSON, decode the answer; subresources like eviction and token come this way."""
        reply = check(
            await self.transport.request(
                method, path, query=query, body=msgspec.json.encode(body), content_type=content_type
            )
        )
        return decode(reply.body, answer)
