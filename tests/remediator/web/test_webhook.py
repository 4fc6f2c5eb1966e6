"""Alertmanager's posts: who may, what is understood, and what is answered when it cannot be stored."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import aiohttp
import pytest

from remediator.metrics import REGISTRY
from remediator.tickets.webhook.receiver import Received, Result
from remediator.web import webhook
from remediator.web.caller import Callers
from tests.harness import endpoints
from tests.harness.tickets import TicketHarness, delivery, fires


class TicketStore:
    """A receiver that answers as told, and keeps what it was given."""

    def __init__(self) -> None:
        self.given: list[bytes] = []
        self.answer = Received(Result.STORED, "1 alerts")

    async def receive(self, body: bytes, parameters: Sequence[tuple[str, str]]) -> Received:
        self.given.append(body)
        self.parameters = parameters
        return self.answer


class Door:
    """The webhook at an address, and its token."""

    def __init__(self) -> None:
        self.desk, self.token, self.url = TicketStore(), "secret", ""
        self.bodies = webhook.bodies(8)

    async def post(self, body: bytes = b"{}", header: str | None = "Bearer secret") -> tuple[int, str, str]:
        headers = {"Authorization": header} if header is not None else {}
        async with aiohttp.ClientSession() as session, session.post(self.url, data=body, headers=headers) as reply:
            return reply.status, (await reply.text()).strip(), reply.headers.get("Retry-After", "")


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    """Open on a free port, that takes 8 MiB."""
    made = Door()
    callers = Callers("", lambda: made.token)
    routes = webhook.routes(made.desk, made.bodies)  # type: ignore[arg-type]
    async with endpoints.served(routes, callers=callers) as (_, port):
        made.url = f"http://127.0.0.1:{port}{webhook.PATH}"
        yield made


def _count(result: str) -> float:
    return REGISTRY.get_sample_value("remediator_alert_deliveries_total", {"result": result}) or 0.0


def _refused(why: str) -> float:
    return REGISTRY.get_sample_value("remediator_refused_calls_total", {"endpoint": "extender", "reason": why}) or 0.0


@pytest.mark.parametrize(
    "header", [None, "", "Bearer", "Bearer wrong", "Basic secret", "secret", "Bearer sécret", "Bearer secretsecret"]
)
async def test_who_does_not_know_the_token_is_turned_away_and_counted(door: Door, header: str | None) -> None:
    before = _refused("unauthorized")
    status, said, _ = await door.post(header=header)
    assert status == 401
    assert "bearer token" in said
    assert _refused("unauthorized") == before + 1
    assert door.desk.given == []


async def test_without_a_token_of_our_own_nobody_comes_in(door: Door) -> None:
    door.token = ""
    assert [(await door.post(header=header))[0] for header in ("Bearer ", "Bearer", None)] == [401, 401, 401]


async def test_a_token_may_be_exchanged_while_running(door: Door) -> None:
    door.token = "new"
    assert (await door.post(header="Bearer secret"))[0] == 401
    assert (await door.post(header="bearer new"))[0] == 200


@pytest.mark.parametrize(
    ("received", "status", "again"),
    [
        (Received(Result.STORED, "3 alerts"), 200, ""),
        (Received(Result.BAD, "version is '3'"), 400, ""),
        (Received(Result.FORBIDDEN, "owner and repo are a/b"), 403, ""),
        (Received(Result.INVALID, "repo is missing"), 422, ""),
        (Received(Result.LATER, "not stored: 503"), 503, "5"),
    ],
)
async def test_the_answer_says_how_it_went(door: Door, received: Received, status: int, again: str) -> None:
    door.desk.answer = received
    assert await door.post() == (status, received.message, again)


async def test_a_body_of_many_megabytes_is_taken_and_one_beyond_the_limit_is_not(door: Door) -> None:
    assert (await door.post(b"x" * 8 * 1024 * 1024))[0] == 200
    assert len(door.desk.given[0]) == 8 * 1024 * 1024
    status, text, _ = await door.post(b"x" * (8 * 1024 * 1024 + 1))
    assert (status, text) == (413, "more than 8 MiB: group by node, or give Remediator --webhook-mib")


async def test_alertmanager_s_post_becomes_a_ticket(door: Door) -> None:
    harness = TicketHarness()
    await harness.prepare()
    await harness.refresh()
    door.desk.receive = harness.receiver.receive  # type: ignore[method-assign]
    stored, bad = _count("stored"), _count("bad")
    answers = await asyncio.gather(door.post(delivery(fires())), door.post(b'{"text": "GPU"}'))
    assert [status for status, *_ in answers] == [200, 400]
    assert "leave `payload` of the receiver unset" in answers[1][1]
    assert len(await harness.tickets()) == 1
    assert (_count("stored"), _count("bad")) == (stored + 1, bad + 1)
