"""A Transport that plays a script: what the server says, when, and how it breaks."""

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from remediator.kube.wire.errors import Unavailable
from remediator.kube.wire.transport import Reply

SILENCE = object()  # in a Watch: nothing comes any more, and the connection stays open


class Watch:
    """The answer to one stream: bytes are sent, numbers slept, errors raised; then it ends cleanly."""

    def __init__(self, *items, status=200, headers=None):
        self.items, self.status, self.headers = items, status, headers or {}
        self.idle_timeout = 0.0

    async def __aiter__(self):
        for item in self.items:
            if item is SILENCE:
                await asyncio.sleep(self.idle_timeout)
                raise Unavailable(0, "Unreachable", "silence")
            if isinstance(item, Exception):
                raise item
            if isinstance(item, bytes):
                yield item
            else:
                await asyncio.sleep(item)


@dataclass
class Asked:
    """One call of the code under test."""

    at: float
    path: str
    query: dict


@dataclass
class ScriptedTransport:
    """Each call takes the next step. Calls past the end of the script wait for ever and set `over`."""

    steps: list
    asked: list[Asked] = field(default_factory=list)
    over: asyncio.Event = field(default_factory=asyncio.Event)

    async def _next(self, path, query):
        self.asked.append(Asked(asyncio.get_running_loop().time(), path, dict(query)))
        if not self.steps:
            self.over.set()
            await asyncio.Event().wait()
        step = self.steps.pop(0)
        if isinstance(step, Exception):
            raise step
        return step

    async def request(self, method, path, *, query=(), body=b"", content_type="", accept="", timeout=30.0):
        return await self._next(path, query)

    @asynccontextmanager
    async def stream(self, path, *, query=(), idle_timeout=75.0):
        step = await self._next(path, query)
        step.idle_timeout = idle_timeout
        yield step

    async def close(self):
        pass


def status(code, message="", reason="", **headers):
    """A refusal, as body."""
    body = json.dumps({"kind": "Status", "code": code, "reason": reason, "message": message}).encode()
    return Reply(code, body, {name.replace("_", "-"): value for name, value in headers.items()})


def refusal(code, message="", reason="", **headers):
    """The same, in answer to a watch."""
    reply = status(code, message, reason, **headers)
    return Watch(reply.body, status=code, headers=reply.headers)


def event(kind, obj):
    """One line of a watch."""
    return json.dumps({"type": kind, "object": obj}).encode() + b"\n"


def bookmark(version, *, end=False):
    """A BOOKMARK, or with `end` the one that ends the initial events."""
    meta = {"resourceVersion": version}
    if end:
        meta["annotations"] = {"k8s.io/initial-events-end": "true"}
    return event("BOOKMARK", {"metadata": meta})


def page(version, *objects, following=""):
    """One page of a list."""
    body = {"metadata": {"resourceVersion": version, "continue": following}, "items": list(objects)}
    return Reply(200, json.dumps(body).encode(), {})
