"""Who may read: the API server is asked whose a token is and what they may, once for half a minute."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from remediator.clock import SYSTEM
from remediator.kube.api.access_reviews import (
    AccessReviewAnswer,
    AccessStatus,
    TokenReviewAnswer,
    TokenReviewStatus,
    TokenUser,
)
from remediator.kube.wire import errors
from remediator.web.page.readers import COUNTS_SECONDS, LONGEST_TOKEN, MOST_KEPT, MOST_WAITING, Entry, TokenReaders

ALICE = TokenUser(username="alice", uid="7", groups=("oncall", "system:authenticated"), extra={"scope": ("read",)})


class Reviewer:
    """An API server that knows one token, of a user who may or may not."""

    def __init__(self, *, allowed: bool = True, failure: Exception | None = None) -> None:
        self.asked: list[Any] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self._allowed, self.failure = allowed, failure

    async def create(self, kind: Any, body: dict[str, Any], **_: Any) -> Any:
        self.asked.append((kind.plural, body["spec"]))
        await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        if kind.plural == "tokenreviews":
            good = body["spec"]["token"] == "good"
            return TokenReviewAnswer(status=TokenReviewStatus(authenticated=good, user=ALICE if good else TokenUser()))
        return AccessReviewAnswer(status=AccessStatus(allowed=self._allowed))


@pytest.mark.parametrize(("allowed", "entry"), [(True, Entry.MAY), (False, Entry.FORBIDDEN)])
async def test_the_server_is_asked_whose_a_token_is_and_whether_they_may_get_cases(allowed: bool, entry: Entry) -> None:
    reviewer = Reviewer(allowed=allowed)
    assert await TokenReaders(reviewer, SYSTEM).entry("good") is entry
    who = {"user": "alice", "uid": "7", "groups": ["oncall", "system:authenticated"], "extra": {"scope": ["read"]}}
    about = {"verb": "get", "group": "remediator.dev", "resource": "noderemediations"}
    assert reviewer.asked == [
        ("tokenreviews", {"token": "good"}),
        ("subjectaccessreviews", {"resourceAttributes": about} | who),
    ]


@pytest.mark.parametrize("token", ["", "x" * (LONGEST_TOKEN + 1), "ä", "a\x00b", "a\nb"])
async def test_what_can_be_no_token_is_not_asked_about(token: str) -> None:
    reviewer = Reviewer()
    assert await TokenReaders(reviewer, SYSTEM).entry(token) is Entry.NOT_SIGNED_IN
    assert reviewer.asked == []


async def test_an_answer_counts_for_half_a_minute_and_a_bad_token_is_not_kept() -> None:
    now = [0.0]
    reviewer = Reviewer()
    readers = TokenReaders(reviewer, replace(SYSTEM, monotonic=lambda: now[0]))
    for seconds, asked in ((0.0, 2), (COUNTS_SECONDS - 1, 2), (COUNTS_SECONDS + 1, 4)):
        now[0] = seconds
        assert await readers.entry("good") is Entry.MAY
        assert len(reviewer.asked) == asked
    for number in range(MOST_KEPT + 5):
        assert await readers.entry(f"bad-{number}") is Entry.NOT_SIGNED_IN
    asked = len(reviewer.asked)
    assert await readers.entry("good") is Entry.MAY  # it was not driven out
    assert len(reviewer.asked) == asked


async def test_all_who_show_one_token_meanwhile_are_one_question_and_too_many_tokens_wait_for_nothing() -> None:
    reviewer = Reviewer()
    reviewer.gate.clear()
    readers = TokenReaders(reviewer, SYSTEM)
    same = [asyncio.create_task(readers.entry("good")) for _ in range(20)]
    others = [asyncio.create_task(readers.entry(f"bad-{number}")) for number in range(MOST_WAITING - 1)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert await readers.entry("one more") is Entry.LATER
    reviewer.gate.set()
    assert set(await asyncio.gather(*same)) == {Entry.MAY}
    assert set(await asyncio.gather(*others)) == {Entry.NOT_SIGNED_IN}
    assert [spec for plural, spec in reviewer.asked if plural == "tokenreviews"].count({"token": "good"}) == 1


@pytest.mark.parametrize("failure", [errors.Forbidden(403, "", "no"), errors.Unavailable(0, "", "x"), TimeoutError()])
async def test_a_server_that_does_not_say_lets_nobody_in_and_is_asked_again(failure: Exception) -> None:
    reviewer = Reviewer(failure=failure)
    readers = TokenReaders(reviewer, SYSTEM)
    assert await readers.entry("good") is Entry.LATER
    reviewer.failure = None
    assert await readers.entry("good") is Entry.MAY


async def test_the_log_says_once_what_to_apply_and_holds_no_token(capsys: pytest.CaptureFixture[str]) -> None:
    readers = TokenReaders(Reviewer(failure=errors.Forbidden(403, "", "secret-token")), SYSTEM)
    for _ in range(3):
        await readers.entry("secret-token")
    logged = capsys.readouterr().out
    assert logged.count("nobody can sign in to the page") == 1
    assert "kubectl apply -k deploy/page" in logged
    assert "secret-token" not in logged
