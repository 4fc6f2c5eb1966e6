"""GitHub's posts about comments: only what it has signed counts, and it does no more than to have them read at once."""

import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from remediator.core.names import Namespaces
from remediator.kube.informers import Informers
from remediator.kube.wire import errors
from remediator.metrics import REGISTRY
from remediator.tickets.commands.hint import Hints
from remediator.tickets.reconcile.cache import TicketCache
from remediator.web import github_hook
from tests.harness import endpoints
from tests.harness.kinds import TICKETS
from tests.harness.tickets import GPU, TicketHarness

HINT = "remediator.dev/comment-hint"


def test_the_signature_is_that_of_githubs_own_example() -> None:
    signed = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    assert github_hook.is_signed(b"Hello, World!", signed, "It's a Secret to Everybody")
    assert not github_hook.is_signed(b"Hello, World", signed, "It's a Secret to Everybody")
    assert not github_hook.is_signed(b"Hello, World!", signed, "It's a Secret to Everybody!")


def signature(body: bytes, secret: str = "secret") -> str:
    """As GitHub makes it."""
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def comment(id: int = 4711, action: str = "created", issue: int = 12, repository: str = "Org/GPU") -> bytes:
    """The fields of GitHub's payload that are read, and some that are not."""
    posted = {
        "action": action,
        "repository": {"full_name": repository, "private": True},
        "issue": {"number": issue, "title": "gpu-17"},
        "comment": {"id": id, "body": "/hold 2h", "user": {"login": "ann"}},
    }
    return json.dumps(posted).encode()


class Door(TicketHarness):
    """The endpoint beside a Ticket whose issue is org/gpu#12."""

    async def begin(self) -> None:
        await self.make(TICKETS, GPU.name, subject={"kind": "Node", "nodeName": "gpu-17"})
        issue = {"repository": "org/gpu", "number": 12, "url": ""}
        await self.client.patch(TICKETS, GPU.name, {"status": {"phase": "Open", "issue": issue}}, subresource="status")
        self.secret, self.url = "secret", ""

    async def post(self, body: bytes, event: str = "issue_comment", **headers: str) -> tuple[int, str]:
        await self.refresh()
        self.hints._cache = self.world
        wanted = {"X-GitHub-Event": event, "X-Hub-Signature-256": signature(body)} | headers
        async with aiohttp.ClientSession() as session, session.post(self.url, data=body, headers=wanted) as reply:
            return reply.status, (await reply.text()).strip()

    async def hint(self) -> str:
        annotations = (await self.client.get(TICKETS, GPU.name))["metadata"].get("annotations") or {}
        return str(annotations.get(HINT, ""))


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    made = Door()
    await made.begin()
    made.hints = Hints(made.client, TicketCache(Informers(made.client, made.clock, Namespaces())))
    routes = github_hook.routes(made.hints, lambda: made.secret, github_hook.bodies())
    async with endpoints.served(routes) as (_, port):
        made.url = f"http://127.0.0.1:{port}{github_hook.PATH}"
        yield made


async def test_a_new_comment_stands_on_the_ticket_of_its_issue_once(door: Door) -> None:
    assert await door.post(comment()) == (200, "the comments are read now")
    assert await door.hint() == "4711"
    before = (await door.client.get(TICKETS, GPU.name))["metadata"]["resourceVersion"]
    for replayed in (comment(), comment(id=4710)):
        assert await door.post(replayed) == (200, "nothing new below an issue of ours")
    assert (await door.client.get(TICKETS, GPU.name))["metadata"]["resourceVersion"] == before


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Hub-Signature-256": ""},
        {"X-Hub-Signature-256": signature(comment(), "other")},
        {"X-Hub-Signature-256": signature(comment(id=1))},
        {"X-Hub-Signature-256": signature(comment()).removeprefix("sha256=")},
        {"X-Hub-Signature-256": "sha1=0123456789"},
        {"X-Hub-Signature-256": "sha256=é"},
    ],
)
async def test_what_is_not_signed_with_our_secret_does_nothing(door: Door, headers: dict[str, str]) -> None:
    before = _count("unsigned")
    status, text = await door.post(comment(), **headers)
    assert (status, "give GitHub and Remediator the same secret" in text) == (401, True)
    assert await door.hint() == ""
    assert _count("unsigned") == before + 1


def _count(result: str) -> float:
    return REGISTRY.get_sample_value("remediator_comment_hints_total", {"result": result}) or 0.0


async def test_while_our_secret_is_empty_nobody_is_believed(door: Door) -> None:
    door.secret = ""
    assert (await door.post(comment(), **{"X-Hub-Signature-256": signature(comment(), "")}))[0] == 401


@pytest.mark.parametrize(
    ("body", "event"),
    [
        (comment(issue=13), "issue_comment"),
        (comment(repository="org/other"), "issue_comment"),
        (comment(action="edited"), "issue_comment"),
        (comment(action="deleted"), "issue_comment"),
        (b'{"zen": "Design for failure."}', "ping"),
        (comment(), "issues"),
    ],
)
async def test_what_is_no_new_comment_below_an_issue_of_ours_is_left_alone(door: Door, body: bytes, event: str) -> None:
    assert (await door.post(body, event))[0] == 200
    assert await door.hint() == ""


DEEP = b'{"more": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"


@pytest.mark.parametrize("body", [b"payload=%7B%7D", b"{}", b"\xff", comment().replace(b"4711", b'"4711"'), DEEP])
async def test_what_github_does_not_send_is_refused_with_what_to_set(door: Door, body: bytes) -> None:
    status, text = await door.post(body)
    assert (status, "set the content type to application/json" in text) == (400, True)


async def test_more_than_a_mebibyte_is_not_read(door: Door) -> None:
    assert (await door.post(b" " * (2**20 + 1)))[0] == 413


async def test_while_the_api_server_is_away_comments_are_read_all_the_same(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*given: Any) -> None:
        raise errors.Unavailable(0, "", "no connection")

    monkeypatch.setattr(door.client, "patch", away)
    assert (await door.post(comment()))[0] == 503
