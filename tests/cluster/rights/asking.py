"""How the tests of rights ask the API server: one request, whoever sends it, and what is answered."""

import json
import ssl
from collections.abc import Mapping
from typing import Any, NamedTuple

from urllib3 import HTTPSConnectionPool
from urllib3.util import parse_url

from remediator.kube.wire.transport import MERGE_PATCH

SYSTEM, OPERATIONS = "remediator-system", "remediator-operations"
# The worker whose root attacks, and another one. What our Pods on the first one do is about the other one.
OWN, OTHER = "worker-a", "worker-b"
Object = dict[str, Any]


class Request(NamedTuple):
    """One request; nothing of it is kept, unless it is not `dry`."""

    method: str
    path: str
    body: Object | None = None
    content_type: str = "application/json"
    headers: Mapping[str, str] = {}
    dry: bool = True


class Reply(NamedTuple):
    """The HTTP status, and what the server says in words or in JSON."""

    status: int
    text: str

    @property
    def json(self) -> Object:
        """The object that it answers with."""
        found: Object = json.loads(self.text)
        return found

    @property
    def refused(self) -> bool:
        """By authentication, a role or admission; 404 and 409 would be of a world that is not as it should be."""
        return self.status in (401, 403, 422)


class Speaker:
    """Whoever holds a token or a client certificate."""

    def __init__(self, url: str, context: ssl.SSLContext, token: str = "") -> None:
        server = parse_url(url)
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        # A pool, though one request goes at a time: it notices that the server has closed an idle connection.
        self._pool = HTTPSConnectionPool(server.host or "", server.port, ssl_context=context, timeout=30, retries=False)

    def __call__(self, asked: Request) -> Reply:
        """Ask."""
        writes = asked.method in ("POST", "PATCH", "PUT", "DELETE")
        dry = f"{'&' if '?' in asked.path else '?'}dryRun=All" if asked.dry and writes else ""
        headers = {**self._headers, **asked.headers, "Content-Type": asked.content_type}
        body = None if asked.body is None else json.dumps(asked.body)
        answer = self._pool.request(asked.method, asked.path + dry, body=body, headers=headers)
        return Reply(answer.status, answer.data.decode())


def patch(path: str, body: Object, content_type: str = MERGE_PATCH) -> Request:
    """A change of an object."""
    return Request("PATCH", path, body, content_type)


def named(kind: str, name: str, api: str = "v1", **parts: Any) -> Object:
    """An object without a namespace, or in that of its path."""
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name, **parts.pop("metadata", {})}, **parts}
