"""One channel of Slack, by slack_sdk in a thread of its own. Nothing is sent twice by itself; nothing sleeps here."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from datetime import datetime
from typing import Any, TypeVar

from slack_sdk import WebClient

from remediator import secret_file
from remediator.tickets.channels.base import ChannelError, Refused
from remediator.tickets.channels.chat import Looked, Message, Search
from remediator.tickets.channels.rooms import Slack
from remediator.tickets.channels.slack_errors import SCOPE, SlackCall, translate
from remediator.tickets.channels.slack_text import written

T = TypeVar("T")
EVENT = "remediator_ticket"
MARGIN = 60.0  # seconds between the clock of Slack and ours
PAGES, PAGE = 5, 200  # how far back a thread is looked for
SILENT = logging.getLogger("remediator.slack")  # what goes wrong is told by us, once
SILENT.addHandler(logging.NullHandler())
SILENT.propagate = False
SILENT.setLevel(logging.CRITICAL)


class SlackRoom:
    """A `Chat`.

    Args:
        name: the room, for users.
        place: the channel, and where its token lies.
        timeout: whole seconds for one request.
        worker: what runs slack_sdk, one call after the other; a thread of its own where none is given.
    """

    edits = True

    def __init__(self, name: str, place: Slack, *, timeout: int = 15, worker: Executor | None = None) -> None:
        self._name, self._place = name, place
        self._worker = worker or ThreadPoolExecutor(max_workers=1, thread_name_prefix="slack")
        self._client = WebClient(base_url=place.url, timeout=timeout, logger=SILENT, retry_handlers=[])

    async def post(self, message: Message, marker: str) -> str:
        """A message of its own; the time that Slack gave it."""
        metadata = {"event_type": EVENT, "event_payload": {"marker": marker}}
        body = self._body(message) | {"metadata": metadata, "unfurl_links": False, "unfurl_media": False}
        return await self._ask("post to", lambda: str(self._call("chat.postMessage", json=body)["ts"]), once=True)

    async def reply(self, thread: str, message: Message) -> None:
        """A reply in the thread."""
        body = self._body(message) | {"thread_ts": thread, "unfurl_links": False, "unfurl_media": False}
        await self._ask("reply in", lambda: self._call("chat.postMessage", json=body), once=True)

    async def edit(self, thread: str, message: Message) -> None:
        """The first message, changed; its marker stays."""
        body = self._body(message) | {"ts": thread}
        await self._ask("edit a message in", lambda: self._call("chat.update", json=body))

    async def find(self, marker: str, since: datetime) -> Search:
        """Look through the channel since then; without the scope channels:history or groups:history we cannot tell."""
        try:
            return await self._ask("look through", lambda: self._found(marker, since.timestamp() - MARGIN))
        except Refused as error:
            if error.field == SCOPE:
                return Search(Looked.CANNOT_TELL)
            raise

    async def aclose(self) -> None:
        """Let what is under way end, and drop what waits."""
        await asyncio.to_thread(self._worker.shutdown, cancel_futures=True)

    def _body(self, message: Message) -> dict[str, Any]:
        """`parse` is said each time: its default is another in chat.update."""
        return {"channel": self._place.channel, "parse": "none", **written(message)}

    async def _ask(self, what: str, work: Callable[[], T], *, once: bool = False) -> T:
        call = SlackCall(f"room {self._name}: could not {what} {self._place.channel}", self._place.url, once)
        return await asyncio.get_running_loop().run_in_executor(self._worker, self._guard, work, call)

    # From here on everything runs in the worker.

    def _guard(self, work: Callable[[], T], call: SlackCall) -> T:
        try:
            self._client.token = self._token()
            return work()
        except ChannelError:
            raise
        except Exception as error:  # what it was made of may quote what was sent
            raise translate(error, call) from None

    def _token(self) -> str:
        """What the file holds now."""
        path = self._place.token
        try:
            token, wrong = secret_file.read(path, secret_file.not_one_word), "holds no token"
        except OSError as error:
            token, wrong = "", f"cannot be read ({type(error).__name__})"
        except ValueError as error:  # it names the file
            raise Refused(f"room {self._name}: {error}", "token") from None
        if not token:
            raise Refused(f"room {self._name}: the file {path} {wrong}", "token")
        return token

    def _call(self, method: str, **sent: Any) -> Mapping[str, Any]:
        answer = self._client.api_call(method, **sent).data
        if not isinstance(answer, dict):
            raise TypeError("an answer that is no JSON")
        return answer

    def _found(self, marker: str, oldest: float) -> Search:
        asked: dict[str, Any] = {"channel": self._place.channel, "oldest": f"{oldest:.6f}", "limit": PAGE}
        asked |= {"include_all_metadata": True}
        times: list[str] = []
        for _ in range(PAGES):
            page = self._call("conversations.history", params=asked)  # methods that read take no JSON
            times += [str(entry["ts"]) for entry in page.get("messages", ()) if _marker(entry) == marker]
            cursor = (page.get("response_metadata") or {}).get("next_cursor")
            if not cursor:
                return Search(Looked.THERE, min(times, key=float)) if times else Search(Looked.NOT_THERE)
            asked["cursor"] = cursor
        return Search(Looked.THERE, min(times, key=float)) if times else Search(Looked.CANNOT_TELL)


def _marker(entry: Mapping[str, Any]) -> str:
    metadata = entry.get("metadata") or {}
    ours = metadata.get("event_type") == EVENT
    return str(metadata.get("event_payload", {}).get("marker", "")) if ours else ""
