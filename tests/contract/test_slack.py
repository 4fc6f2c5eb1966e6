"""What Slack documents of the methods that rooms use, asked of our fake and of an emulator that others wrote.

The pages are those of chat.postMessage, chat.update, conversations.history and rate limits on docs.slack.dev.
"""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import pytest

from remediator.clock import Clock
from remediator_sim.slack import FakeSlack, MemorySlack
from tests.oracle.emulator import emulated

FAKE, EMULATE = "C0123456789", "gpu-team"
MARK = {"event_type": "remediator_ticket", "event_payload": {"marker": "mark1"}}
BLOCKS = [
    {
        "type": "rich_text",
        "elements": [{"type": "rich_text_section", "elements": [{"type": "text", "text": "<!here>"}]}],
    }
]
Body = dict[str, Any]


class Workspace(NamedTuple):
    """How to call it: `us` may do all that we do, `narrow` may not read, `nobody` and `wrong` may nothing."""

    url: str
    channel: str
    us: str
    narrow: str

    async def call(self, method: str, token: str | None = None, *, form: bool = False, **body: Any) -> Body:
        """One call, as slack_sdk makes it."""
        headers = {"Authorization": f"Bearer {self.us if token is None else token}"} if token != "" else {}
        body = {"channel": self.channel} | body
        sent: Body = {"data": {name: str(value) for name, value in body.items()}} if form else {"json": body}
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{self.url}{method}", headers=headers, **sent) as reply,
        ):
            assert reply.status == 200
            answer: Body = await reply.json()
            return answer

    async def history(self, **more: Any) -> list[Body]:
        """The messages, newest first."""
        answer = await self.call("conversations.history", form=True, **more)
        messages: list[Body] = answer["messages"]
        return messages


@asynccontextmanager
async def ours(folder: Path) -> AsyncIterator[Workspace]:
    async with FakeSlack([FAKE], limited=False) as fake:
        yield Workspace(fake.url, FAKE, fake.token, fake.token)


@asynccontextmanager
async def theirs(folder: Path) -> AsyncIterator[Workspace]:
    async with emulated("slack", folder) as url:
        place = Workspace(f"{url}/api/", "", "xoxb-us", "xoxb-narrow")
        listed = (await place.call("conversations.list"))["channels"]
        (channel,) = (channel["id"] for channel in listed if channel["name"] == EMULATE)
        yield place._replace(channel=channel)


WORKSPACES: dict[str, Callable[[Path], Any]] = {"fake": ours, "emulate": theirs}
CANNOT = {
    "test_a_token_that_is_wrong_is_told_apart_from_none": "it takes any token for its administrator's",
    "test_history_begins_after_a_time_and_comes_in_pages": "it counts the message of `oldest` in, as if inclusive",
    "test_blocks_that_are_none_are_refused": "it does not look into blocks",
    "test_a_reply_to_no_message_is_refused": "it takes any thread_ts",
}


@pytest.fixture(params=["fake", pytest.param("emulate", marks=pytest.mark.cluster)])
async def workspace(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Workspace]:
    if request.param == "emulate" and (reason := CANNOT.get(request.function.__name__)):
        request.applymarker(pytest.mark.xfail(reason=reason, strict=True))
    async with WORKSPACES[request.param](tmp_path) as made:
        yield made


async def test_a_call_without_a_token_is_answered_with_200_and_why(workspace: Workspace) -> None:
    answer = await workspace.call("chat.postMessage", "", text="x")
    assert (answer["ok"], answer["error"]) == (False, "not_authed")


async def test_a_token_that_is_wrong_is_told_apart_from_none(workspace: Workspace) -> None:
    assert (await workspace.call("chat.postMessage", "xoxb-wrong", text="x"))["error"] == "invalid_auth"


async def test_what_is_posted_has_a_time_for_its_name_and_stands_first_in_the_history(workspace: Workspace) -> None:
    first = await workspace.call("chat.postMessage", text="first", blocks=BLOCKS, parse="none", unfurl_links=False)
    second = await workspace.call("chat.postMessage", text="second")
    assert (first["ok"], first["channel"]) == (True, workspace.channel)
    assert float(first["ts"]) < float(second["ts"])
    assert len(first["ts"].partition(".")[2]) == 6
    assert [message["ts"] for message in await workspace.history()][:2] == [second["ts"], first["ts"]]


async def test_metadata_is_shown_only_where_all_of_it_is_asked_for_and_an_edit_keeps_it(workspace: Workspace) -> None:
    ts = (await workspace.call("chat.postMessage", text="x", metadata=MARK))["ts"]
    assert (await workspace.call("chat.update", ts=ts, text="y", blocks=BLOCKS))["ts"] == ts
    (message,) = [message for message in await workspace.history() if message["ts"] == ts]
    (whole,) = [message for message in await workspace.history(include_all_metadata=True) if message["ts"] == ts]
    assert (message["text"], whole["metadata"]) == ("y", MARK)


async def test_replies_are_not_in_the_history_of_the_channel(workspace: Workspace) -> None:
    ts = (await workspace.call("chat.postMessage", text="first"))["ts"]
    reply = await workspace.call("chat.postMessage", text="reply", thread_ts=ts)
    times = [message["ts"] for message in await workspace.history()]
    assert ts in times
    assert reply["ts"] not in times


async def test_history_begins_after_a_time_and_comes_in_pages(workspace: Workspace) -> None:
    times = [(await workspace.call("chat.postMessage", text=f"{number}"))["ts"] for number in range(5)]
    page = await workspace.call("conversations.history", form=True, oldest=times[0], limit=3)
    assert [message["ts"] for message in page["messages"]] == times[:1:-1]
    cursor = page["response_metadata"]["next_cursor"]
    rest = await workspace.call("conversations.history", form=True, oldest=times[0], limit=3, cursor=cursor)
    assert [message["ts"] for message in rest["messages"]] == [times[1]]
    assert not rest.get("response_metadata", {}).get("next_cursor")


@pytest.mark.parametrize(
    ("method", "body", "error"),
    [
        ("chat.postMessage", {"channel": "C0", "text": "x"}, "channel_not_found"),
        ("chat.postMessage", {}, "no_text"),
        ("chat.update", {"ts": "1.000001", "text": "x"}, "message_not_found"),
        ("conversations.history", {"channel": "C0"}, "channel_not_found"),
    ],
)
async def test_what_is_not_there_is_named(workspace: Workspace, method: str, body: Body, error: str) -> None:
    answer = await workspace.call(method, **body)
    assert (answer["ok"], answer["error"]) == (False, error)


async def test_blocks_that_are_none_are_refused(workspace: Workspace) -> None:
    answer = await workspace.call("chat.postMessage", text="x", blocks=[{"kind": "?"}])
    assert (answer["ok"], answer["error"]) == (False, "invalid_blocks")


async def test_a_reply_to_no_message_is_refused(workspace: Workspace) -> None:
    assert not (await workspace.call("chat.postMessage", text="x", thread_ts="1.000001"))["ok"]


async def test_text_of_more_than_40_000_characters_is_cut(workspace: Workspace) -> None:
    ts = (await workspace.call("chat.postMessage", text="x" * 40_001))["ts"]
    (message,) = [message for message in await workspace.history() if message["ts"] == ts]
    assert len(message["text"]) == 40_000


@pytest.mark.cluster
async def test_a_token_that_may_not_read_is_told_which_scope_it_lacks(tmp_path: Path) -> None:
    async with theirs(tmp_path) as emulator, FakeSlack([FAKE], scopes=["chat:write"]) as fake:
        for place in (emulator, Workspace(fake.url, FAKE, fake.token, fake.token)):
            answer = await place.call("conversations.history", place.narrow, form=True)
            assert (answer["ok"], answer["error"], answer["needed"]) == (False, "missing_scope", "channels:history")
            assert answer["provided"] == "chat:write"


def test_a_second_message_in_the_same_second_and_the_51st_edit_of_a_minute_are_told_to_wait() -> None:
    now = 0.0
    slack = MemorySlack([FAKE, "C02"], clock=Clock(lambda: datetime.fromtimestamp(now, UTC), lambda: now))

    def call(method: str, **body: Any) -> Any:
        headers = {"authorization": f"Bearer {slack.token}", "content-type": "application/json; charset=utf-8"}
        return slack.serve(method, headers, json.dumps({"channel": FAKE, "text": "x"} | body).encode())

    ts = call("chat.postMessage").body["ts"]
    limited = call("chat.postMessage")
    assert (limited.status, limited.headers, limited.body["error"]) == (429, {"retry-after": "1"}, "ratelimited")
    assert call("chat.postMessage", channel="C02").status == 200
    assert [call("chat.update", ts=ts).status for _ in range(51)] == [200] * 50 + [429]
    now = 61.0
    assert (call("chat.postMessage").status, call("chat.update", ts=ts).status) == (200, 200)
