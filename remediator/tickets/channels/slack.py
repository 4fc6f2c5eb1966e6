"""One channel of Slack, by slack_sdk in a thread of its own. Nothing is sent twice by itself, and nothing sleeps here.

Whatever others wrote stands in text elements of a rich_text block, which Slack shows as they are: only an element of
another type could mention, link or format.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from datetime import datetime
from typing import Any, TypeVar
from urllib.error import URLError

from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError

from remediator import secret_file
from remediator.core.policy import Severity
from remediator.tickets.channels.base import ChannelError, Later, Refused, Unsure
from remediator.tickets.channels.chat import Line, Looked, Message, Search
from remediator.tickets.channels.rooms import Slack

T = TypeVar("T")
EVENT = "remediator_ticket"
ICONS = {Severity.CRITICAL: "red_circle", Severity.WARNING: "large_orange_circle", Severity.INFO: "large_blue_circle"}
FALLBACK = 300  # characters of what notifications show
SOON, PAUSE, LONGEST = 10.0, 60.0, 900.0
PAGES, PAGE = 5, 200  # how far back a thread is looked for
TOKEN = "the token in the file of slack.tokenFile, which needs the scope chat:write"
CHANNEL = "the channel: invite the app to it, or correct its id"
# What Slack calls an error → the field that a user corrects, and what to do. Of all others nobody knows more.
REFUSALS: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(
        ("invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired", "missing_scope"),
        ("token", f"correct {TOKEN}"),
    ),
    **dict.fromkeys(("no_permission", "not_allowed_token_type", "org_login_required"), ("token", f"correct {TOKEN}")),
    **dict.fromkeys(
        ("channel_not_found", "not_in_channel", "is_archived", "restricted_action", "is_inactive"),
        ("slack", f"correct {CHANNEL}"),
    ),
    **dict.fromkeys(
        ("message_not_found", "cant_update_message", "edit_window_closed", "thread_not_found"),
        ("thread", "nothing: it is not ours to change any more"),
    ),
}
UNKNOWN = frozenset({"internal_error", "fatal_error", "service_unavailable", "request_timeout", "team_added_to_org"})
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
        return str((await self._send("chat.postMessage", message, once=True, metadata=metadata))["ts"])

    async def reply(self, thread: str, message: Message) -> None:
        """A reply in the thread."""
        await self._send("chat.postMessage", message, once=True, thread_ts=thread)

    async def edit(self, thread: str, message: Message) -> None:
        """The first message, changed; its marker stays."""
        await self._send("chat.update", message, once=False, ts=thread)

    async def find(self, marker: str, since: datetime) -> Search:
        """Look through the channel since then; without the scope channels:history or groups:history we cannot tell."""
        try:
            return await self._run(lambda: self._found(marker, since.timestamp() - PAUSE), "look through", once=False)
        except Refused as error:
            if error.field == "token":
                return Search(Looked.CANNOT_TELL)
            raise

    async def aclose(self) -> None:
        """Let what is under way end, and drop what waits."""
        await asyncio.to_thread(self._worker.shutdown, cancel_futures=True)

    async def _send(self, method: str, message: Message, *, once: bool, **more: Any) -> Mapping[str, Any]:
        body = {"channel": self._place.channel, **written(message), "parse": "none", **more}
        if once:
            body |= {"unfurl_links": False, "unfurl_media": False}
        return await self._run(lambda: self._call(method, body), "post to" if once else "edit a message in", once=once)

    async def _run(self, work: Callable[[], T], what: str, *, once: bool) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._worker, self._guard, work, what, once)

    # From here on everything runs in the worker.

    def _call(self, method: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        answer = self._client.api_call(method, json=dict(body))
        if not isinstance(answer.data, dict):
            raise TypeError("an answer that is no JSON")
        return answer.data

    def _found(self, marker: str, oldest: float) -> Search:
        asked: dict[str, Any] = {"channel": self._place.channel, "oldest": f"{oldest:.6f}", "limit": PAGE}
        asked |= {"include_all_metadata": True}
        times: list[str] = []
        for _ in range(PAGES):
            page = self._call_form("conversations.history", asked)
            times += [str(entry["ts"]) for entry in page.get("messages", ()) if _marker(entry) == marker]
            asked["cursor"] = page.get("response_metadata", {}).get("next_cursor", "")
            if not asked["cursor"]:
                return Search(Looked.THERE, min(times, key=float)) if times else Search(Looked.NOT_THERE)
        return Search(Looked.THERE, min(times, key=float)) if times else Search(Looked.CANNOT_TELL)

    def _call_form(self, method: str, asked: Mapping[str, Any]) -> Mapping[str, Any]:
        """Methods that read take no JSON."""
        answer = self._client.api_call(method, params={name: value for name, value in asked.items() if value != ""})
        if not isinstance(answer.data, dict):
            raise TypeError("an answer that is no JSON")
        return answer.data

    def _guard(self, work: Callable[[], T], what: str, once: bool) -> T:
        try:
            self._client.token = self._token()
            return work()
        except ChannelError:
            raise
        except SlackApiError as error:
            raise self._refusal(error, what, once) from None
        except Exception as error:  # what it was made of may quote what was sent
            raise self._lost(error, what, once) from None

    def _token(self) -> str:
        try:
            token = secret_file.read(self._place.token, secret_file.not_one_word)
        except (OSError, ValueError) as error:
            raise Refused(f"room {self._name}: {_reason(error, self._place)}", "token") from None
        if not token:
            raise Refused(f"room {self._name}: the file {self._place.token} holds no token", "token")
        return token

    def _refusal(self, error: SlackApiError, what: str, once: bool) -> ChannelError:
        data = error.response.data if isinstance(error.response.data, dict) else {}
        code, headers = str(data.get("error", "")), {k.lower(): v for k, v in error.response.headers.items()}
        head = f"room {self._name}: could not {what} {self._place.channel}"
        if error.response.status_code == 429 or code in ("ratelimited", "rate_limited"):
            after = _seconds(headers.get("retry-after", ""))
            return Later(f"{head}: Slack asks to wait {after:.0f} s", after)
        if code in REFUSALS:
            field, remedy = REFUSALS[code]
            return Refused(f"{head}: Slack says {code}; {remedy}", field)
        if error.response.status_code >= 500 or code in UNKNOWN or not _is_word(code):
            how = code if _is_word(code) else f"status {error.response.status_code}, and no answer of Slack's"
            return Unsure(f"{head}: {how}; it is looked for") if once else Later(f"{head}: {how}", PAUSE)
        return Refused(f"{head}: Slack says {code}", "")

    def _lost(self, error: Exception, what: str, once: bool) -> ChannelError:
        head = f"room {self._name}: could not {what} {self._place.channel}"
        cause = error.reason if isinstance(error, URLError) else error
        name = type(cause).__name__
        if isinstance(cause, ConnectionRefusedError) or name in ("gaierror", "SSLCertVerificationError"):
            return Later(f"{head}: {self._place.url} is not reached ({name})", SOON)  # nothing was sent
        return Unsure(f"{head}: no answer ({name}); it is looked for") if once else Later(f"{head}: {name}", SOON)


def written(message: Message) -> dict[str, Any]:
    """A message as Slack takes it: blocks, and what notifications show."""
    elements: list[dict[str, Any]] = [{"type": "emoji", "name": ICONS[message.severity]}, _text(" ")]
    elements += [_element(message.title, bold=True)]
    for line in message.lines:
        elements += [_text("\n"), _element(line)]
    block = {"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": elements}]}
    shown = " - ".join(line.text for line in (message.title, *message.lines[:1]))[:FALLBACK]
    return {"text": escaped(shown), "blocks": [block]}


def escaped(text: str) -> str:
    """Text in which Slack sees no mention, link or special sequence."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace("@", "@\N{ZERO WIDTH SPACE}").replace("://", ":\N{ZERO WIDTH SPACE}//")


def _element(line: Line, *, bold: bool = False) -> dict[str, Any]:
    style = {"style": {"bold": True}} if bold else {}
    if not line.url:
        return _text(line.text) | style
    return {"type": "link", "url": line.url, "text": line.text or line.url} | style


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text or " "}


def _marker(entry: Mapping[str, Any]) -> str:
    metadata = entry.get("metadata") or {}
    ours = metadata.get("event_type") == EVENT
    return str(metadata.get("event_payload", {}).get("marker", "")) if ours else ""


def _seconds(text: object) -> float:
    """How long Slack asks to wait; a minute where it does not say."""
    try:
        return min(max(float(str(text)), 1.0), LONGEST)
    except ValueError:
        return PAUSE


def _is_word(code: str) -> bool:
    """A code of Slack's, and not a page of a proxy, which may repeat what it was sent."""
    return 0 < len(code) <= 64 and code.replace("_", "").isalnum() and code.isascii()


def _reason(error: Exception, place: Slack) -> str:
    """What is wrong with the file; an OSError says it in words of the system's."""
    strange = isinstance(error, OSError)
    return f"the file {place.token} cannot be read ({type(error).__name__})" if strange else str(error)
