"""What every room of a chat does, tried on each: a new chat gets an entry in CHATS and a Reader of its own."""

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

import pytest
import requests
from aiohttp import web
from hypothesis import example, given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from remediator.core.policy import Severity
from remediator.tickets.channels.apprised import AppriseRoom, harmless
from remediator.tickets.channels.base import ChannelError, Later, Refused, Unsure
from remediator.tickets.channels.chat import Chat, ChatLine, Looked, Message
from remediator.tickets.channels.rooms import Apprise, Slack
from remediator.tickets.channels.slack import SlackRoom
from remediator.tickets.channels.slack_text import written
from remediator_sim.slack import CallFault, FakeSlack, Post
from tests.oracle.emulator import emulated

PLACE, LONG_AGO = "C0123456789", datetime(2020, 1, 1, tzinfo=UTC)
ISSUE = "https://github.example.org/org/repo/issues/12"
SAID = Message(
    Severity.CRITICAL, ChatLine("gpu-17: GpuLost", ISSUE), (ChatLine("Critical, it waits"), ChatLine("Issue", ISSUE))
)
NEW = Message(Severity.CRITICAL, ChatLine("gpu-17: GpuLost", ISSUE), (ChatLine("Critical, a person is needed"),))
HOSTILE = "<!channel> <@U1> @here @everyone <https://evil.example|log in> [log in](https://evil.example) *b* `c` &lt;"


class Reader(Protocol):
    """Who reads what arrives, as texts: of each thread all that was said, oldest first."""

    def read(self) -> list[list[str]]: ...
    def fail(self) -> None: ...


class OnSlack:
    """A member of the channel."""

    def __init__(self, fake: FakeSlack) -> None:
        self._fake = fake

    def read(self) -> list[list[str]]:
        threads = self._fake.threads(PLACE)
        return [[_text(said) for said in (first, *self._fake.replies(PLACE, first.ts))] for first in threads]

    def fail(self) -> None:
        self._fake.fail("chat.postMessage", CallFault(status=503, page="<html>Service Unavailable</html>"))


def _text(said: Post) -> str:
    return "\n".join(said.lines)


class OnEmulate:
    """A member of the channel of an emulator that others wrote."""

    def __init__(self, url: str) -> None:
        self._url = f"{url}/api/"
        listed = self._ask("conversations.list", "xoxb-us")["channels"]
        (self.channel,) = (channel["id"] for channel in listed if channel["name"] == "gpu-team")

    def read(self) -> list[list[str]]:
        firsts = self._ask("conversations.history", "xoxb-ann", channel=self.channel)["messages"]
        threads = [
            self._ask("conversations.replies", "xoxb-ann", channel=self.channel, ts=first["ts"]) for first in firsts
        ]
        return [[_text(as_post(message)) for message in thread["messages"]] for thread in reversed(threads)]

    def fail(self) -> None:
        pytest.skip("it never fails")

    def _ask(self, method: str, token: str, **body: str) -> Any:
        headers = {"Authorization": f"Bearer {token}"}
        return requests.post(self._url + method, data=body, headers=headers, timeout=10).json()


def as_post(message: dict[str, Any]) -> Post:
    return Post(message["ts"], message["user"], message["text"], message["blocks"])


class Target:
    """Any service that apprise knows, as its json:// has it."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self._failing = 0

    async def handle(self, http: web.Request) -> web.Response:
        if self._failing:
            self._failing -= 1
            return web.Response(status=500)
        self.bodies.append(await http.json())
        return web.Response()

    def read(self) -> list[list[str]]:
        return [[f"{body['title']}\n{body['message']}"] for body in self.bodies]

    def fail(self) -> None:
        self._failing = 1


@asynccontextmanager
async def slack(folder: Path) -> AsyncIterator[tuple[Chat, Reader]]:
    async with FakeSlack([PLACE], limited=False) as fake:
        yield room(fake, folder), OnSlack(fake)


@asynccontextmanager
async def emulate(folder: Path) -> AsyncIterator[tuple[Chat, Reader]]:
    (folder / "token").write_text("xoxb-us")
    async with emulated("slack", folder) as url:
        reader = OnEmulate(url)
        yield SlackRoom("gpu-team", Slack(reader.channel, folder / "token", f"{url}/api/"), timeout=5), reader


@asynccontextmanager
async def apprise(folder: Path) -> AsyncIterator[tuple[Chat, Reader]]:
    async with served(Target()) as (target, port):
        (folder / "urls").write_text(f"# on loopback\njson://127.0.0.1:{port}/\n")
        yield AppriseRoom("pager", Apprise(folder / "urls")), target


@asynccontextmanager
async def served(target: Target) -> AsyncIterator[tuple[Target, int]]:
    app = web.Application()
    app.router.add_post("/{path:.*}", target.handle)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield target, runner.addresses[0][1]
    await runner.cleanup()


def room(fake: FakeSlack, folder: Path) -> SlackRoom:
    (folder / "token").write_text(f"{fake.token}\n")
    return SlackRoom("gpu-team", Slack(PLACE, folder / "token", fake.url), timeout=5)


CHATS: dict[str, Callable[[Path], AbstractAsyncContextManager[tuple[Chat, Reader]]]] = {
    "Slack": slack,
    "apprise": apprise,
    "emulate": emulate,
}
ELSEWHERE = {"emulate": pytest.mark.cluster}  # a process of another language


@pytest.fixture(params=[pytest.param(name, marks=ELSEWHERE.get(name, ())) for name in CHATS])
async def chat(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[tuple[Chat, Reader]]:
    """One room, and who reads in it."""
    async with CHATS[request.param](tmp_path) as both:
        yield both
        await both[0].aclose()


async def test_what_is_posted_arrives_once_with_all_its_lines(chat: tuple[Chat, Reader]) -> None:
    told, reader = chat
    assert await told.post(SAID, "mark1")
    ((text,),) = reader.read()
    assert [line.split(":")[0] for line in text.split("\n")] == ["gpu-17", "Critical, it waits", "Issue"]


async def test_a_reply_arrives_and_an_edit_says_nothing_new(chat: tuple[Chat, Reader]) -> None:
    told, reader = chat
    thread = await told.post(SAID, "mark1")
    await told.edit(thread, NEW)
    before = reader.read()
    await told.reply(thread, NEW)
    texts = [text for said in reader.read() for text in said]
    assert len(texts) == sum(map(len, before)) + 1 == 2
    assert "a person is needed" in texts[-1]
    assert ("a person is needed" in texts[0]) is told.edits


async def test_a_thread_is_found_by_its_marker_or_nobody_can_tell(chat: tuple[Chat, Reader]) -> None:
    told, _ = chat
    thread = await told.post(SAID, "mark1")
    await told.edit(thread, NEW)
    shown, other = await told.find("mark1", LONG_AGO), await told.find("mark2", LONG_AGO)
    if shown.looked is Looked.CANNOT_TELL:
        assert other.looked is Looked.CANNOT_TELL
    else:
        assert (shown.looked, shown.thread, other.looked) == (Looked.THERE, thread, Looked.NOT_THERE)


async def test_a_post_without_an_answer_is_unsure_and_not_repeated_by_itself(chat: tuple[Chat, Reader]) -> None:
    told, reader = chat
    reader.fail()
    with pytest.raises(Unsure):
        await told.post(SAID, "mark1")
    assert reader.read() == []


async def test_what_others_wrote_mentions_nobody_and_leads_nowhere(chat: tuple[Chat, Reader]) -> None:
    told, reader = chat
    await told.post(Message(Severity.INFO, ChatLine(HOSTILE), (ChatLine(HOSTILE),)), "mark1")
    ((text,),) = reader.read()
    if told.edits:  # Slack shows each character as it is
        assert text == f"{HOSTILE}\n{HOSTILE}"
    else:
        assert not set("<>@[]`*") & set(text)
        assert "://" not in text


# --- Slack alone -----------------------------------------------------------------------------------------------------


@pytest.fixture
async def fake() -> AsyncIterator[FakeSlack]:
    async with FakeSlack([PLACE], limited=False) as made:
        yield made


@given(st.text(max_size=60))
@example(HOSTILE)
@example("<!here|x>")
def test_no_text_makes_slack_mention_link_or_format(text: str) -> None:
    body = written(Message(Severity.WARNING, ChatLine(text), (ChatLine(text),)))
    said = Post("1.0", "U0APP", body["text"], body["blocks"])
    assert (said.kinds, said.links) == ({"emoji", "text"}, [])
    assert [element["text"] for element in said.elements[2:]] == [text or " ", "\n", text or " "]
    assert [element.get("style") for element in said.elements[2:]] == [{"bold": True}, None, None]
    assert "://" not in body["text"]
    assert not any(mention in body["text"] for mention in ("@here", "@channel", "@everyone"))


@given(st.text())
@example(HOSTILE)
def test_no_text_has_a_character_that_begins_markup_of_a_service(text: str) -> None:
    assert not set("@<>&*_`~[]|\\") & set(harmless(text))
    assert "://" not in harmless(text)


@pytest.mark.parametrize(
    ("fault", "kind", "says"),
    [
        (CallFault(error="invalid_auth"), Refused, "Slack says invalid_auth; correct the token in the file"),
        (CallFault(error="missing_scope"), Refused, "scope chat:write"),
        (CallFault(error="not_in_channel"), Refused, "invite the app to it"),
        (CallFault(error="msg_blocks_too_long"), Refused, "Slack says msg_blocks_too_long"),
        (CallFault(error="internal_error"), Unsure, "internal_error; it is looked for"),
        (CallFault("ratelimited", 429, {"Retry-After": "30"}), Later, "Slack asks to wait 30 s"),
        (CallFault("ratelimited", 429, {"Retry-After": "soon"}), Later, "Slack asks to wait 60 s"),
        (CallFault("ratelimited", 429, {"Retry-After": "999999"}), Later, "Slack asks to wait 900 s"),
        (CallFault(status=502, page="<html>bad gateway</html>"), Unsure, "status 502, and no answer of Slack's"),
        (CallFault(page="<html>log in to the proxy</html>"), Unsure, "status 200, and no answer of Slack's"),
        (CallFault(page="[]"), Unsure, "no answer"),
        (CallFault(page='{"ok": true}'), Unsure, "no answer (KeyError)"),
        (CallFault(lost=True), Unsure, "no answer (RemoteDisconnected)"),
    ],
)
async def test_what_goes_wrong_at_slack_says_whether_it_was_carried_out(
    fake: FakeSlack, tmp_path: Path, fault: CallFault, kind: type[ChannelError], says: str
) -> None:
    told = room(fake, tmp_path)
    fake.fail("chat.postMessage", fault)
    with pytest.raises(kind) as raised:
        await told.post(SAID, "mark1")
    assert says in raised.value.message
    assert (raised.value.__cause__, raised.value.__suppress_context__) == (None, True)
    assert len(fake.calls) == 1, "slack_sdk repeats nothing"
    await told.aclose()


async def test_every_text_is_sent_with_the_parsing_that_links_nothing(fake: FakeSlack, tmp_path: Path) -> None:
    """The default of chat.update is another than that of chat.postMessage."""
    told = room(fake, tmp_path)
    thread = await told.post(SAID, "mark1")
    await told.reply(thread, NEW)
    await told.edit(thread, NEW)
    assert [(method, body["parse"], "link_names" in body, body.get("unfurl_links")) for method, body in fake.calls] == [
        ("chat.postMessage", "none", False, False),
        ("chat.postMessage", "none", False, False),
        ("chat.update", "none", False, None),
    ]
    await told.aclose()


async def test_no_error_shows_the_token_where_a_proxy_repeats_it(fake: FakeSlack, tmp_path: Path) -> None:
    told, repeated = room(fake, tmp_path), f"you sent Bearer {fake.token}"
    faults = [CallFault(status=status, page=f"<html>{repeated}</html>") for status in (200, 401, 403, 404, 500, 502)]
    faults += [
        CallFault(error=repeated),
        CallFault(error=fake.token),
        CallFault(page=f'{{"ok": false, "x": "{fake.token}"}}'),
    ]
    fake.fail("chat.postMessage", *faults)
    for _ in faults:
        with capture_logs() as logs, pytest.raises(ChannelError) as raised:
            await told.post(SAID, "mark1")
        assert fake.token not in f"{raised.value!r} {raised.value.message} {raised.value.args} {logs}"
    await told.aclose()


async def test_a_slack_that_is_not_reached_was_sent_nothing(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("xoxb-1")
    told = SlackRoom("gpu-team", Slack(PLACE, tmp_path / "token", "http://127.0.0.1:1/api/"))
    with pytest.raises(Later) as raised:
        await told.post(SAID, "mark1")
    assert "127.0.0.1:1/api/ is not reached (ConnectionRefusedError)" in raised.value.message
    await told.aclose()


async def test_a_token_is_read_again_for_each_message(fake: FakeSlack, tmp_path: Path) -> None:
    told = room(fake, tmp_path)
    (tmp_path / "token").write_text("xoxb-old")
    with pytest.raises(Refused, match="invalid_auth"):
        await told.post(SAID, "mark1")
    (tmp_path / "token").write_text("two words")
    with pytest.raises(Refused, match="holds more than one word") as refused:
        await told.post(SAID, "mark1")
    assert refused.value.field == "token"
    (tmp_path / "token").unlink()
    with pytest.raises(Refused, match="cannot be read"):
        await told.post(SAID, "mark1")
    (tmp_path / "token").write_text(fake.token)
    assert await told.post(SAID, "mark1")
    await told.aclose()


async def test_a_thread_is_found_behind_many_messages_and_since_its_time_only(fake: FakeSlack, tmp_path: Path) -> None:
    told = room(fake, tmp_path)
    thread = await told.post(SAID, "mark1")
    for number in range(250):
        fake.say(PLACE, f"talk {number}")
    assert (await told.find("mark1", LONG_AGO)).thread == thread
    later = datetime.now(UTC) + timedelta(hours=1)
    assert (await told.find("mark1", later)).looked is Looked.NOT_THERE
    fake.scopes = {"chat:write"}
    assert (await told.find("mark1", LONG_AGO)).looked is Looked.CANNOT_TELL
    fake.token = "xoxb-another"
    with pytest.raises(Refused, match="invalid_auth"):  # no look at all: nothing is posted again for that
        await told.find("mark1", LONG_AGO)
    await told.aclose()


async def test_a_message_that_a_user_deleted_is_refused_by_that_name(fake: FakeSlack, tmp_path: Path) -> None:
    told = room(fake, tmp_path)
    thread = await told.post(SAID, "mark1")
    fake.delete(PLACE, thread)
    with pytest.raises(Refused) as refused:
        await told.edit(thread, NEW)
    assert refused.value.field == "thread"
    await told.aclose()


# --- apprise alone ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
async def test_what_one_of_two_services_does_not_take_is_named_by_its_line_and_counts_as_told(tmp_path: Path) -> None:
    async with served(Target()) as (target, port):
        (tmp_path / "urls").write_text(f"json://127.0.0.1:1/secret-1\n\njson://127.0.0.1:{port}/secret-2\n")
        told = AppriseRoom("pager", Apprise(tmp_path / "urls"))
        with capture_logs() as logs:
            await told.post(SAID, "mark1")
        assert logs == [
            {"event": "room told in part", "log_level": "warning", "room": "pager", "failed": ["line 1 (JSON)"]}
        ]
        assert len(target.bodies) == 1
        await told.aclose()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "holds 0 URLs; write 1 to 16, one a line"),
        ("nonsense://secret-4711", "line 1: apprise knows no such URL"),
        ("# fine\njson://localhost\nslack://secret-4711", "line 3: apprise knows no such URL"),
    ],
)
def test_a_file_of_urls_with_a_mistake_is_named_with_its_line_and_quotes_none(
    tmp_path: Path, text: str, says: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "urls").write_text(text)
    with caplog.at_level(logging.DEBUG), pytest.raises(ValueError) as raised:
        AppriseRoom("pager", Apprise(tmp_path / "urls"))
    assert says in str(raised.value)
    assert "secret" not in f"{raised.value} {caplog.text} {capfd.readouterr()}"
