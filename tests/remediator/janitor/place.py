"""A cluster in memory for passes of the janitor: objects of any kind, and what is asked of the server."""

import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from remediator.clock import Clock
from remediator.core import names
from remediator.core.idle_policy import JanitorMode
from remediator.janitor.one_pass import OnePass
from remediator.janitor.outcome import JanitorOutcome
from remediator.janitor.pass_report import Report
from remediator.janitor.rules import read
from remediator.janitor.selection import Selection
from remediator.janitor.settings import Hook, JanitorSettings, Terms
from remediator.janitor.writer import Writer
from remediator.kube.wire.client import Client, Kind
from remediator.kube.wire.transport import MERGE_PATCH, Query, Reply
from remediator_sim.apiserver import EmbeddedServer
from tests.harness.cluster import with_kinds
from tests.harness.kinds import EVENTS, NAMESPACES, PODS, Object

NOW = datetime(2026, 1, 10, tzinfo=UTC)
ENFORCE = JanitorMode.ENFORCE


class Recording:
    """A transport that remembers method, path and query of each request."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.asked: list[tuple[str, str, Query, bytes, str]] = []
        self.before_get: Callable[[], Awaitable[None]] | None = None  # once, before an object is read by its name

    async def request(self, method: str, path: str, **rest: Any) -> Reply:
        said = (rest.get("query", ()), rest.get("body", b""), rest.get("accept", ""))
        self.asked.append((method, path, *said))
        if self.before_get is not None and method == "GET" and path.count("/") > 5:
            before, self.before_get = self.before_get, None
            await before()
        reply: Reply = await self._inner.request(method, path, **rest)
        return reply

    def stream(self, path: str, **rest: Any) -> Any:
        """Asked as a GET."""
        self.asked.append(("GET", path, rest.get("query", ()), b"", ""))
        return self._inner.stream(path, **rest)


class Place:
    """The cluster, whose clock stands at NOW."""

    def __init__(self) -> None:
        self.now = NOW
        self.server = EmbeddedServer(like=with_kinds(), clock=Clock(lambda: self.now, time.monotonic))
        self.admin = Client(self.server.transport())
        self.transport = Recording(self.server.transport())
        self.client = Client(self.transport)
        self.writer = Writer(self.client)

    async def make(
        self,
        kind: Kind[Object],
        name: str,
        namespace: str = "team",
        ago: float = 10,
        *,
        labels: Any = None,
        **more: Any,
    ) -> Object:
        """Create an object that is so many hours old at NOW; `more`: annotations by short names, and its fields."""
        short = {"ttl": names.JANITOR_TTL, "expires": names.JANITOR_EXPIRES, "keep": names.KEEP_UNTIL}
        notes = {short[key]: more.pop(key) for key in tuple(more) if key in short}
        notes |= more.pop("annotations", {})
        meta = {"name": name, "annotations": notes, "labels": labels or {}, **more.pop("metadata", {})}
        if kind.namespaced:
            await self.space(namespace)
        body = {"apiVersion": kind.api_version, "kind": kind.name, "metadata": meta, **more}
        self.now = NOW - timedelta(hours=ago)
        made = await self.admin.create(kind, body, namespace=namespace if kind.namespaced else "")
        self.now = NOW
        return made

    async def space(self, name: str, **annotations: str) -> None:
        """A namespace."""
        if not any(one["metadata"]["name"] == name for one in await self.admin.list_all(NAMESPACES)):
            meta = {"name": name, "annotations": annotations}
            await self.admin.create(NAMESPACES, {"metadata": meta})

    async def pod(self, name: str, namespace: str = "team", ago: float = 10, **more: Any) -> Object:
        """A Pod."""
        spec = {"containers": [{"name": "main", "image": "x"}], **more.pop("spec", {})}
        return await self.make(PODS, name, namespace, ago, spec=spec, **more)

    async def annotate(self, kind: Kind[Object], name: str, namespace: str = "team", **annotations: Any) -> None:
        """Change annotations, as a user would."""
        body = {"metadata": {"annotations": annotations}}
        where = namespace if kind.namespaced else ""
        await self.admin.patch(kind, name, body, namespace=where, content_type=MERGE_PATCH)

    async def run(
        self,
        mode: JanitorMode = ENFORCE,
        hours: float = 0,
        *,
        rules: str = "rules: []",
        selection: Selection | None = None,
        notice: float = 0,
        deployed: str = "",
        most: int = 100,
        hook: Hook | None = None,
    ) -> Report:
        """One pass, so many hours after NOW."""
        terms = Terms(timedelta(hours=notice), deployed)
        settings = JanitorSettings(mode, read(rules), selection or Selection(), terms, most, hook=hook)
        self.transport.asked.clear()
        return await OnePass(self.client, settings, self.writer, NOW + timedelta(hours=hours)).run()

    async def names(self, kind: Kind[Object], namespace: str = "") -> set[str]:
        """What there is of a kind."""
        return {one["metadata"]["name"] for one in await self.admin.list_all(kind, namespace=namespace)}

    async def events(self) -> list[tuple[str, str]]:
        """Reason and object of each Event, sorted."""
        listed = await self.admin.list_all(EVENTS)
        return sorted((one["reason"], one["involvedObject"]["name"]) for one in listed)

    def writes(self) -> list[tuple[str, str]]:
        """Method and path of each write of the last pass."""
        return [(method, path) for method, path, *_ in self.transport.asked if method != "GET"]


def lines(report: Report, outcome: JanitorOutcome) -> Sequence[tuple[str, str]]:
    """What stands in a report under one outcome: object and reason."""
    return [(line.what, line.reason.value) for line in report.lines[outcome]]


def owned_by(owner: Any) -> dict[str, Any]:
    """The reference of what an object controls."""
    meta = owner["metadata"]
    words = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": meta["name"], "uid": meta["uid"]}
    return words | {"controller": True}
