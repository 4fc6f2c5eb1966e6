"""Who may read: the API server is asked whose a token is and what they may, once for half a minute."""

import asyncio
from collections.abc import Container
from dataclasses import replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from remediator.clock import SYSTEM
from remediator.kube.api.access_reviews import (
    AccessReviewAnswer,
    AccessStatus,
    TokenReviewAnswer,
    TokenReviewStatus,
    TokenUser,
)
from remediator.kube.wire import errors
from remediator.web.page.readers import (
    AGAIN_SECONDS,
    AUDIENCE,
    COUNTS_SECONDS,
    LONGEST_TOKEN,
    MOST_KEPT,
    MOST_WAITING,
    OF_API_SERVER,
    STRANGERS_A_SECOND,
    Entry,
    TokenReaders,
)

ALICE = TokenUser(username="alice", uid="7", groups=("oncall", "system:authenticated"), extra={"scope": ("read",)})


class Reviewer:
    """An API server that knows one token, of a user who may or may not."""

    def __init__(
        self,
        *,
        refused: Container[str] = (),
        failure: Exception | None = None,
        named: tuple[str, ...] = (AUDIENCE,),
    ) -> None:
        self.asked: list[Any] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.refused, self.failure, self.named = refused, failure, named
        self.good = {"good"}
        self.slow: set[str] = set()  # tokens about which it says nothing until the gate is open; empty: about all

    async def create(self, kind: Any, body: dict[str, Any], **_: Any) -> Any:
        self.asked.append((kind.plural, body["spec"]))
        if not self.slow or body["spec"].get("token") in self.slow:
            await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        if kind.plural == "tokenreviews":
            good = body["spec"]["token"] in self.good
            return TokenReviewAnswer(
                status=TokenReviewStatus(authenticated=good, user=ALICE if good else TokenUser(), audiences=self.named)
            )
        return AccessReviewAnswer(
            status=AccessStatus(allowed=body["spec"]["resourceAttributes"]["resource"] not in self.refused)
        )


TOKEN = {"token": "good", "audiences": ["remediator-page"]}
WHO = {"user": "alice", "uid": "7", "groups": ["oncall", "system:authenticated"], "extra": {"scope": ["read"]}}
CASES = {"verb": "list", "group": "remediator.dev", "resource": "noderemediations"}
NODES = {"verb": "list", "group": "", "resource": "nodes"}


@pytest.mark.parametrize(
    ("refused", "entry"),
    [(set(), Entry.MAY), ({"nodes"}, Entry.FORBIDDEN), ({"noderemediations"}, Entry.FORBIDDEN)],
)
async def test_who_may_list_both_cases_and_nodes_reads(refused: set[str], entry: Entry) -> None:
    reviewer = Reviewer(refused=refused)
    assert await TokenReaders(reviewer, SYSTEM).entry("good") is entry
    rows = [
        ("tokenreviews", TOKEN),
        *(("subjectaccessreviews", {"resourceAttributes": row} | WHO) for row in (CASES, NODES)),
    ]
    assert reviewer.asked == (rows[:2] if "noderemediations" in refused else rows)


@pytest.mark.parametrize("named", [(), ("https://kubernetes.default.svc",)])
async def test_a_token_for_the_api_server_reads_only_where_a_setting_says_so(
    named: tuple[str, ...],
) -> None:
    reviewer = Reviewer(named=named)
    assert await TokenReaders(reviewer, SYSTEM).entry("good") is Entry.NOT_SIGNED_IN
    assert reviewer.asked == [("tokenreviews", TOKEN)]
    assert await TokenReaders(reviewer, SYSTEM, (AUDIENCE, OF_API_SERVER)).entry("good") is Entry.MAY
    assert reviewer.asked[1:3] == [("tokenreviews", TOKEN), ("tokenreviews", {"token": "good"})]


@pytest.mark.parametrize("token", ["", "x" * (LONGEST_TOKEN + 1), "ä", "a\x00b", "a\nb"])
async def test_what_can_be_no_token_is_not_asked_about(token: str) -> None:
    reviewer = Reviewer()
    assert await TokenReaders(reviewer, SYSTEM).entry(token) is Entry.NOT_SIGNED_IN
    assert reviewer.asked == []


class Moved:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.clock = replace(SYSTEM, monotonic=lambda: self.seconds)


async def let_run() -> None:
    """All tasks come as far as they can."""
    for _ in range(10):
        await asyncio.sleep(0)


def asked_about(reviewer: Reviewer, token: str) -> int:
    return sum(plural == "tokenreviews" and spec["token"] == token for plural, spec in reviewer.asked)


async def test_an_answer_counts_for_20_seconds_and_a_bad_token_is_not_kept() -> None:
    moved, reviewer = Moved(), Reviewer()
    readers = TokenReaders(reviewer, moved.clock)
    for moved.seconds, asked in ((0.0, 1), (AGAIN_SECONDS - 1, 1), (COUNTS_SECONDS + 1, 2)):
        assert await readers.entry("good") is Entry.MAY
        assert asked_about(reviewer, "good") == asked
    for number in range(MOST_KEPT + 5):
        readers._rate.left = STRANGERS_A_SECOND
        assert await readers.entry(f"bad-{number}") is Entry.NOT_SIGNED_IN
    assert await readers.entry("good") is Entry.MAY  # it was not driven out
    assert asked_about(reviewer, "good") == 2


async def test_from_20_seconds_on_the_old_answer_counts_until_the_new_one_is_there_and_no_longer_than_30() -> None:
    moved, reviewer = Moved(), Reviewer()
    readers = TokenReaders(reviewer, moved.clock)
    assert await readers.entry("good") is Entry.MAY
    reviewer.gate.clear()
    moved.seconds = AGAIN_SECONDS
    assert await asyncio.wait_for(readers.entry("good"), 60) is Entry.MAY
    await let_run()
    assert asked_about(reviewer, "good") == 2
    moved.seconds = COUNTS_SECONDS
    waits = asyncio.create_task(readers.entry("good"))
    await let_run()
    assert not waits.done()
    reviewer.good.clear()
    reviewer.gate.set()
    assert await waits is Entry.NOT_SIGNED_IN
    moved.seconds = 2 * COUNTS_SECONDS
    await use_up(readers, reviewer)
    assert await readers.entry("good") is Entry.LATER  # a stranger's now


async def use_up(readers: TokenReaders, reviewer: Reviewer) -> None:
    """Strangers ask as much as they may in a second."""
    before = len(reviewer.asked)
    entries = [await readers.entry(f"bad-{number}") for number in range(int(STRANGERS_A_SECOND) + 1)]
    assert entries == [Entry.NOT_SIGNED_IN] * int(STRANGERS_A_SECOND) + [Entry.LATER]
    assert len(reviewer.asked) - before == STRANGERS_A_SECOND


async def test_strangers_together_ask_10_times_a_second_and_keep_no_reader_out_whose_answer_is_due_again() -> None:
    moved, reviewer = Moved(), Reviewer()
    readers = TokenReaders(reviewer, moved.clock)
    assert await readers.entry("good") is Entry.MAY
    moved.seconds = 100 * COUNTS_SECONDS
    await use_up(readers, reviewer)
    assert await readers.entry("good") is Entry.MAY
    moved.seconds += 1
    await use_up(readers, reviewer)


async def test_strangers_that_wait_for_the_server_take_no_turn_of_a_reader() -> None:
    moved, reviewer = Moved(), Reviewer()
    readers = TokenReaders(reviewer, moved.clock)
    assert await readers.entry("good") is Entry.MAY
    moved.seconds = 100 * COUNTS_SECONDS
    reviewer.slow = {f"bad-{number}" for number in range(int(STRANGERS_A_SECOND))}
    reviewer.gate.clear()
    strangers = [asyncio.create_task(readers.entry(token)) for token in sorted(reviewer.slow)]
    await let_run()
    assert await asyncio.wait_for(readers.entry("good"), 60) is Entry.MAY
    reviewer.gate.set()
    assert set(await asyncio.gather(*strangers)) == {Entry.NOT_SIGNED_IN}


async def test_who_may_not_drives_out_nobody_who_may() -> None:
    moved, reviewer = Moved(), Reviewer()
    readers = TokenReaders(reviewer, moved.clock)
    assert await readers.entry("good") is Entry.MAY
    reviewer.refused = {"nodes"}
    reviewer.good |= {f"poor-{number}" for number in range(MOST_KEPT + 5)}
    for number in range(MOST_KEPT + 5):
        readers._rate.left = STRANGERS_A_SECOND
        assert await readers.entry(f"poor-{number}") is Entry.FORBIDDEN
    assert await readers.entry("good") is Entry.MAY
    assert asked_about(reviewer, "good") == 1
    assert len(readers._kept) == MOST_KEPT


async def test_all_who_show_one_token_meanwhile_are_one_question_and_too_many_tokens_wait_for_nothing() -> None:
    moved, reviewer = Moved(), Reviewer()
    reviewer.gate.clear()
    readers = TokenReaders(reviewer, moved.clock)
    same = [asyncio.create_task(readers.entry("good")) for _ in range(20)]
    others = []
    for number in range(MOST_WAITING - 1):
        others.append(asyncio.create_task(readers.entry(f"bad-{number}")))
        await asyncio.sleep(0)
        moved.seconds += 1 / STRANGERS_A_SECOND
    assert await readers.entry("one more") is Entry.LATER
    reviewer.gate.set()
    assert set(await asyncio.gather(*same)) == {Entry.MAY}
    assert set(await asyncio.gather(*others)) == {Entry.NOT_SIGNED_IN}
    assert asked_about(reviewer, "good") == 1


@pytest.mark.parametrize("failure", [errors.Forbidden(403, "", "no"), errors.Unavailable(0, "", "x"), TimeoutError()])
async def test_a_server_that_does_not_say_lets_nobody_in_and_is_asked_again(failure: Exception) -> None:
    reviewer = Reviewer(failure=failure)
    readers = TokenReaders(reviewer, SYSTEM)
    assert await readers.entry("good") is Entry.LATER
    reviewer.failure = None
    assert await readers.entry("good") is Entry.MAY


async def test_the_log_says_once_what_to_apply_and_holds_no_token() -> None:
    readers = TokenReaders(Reviewer(failure=errors.Forbidden(403, "", "secret-token")), SYSTEM)
    with capture_logs() as logs:
        for _ in range(3):
            await readers.entry("secret-token")
    (logged,) = logs
    assert logged["event"] == "nobody can sign in to the page"
    assert "kubectl apply -k deploy/page" in logged["remedy"]
    assert "secret-token" not in str(logged)
