"""A workspace of Slack: the four methods that rooms use, as Slack documents them, in memory and on loopback.

tests/contract/test_slack.py holds it to what is documented, and to another implementation.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self
from urllib.parse import parse_qsl

from aiohttp import web

from remediator.clock import SYSTEM, Clock

TOKEN = "xoxb-token-of-the-fake"
LONGEST, BLOCKS = 40_000, 50
EDITS_A_MINUTE = 50
BREAKING = re.compile(r"<([!@#]|https?:)[^>]*>")  # what Slack makes of text: mentions and links
Body = dict[str, Any]


class SlackReply(NamedTuple):
    """An answer. `lost`: the connection is broken instead."""

    status: int
    headers: Mapping[str, str]
    body: Body
    lost: bool = False
    page: str = ""  # answered instead of JSON, as by a proxy


class SlackError(Exception):
    """What Slack answers with status 200 and `ok: false`."""


@dataclass(slots=True)
class Post:
    """One message."""

    ts: str
    author: str
    text: str
    blocks: list[Body]
    metadata: Body | None = None
    thread: str = ""
    edits: int = 0

    @property
    def body(self) -> Body:
        """As the API shows it."""
        shown = {"type": "message", "ts": self.ts, "user": self.author, "text": self.text, "blocks": self.blocks}
        return shown | ({"thread_ts": self.thread} if self.thread else {})

    @property
    def elements(self) -> list[Body]:
        """What its blocks are made of."""
        return [element for block in self.blocks for part in block["elements"] for element in part["elements"]]

    @property
    def lines(self) -> list[str]:
        """What a user reads."""
        return "".join(str(element.get("text", "")) for element in self.elements).strip().split("\n")

    @property
    def links(self) -> list[str]:
        """Where it leads, by its blocks and by its text."""
        return [element["url"] for element in self.elements if element["type"] == "link"] + [
            match[0] for match in BREAKING.finditer(self.text)
        ]

    @property
    def kinds(self) -> set[str]:
        """What its elements are."""
        return {element["type"] for element in self.elements}


@dataclass(slots=True)
class CallFault:
    """What happens to the next call of a method. `carried_out`: it has its effect before that."""

    error: str = ""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    carried_out: bool = False
    lost: bool = False
    page: str = ""


class MemorySlack:
    """A workspace. `serve` answers one request.

    Args:
        channels: their ids; the app is in all of them.
        scopes: what the token may do.
        limited: whether it takes no more than a message a second in each channel, and 50 edits a minute.
    """

    def __init__(
        self,
        channels: Iterable[str],
        *,
        scopes: Iterable[str] = ("chat:write", "channels:history"),
        clock: Clock = SYSTEM,
        limited: bool = True,
    ) -> None:
        self.channels: dict[str, list[Post]] = {name: [] for name in channels}
        self.absent: set[str] = set()  # channels that the app is not in
        self.scopes, self.token, self._clock, self._limited = set(scopes), TOKEN, clock, limited
        self.calls: list[tuple[str, Body]] = []
        self._faults: list[tuple[str, CallFault]] = []
        self._written: dict[str, list[float]] = {}
        self._last = 0

    def fail(self, method: str, *faults: CallFault) -> None:
        """Each of them happens to one call of the method, in this order."""
        self._faults += [(method, fault) for fault in faults]

    def threads(self, channel: str) -> list[Post]:
        """The messages that are no replies, oldest first."""
        return [post for post in self.channels[channel] if not post.thread]

    def replies(self, channel: str, ts: str) -> list[Post]:
        """What was post below one of them."""
        return [post for post in self.channels[channel] if post.thread == ts]

    def delete(self, channel: str, ts: str) -> None:
        """A user deletes a message."""
        self.channels[channel] = [post for post in self.channels[channel] if post.ts != ts]

    def say(self, channel: str, text: str) -> None:
        """A user says something."""
        self.channels[channel].append(Post(self._ts(), "U0ANN", text, []))

    def serve(self, method: str, headers: Mapping[str, str], raw: bytes) -> SlackReply:
        """The answer to one call."""
        kind = headers.get("content-type", "").partition(";")[0]
        body = json.loads(raw) if kind == "application/json" else dict(parse_qsl(raw.decode()))
        self.calls.append((method, body))
        fault = next((fault for name, fault in self._faults if name == method), None)
        if fault:
            self._faults.remove((method, fault))
            if fault.carried_out:
                self._answer(method, headers, body)
            wrong = {"ok": False, "error": fault.error or "internal_error"}
            return SlackReply(fault.status, fault.headers, wrong, fault.lost, fault.page)
        return self._answer(method, headers, body)

    def _answer(self, method: str, headers: Mapping[str, str], body: Body) -> SlackReply:
        try:
            self._authorize(headers)
            handler = METHODS.get(method)
            if handler is None:
                raise SlackError("unknown_method")
            if wait := self._limit(method, str(body.get("channel", ""))):
                return SlackReply(429, {"retry-after": str(wait)}, {"ok": False, "error": "ratelimited"})
            return SlackReply(200, {}, {"ok": True} | handler(self, body))
        except SlackError as error:
            return SlackReply(200, {}, {"ok": False, "error": str(error)} | self._scope(str(error), method))

    def _authorize(self, headers: Mapping[str, str]) -> None:
        token = headers.get("authorization", "").removeprefix("Bearer ")
        if token != self.token:
            raise SlackError("invalid_auth" if token else "not_authed")

    def _scope(self, error: str, method: str) -> Body:
        missing = error == "missing_scope"
        return {"needed": SCOPES[method], "provided": ",".join(sorted(self.scopes))} if missing else {}

    def _limit(self, method: str, channel: str) -> int:
        """Seconds to wait, 0 for none. Calls that are refused count, too."""
        if not self._limited or method not in ("chat.postMessage", "chat.update"):
            return 0
        now, edits = self._clock.monotonic(), method == "chat.update"
        key, window, most = ("edits", 60.0, EDITS_A_MINUTE) if edits else (channel, 1.0, 1)
        lately = [at for at in self._written.get(key, []) if now - at < window]
        self._written[key] = [*lately, now]
        return 0 if len(lately) < most else int(window)

    def _channel(self, body: Body, method: str) -> list[Post]:
        name = str(body.get("channel", ""))
        if name not in self.channels:
            raise SlackError("channel_not_found")
        if SCOPES[method] not in self.scopes:
            raise SlackError("missing_scope")
        if name in self.absent:
            raise SlackError("not_in_channel")
        return self.channels[name]

    def _ts(self) -> str:
        """Unix seconds with six digits, which no two messages share."""
        self._last = max(self._last + 1, int(self._clock.wall().timestamp() * 1e6))
        return f"{self._last // 10**6}.{self._last % 10**6:06}"

    def _content(self, body: Body) -> tuple[str, list[Body]]:
        text, blocks = str(body.get("text", "")), body.get("blocks") or []
        if not text and not blocks:
            raise SlackError("no_text")
        if len(blocks) > BLOCKS or not all(isinstance(block, dict) and "type" in block for block in blocks):
            raise SlackError("invalid_blocks")
        return text[:LONGEST], blocks

    def post(self, body: Body) -> Body:
        """chat.postMessage."""
        channel = self._channel(body, "chat.postMessage")
        text, blocks = self._content(body)
        thread = str(body.get("thread_ts", ""))
        if thread and not any(post.ts == thread for post in channel):
            raise SlackError("thread_not_found")
        post = Post(self._ts(), "U0APP", text, blocks, body.get("metadata"), thread)
        channel.append(post)
        return {"channel": body["channel"], "ts": post.ts, "message": post.body}

    def update(self, body: Body) -> Body:
        """chat.update. Metadata that is not named stays."""
        channel = self._channel(body, "chat.update")
        post = next((post for post in channel if post.ts == str(body.get("ts"))), None)
        if post is None:
            raise SlackError("message_not_found")
        if post.author != "U0APP":
            raise SlackError("cant_update_message")
        post.text, post.blocks = self._content(body)
        post.metadata = body.get("metadata", post.metadata)
        post.edits += 1
        return {"channel": body["channel"], "ts": post.ts, "text": post.text}

    def history(self, body: Body) -> Body:
        """conversations.history: the newest first, no replies; after `oldest`."""
        self._channel(body, "conversations.history")
        oldest, limit, start = float(body.get("oldest", 0)), int(body.get("limit", 100)), int(body.get("cursor", 0))
        every = [post for post in reversed(self.threads(body["channel"])) if float(post.ts) > oldest]
        whole = str(body.get("include_all_metadata", "")) in ("1", "true", "True")
        page = [post.body | ({"metadata": post.metadata} if whole and post.metadata else {}) for post in every]
        more = start + limit < len(page)
        after = {"response_metadata": {"next_cursor": str(start + limit)}} if more else {}
        return {"messages": page[start : start + limit], "has_more": more} | after

    def test(self, body: Body) -> Body:
        """auth.test."""
        return {"team": "fake", "user": "remediator", "user_id": "U0APP"}


METHODS: Mapping[str, Callable[[MemorySlack, Body], Body]] = {
    "chat.postMessage": MemorySlack.post,
    "chat.update": MemorySlack.update,
    "conversations.history": MemorySlack.history,
    "auth.test": MemorySlack.test,
}
SCOPES = {"chat.postMessage": "chat:write", "chat.update": "chat:write", "conversations.history": "channels:history"}


class FakeSlack(MemorySlack):
    """The same on 127.0.0.1, for the length of an `async with`; its address is `url`."""

    url = ""

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=2**20)
        app.router.add_post("/api/{method}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/api/"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _handle(self, http: web.Request) -> web.StreamResponse:
        headers = {name.lower(): value for name, value in http.headers.items()}
        reply = self.serve(http.match_info["method"], headers, await http.read())
        if reply.lost and http.transport is not None:
            http.transport.abort()
            return web.Response()
        if reply.page:
            return web.Response(status=reply.status, text=reply.page, content_type="text/html")
        return web.json_response(reply.body, status=reply.status, headers=reply.headers)
