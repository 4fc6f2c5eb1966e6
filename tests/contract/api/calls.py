"""Requests as they go over the wire, and what came back: no codec between a test and the server."""

import asyncio
import json
import uuid
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from remediator.kube.wire.transport import JSON, MERGE_PATCH, Transport

SECONDS = 20.0
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


class Answer(NamedTuple):
    """One answer, decoded."""

    status: int
    body: dict[str, Any]
    headers: dict[str, str]

    def ok(self, status: int = 200) -> dict[str, Any]:
        """The body of an answer that must have this status."""
        assert self.status == status, f"{self.status}: {self.body}"
        return self.body

    def refused(self, status: int, reason: str) -> dict[str, Any]:
        """The Status of a refusal."""
        assert (self.status, self.body.get("reason")) == (status, reason), f"{self.status}: {self.body}"
        assert (self.body["kind"], self.body["apiVersion"], self.body["status"]) == ("Status", "v1", "Failure")
        assert self.body["code"] == status
        return self.body

    def causes(self) -> set[tuple[str, str]]:
        """What each cause of a refusal names: (field, reason)."""
        causes = self.body.get("details", {}).get("causes", [])
        return {(cause.get("field", ""), cause.get("reason", "")) for cause in causes}


class Api:
    """The verbs. Query values are given as keywords; `body` is anything that JSON can say."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport

    async def call(self, method: str, path: str, body: Any = None, content_type: str = JSON, **query: Any) -> Answer:
        reply = await self.transport.request(
            method,
            path,
            query=[(key, str(value)) for key, value in query.items()],
            body=b"" if body is None else json.dumps(body).encode(),
            content_type=content_type,
        )
        return Answer(reply.status, _decoded(reply.body), dict(reply.headers))

    async def get(self, path: str, **query: Any) -> Answer:
        return await self.call("GET", path, **query)

    async def post(self, path: str, body: Any, **query: Any) -> Answer:
        return await self.call("POST", path, body, **query)

    async def put(self, path: str, body: Any, **query: Any) -> Answer:
        return await self.call("PUT", path, body, **query)

    async def patch(self, path: str, body: Any, content_type: str = MERGE_PATCH, **query: Any) -> Answer:
        return await self.call("PATCH", path, body, content_type, **query)

    async def delete(self, path: str, body: Any = None, **query: Any) -> Answer:
        return await self.call("DELETE", path, body, **query)

    @asynccontextmanager
    async def watch(self, path: str, **query: Any):
        """An open watch."""
        asked = [("watch", "true"), *((key, str(value)) for key, value in query.items())]
        async with self.transport.stream(path, query=asked, idle_timeout=SECONDS) as stream:
            yield Watch(stream)


class Watch:
    """The events of one watch, in order."""

    def __init__(self, stream: Any) -> None:
        self.status = stream.status
        self._chunks, self._rest = stream.__aiter__(), b""

    async def next(self, seconds: float = SECONDS) -> dict[str, Any] | None:
        """The next event; None at the end of the stream."""
        async with asyncio.timeout(seconds):
            while b"\n" not in self._rest:
                try:
                    self._rest += await anext(self._chunks)
                except StopAsyncIteration:
                    return json.loads(self._rest) if self._rest.strip() else None
        line, _, self._rest = self._rest.partition(b"\n")
        return json.loads(line)

    async def take(self, count: int) -> list[tuple[str, str]]:
        """(type, name) of the next events, bookmarks left out."""
        seen: list[tuple[str, str]] = []
        while len(seen) < count:
            event = await self.next()
            assert event, f"the stream ended after {seen}"
            if event["type"] != "BOOKMARK":
                seen.append((event["type"], event["object"]["metadata"]["name"]))
        return seen


def _decoded(body: bytes) -> dict[str, Any]:
    """What a body says; plain text, as for a path that nobody serves, becomes a message."""
    try:
        return json.loads(body) if body else {}
    except json.JSONDecodeError:
        return {"message": body.decode()}


def fresh(prefix: str = "c") -> str:
    """A name that no other test has."""
    return f"{prefix}-{uuid.uuid4().hex[:10]}"


def config_map(name: str, labels: dict[str, str] | None = None, **data: str) -> dict[str, Any]:
    metadata = {"name": name, "labels": labels} if labels else {"name": name}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def node(name: str, **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, **metadata}}


def pod(name: str, labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    """A Pod; `spec` may name its node."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"containers": [{"name": "main", "image": "none:1"}], **spec},
    }


def lease(name: str, holder: str) -> dict[str, Any]:
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name},
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.000000Z"},
    }


def core_event(node: str) -> dict[str, Any]:
    """A Warning about a node."""
    return {
        "metadata": {"name": fresh("event"), "namespace": "default"},
        "involvedObject": {"kind": "Node", "name": node, "apiVersion": "v1"},
        "reason": "GpuLost",
        "message": "GPU 3 is gone",
        "type": "Warning",
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
        "count": 1,
        "source": {"component": "remediator"},
    }
