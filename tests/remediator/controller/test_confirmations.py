"""A policy with a second source: nothing is done to a node before Prometheus agrees, and no answer is a hold."""

import asyncio
from datetime import timedelta

import pytest

from remediator.clock import SYSTEM
from remediator.controller import confirmations
from remediator.controller.explain import explain, snapshot
from remediator.core.breaker import Breaker
from remediator.core.confirmation import ConfirmationVerdict, Question
from remediator.kube.runtime.leader import LeaderQueue
from remediator.prometheus.prometheus import PATIENCE
from remediator.prometheus.reading import CannotTell, Doubt, Reading, Sample
from remediator.prometheus.source import AT_ONCE
from tests.harness.controller import RUNS, ControllerHarness, make_template, running, until
from tests.harness.kinds import CASES, OPERATIONS, POLICIES

pytestmark = pytest.mark.sampled("confirmations")

CONFIRM = {"promQL": 'max(XID{node="{{node}}"})', "within": "30s"}
YES, NO = (Sample(1.0),), (Sample(0.0),)
AWAY = CannotTell(Doubt.UNREACHABLE, "it cannot be reached; look at --prometheus-url")


class Script:
    """A source that says of each node what it was told to say; what it was asked, in order."""

    def __init__(self, default: Reading = YES) -> None:
        self.default, self.asked, self.open, self.most = default, list[str](), 0, 0
        self.of: dict[str, Reading] = {}
        self.go = asyncio.Event()
        self.go.set()

    async def instant(self, query: str, within: timedelta) -> Reading:
        """See Source."""
        node = query.split('"')[1]
        self.asked.append(node)
        self.open += 1
        self.most = max(self.most, self.open)
        await self.go.wait()
        await asyncio.sleep(0)
        self.open -= 1
        return self.of.get(node, self.default)


async def test_a_case_claims_its_node_when_the_second_source_agrees(harness: ControllerHarness) -> None:
    source = Script()
    await harness.policy(confirm=CONFIRM)
    await harness.node("gpu-1", "True")
    async with running(harness, source=source):
        await until(lambda: harness.ended("gpu-1", "Recovered"))
    assert set(source.asked) == {"gpu-1"}
    assert "NotConfirmed" not in harness.story("gpu-1")
    assert "ConfirmationUnknown" not in harness.story("gpu-1")


@pytest.mark.parametrize(
    ("says", "reason", "words"),
    [(NO, "NotConfirmed", "Prometheus says 0"), (AWAY, "ConfirmationUnknown", "Unreachable: it cannot be reached")],
    ids=["0", "away"],
)
async def test_a_second_source_that_does_not_agree_holds_the_case_and_ends_nothing(
    harness: ControllerHarness, says: Reading, reason: str, words: str
) -> None:
    source = Script(says)
    await harness.policy(confirm=CONFIRM)
    await harness.node("gpu-1", "True")
    async with running(harness, source=source):
        await until(lambda: harness.reasons("gpu-1") == [reason])
        await harness.quiet()
        block = harness.cases("gpu-1")[-1]["status"]["blockedBy"][0]
        assert words in block["message"]
        assert (harness.phase("gpu-1"), harness.claims(), harness.ran) == ("Held", [], [])
        assert not harness.look("gpu-1")["spec"].get("unschedulable")
        cache = await snapshot(harness.client, harness.namespaces, SYSTEM)
        node = cache.nodes.get("gpu-1")
        assert node is not None
        lines = [line.strip() for line in explain(cache, node, Breaker(), SYSTEM.now())]
        (shown,) = (line for line in lines if line.startswith("held: "))
        assert shown.startswith(f"held: {reason}: {block['message']} (for ")


async def test_without_a_prometheus_the_policy_says_so_and_its_cases_are_held(harness: ControllerHarness) -> None:
    await harness.policy(confirm=CONFIRM)
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: harness.reasons("gpu-1") == ["ConfirmationUnknown"])
        assert "--prometheus-url" in harness.cases("gpu-1")[-1]["status"]["blockedBy"][0]["message"]
        await until(lambda: harness.all(POLICIES)[0]["status"].get("conditions"))
        conditions = harness.all(POLICIES)[0]["status"]["conditions"]
        assert [(one["status"], one["reason"]) for one in conditions] == [("False", "ConfirmationUnknown")]
        assert "--prometheus-url" in conditions[0]["message"]


async def test_when_the_second_source_agrees_later_the_case_goes_on_by_itself(
    harness: ControllerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("remediator.controller.waits.LOOK_AGAIN", 0.2)
    monkeypatch.setattr(Question, "valid_for", timedelta(seconds=0.1))
    source = Script(NO)
    await harness.policy(confirm=CONFIRM)
    await harness.node("gpu-1", "True")
    async with running(harness, source=source):
        await until(lambda: harness.reasons("gpu-1") == ["NotConfirmed"])
        source.default = (Sample(79.0),)
        monkeypatch.setattr(
            Question, "valid_for", timedelta(seconds=5)
        )  # the answer has to outlive the way to the reboot
        await until(lambda: harness.ended("gpu-1", "Recovered"))


async def test_cases_of_other_policies_do_not_wait_for_answers_and_take_no_place_of_theirs(
    harness: ControllerHarness,
) -> None:
    source = Script()
    source.go.clear()
    await harness.policy(confirm=CONFIRM)
    await harness.policy("nvlink", when=[{"condition": "Nvlink", "for": "0s"}])
    await harness.budget("all", 1)
    for number in range(20):
        await harness.node(f"gpu-{number}", "True")
    await harness.node("other")
    async with running(harness, source=source):
        await until(lambda: len(source.asked) == AT_ONCE)
        await harness.condition("other", "True", "Nvlink")
        await until(lambda: "other" in harness.claims())
        assert source.most == AT_ONCE


async def test_questions_that_nobody_asks_any_more_are_not_asked(harness: ControllerHarness) -> None:
    """The budget has room for one: once it is taken, the others wait for the budget and not for Prometheus."""
    source = Script()
    harness.answer("reboot", RUNS)
    await harness.policy(confirm=CONFIRM)
    await harness.budget("all", 1)
    source.go.clear()
    for number in range(30):
        await harness.node(f"gpu-{number:02}", "True")
    async with running(harness, source=source):
        await until(lambda: len(source.asked) == AT_ONCE)
        await until(lambda: len(harness.all(CASES)) == 30)
        source.go.set()
        await until(lambda: len(harness.claims()) == 1)
        names = [f"gpu-{number:02}" for number in range(30)]
        await until(lambda: [harness.reasons(name) for name in names].count(["BudgetSpent"]) == 29)
    assert len(source.asked) <= 30


async def test_before_the_intent_it_is_asked_again_and_an_operation_without_it_is_no_attempt(
    harness: ControllerHarness,
) -> None:
    """The drain took long: what was confirmed at its start is not so any more."""
    source = Script()
    await make_template(harness, "reset", drain={"strategy": "Evict", "timeout": "5m"})
    harness.answer("drain", RUNS)
    await harness.policy(confirm=CONFIRM, ladder=[{"operation": "reset"}])
    await harness.node("gpu-1", "True")
    async with running(harness, source=source) as controller:
        await until(lambda: any("drain" in one for one in harness.ran))
        source.default = NO
        controller._admissions.confirmations.clear()
        await harness.finish("drain")
        await until(lambda: harness.reasons("gpu-1") == ["NotConfirmed"])
        status = harness.cases("gpu-1")[-1]["status"]
        assert [(one["outcome"], one["message"].partition(" to ")[0]) for one in status["attempts"]] == [
            ("Cancelled", "Prometheus says 0")
        ]
        assert [one["status"]["reason"] for one in harness.all(OPERATIONS)] == ["NotConfirmed"]
        assert "reset gpu-1" not in harness.ran
        assert harness.claims() == ["gpu-1"]


async def test_what_waits_long_for_its_turn_says_so(
    harness: ControllerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(confirmations, "UNANSWERED", 0.2)
    monkeypatch.setattr("remediator.controller.admission.UNANSWERED", 0.2)
    source = Script()
    source.go.clear()
    await harness.policy(confirm=CONFIRM)
    await harness.node("gpu-1", "True")
    async with running(harness, source=source):
        await until(lambda: harness.reasons("gpu-1") == ["ConfirmationUnknown"])
        assert "has not answered yet" in harness.cases("gpu-1")[-1]["status"]["blockedBy"][0]["message"]
        source.go.set()
        await until(lambda: harness.ended("gpu-1", "Recovered"))


async def test_an_answer_is_used_no_longer_than_it_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    question = Question('X{node="gpu-1"}', timedelta(seconds=60))
    asked = confirmations.Confirmations(Script(), lambda: clock[0])
    asked.want([question])
    await asked._ask(question)
    assert asked.answers([question, None])[question].verdict is ConfirmationVerdict.CONFIRMED
    clock[0] += 30
    assert asked.answers([question]) == {}
    assert asked.answer(question) is None
    clock[0] += confirmations.UNANSWERED
    late = asked.answer(question)
    assert late is not None
    assert (late.verdict, late.open) == (ConfirmationVerdict.UNKNOWN, True)


class Slow(Script):
    """A source whose answers take a time of this clock."""

    def __init__(self, clock: list[float], seconds: float, default: Reading = YES) -> None:
        super().__init__(default)
        self._clock, self._seconds = clock, seconds

    async def instant(self, query: str, within: timedelta) -> Reading:
        """See Source."""
        self._clock[0] += self._seconds
        return await super().instant(query, within)


@pytest.mark.parametrize(
    ("within", "seconds", "verdict"),
    [
        (10, 4.9, ConfirmationVerdict.CONFIRMED),
        (10, 5.0, ConfirmationVerdict.UNKNOWN),
        (30, PATIENCE, ConfirmationVerdict.CONFIRMED),
    ],
)
async def test_an_answer_that_is_too_old_when_it_comes_holds_the_case_and_says_what_to_change(
    within: int, seconds: float, verdict: ConfirmationVerdict
) -> None:
    clock = [100.0]
    question = Question('X{node="gpu-1"}', timedelta(seconds=within))
    asked = confirmations.Confirmations(Slow(clock, seconds), lambda: clock[0])
    asked.want([question])
    await asked._ask(question)
    answer = asked.answers([question])[question]
    assert (answer.verdict, answer.open) == (verdict, False)
    if verdict is ConfirmationVerdict.UNKNOWN:
        assert "TimedOut: its answer came too late: with a within of 10 s it may be used for 5 s" in answer.why
        assert "make spec.confirm.within of the policy longer" in answer.why
    clock[0] += within / 2
    assert asked.answers([question]) == {}


async def test_why_nobody_can_tell_is_known_as_long_as_an_answer_would_be_from_when_it_came() -> None:
    clock = [100.0]
    question = Question('X{node="gpu-1"}', timedelta(seconds=10))
    asked = confirmations.Confirmations(Slow(clock, 20.0, AWAY), lambda: clock[0])
    asked.want([question])
    await asked._ask(question)
    clock[0] += 4.9
    assert asked.answers([question])[question].why == f"Prometheus: Unreachable: {AWAY.message} ({question.query})"


async def test_answers_are_told_of_though_nobody_wants_the_last_question_any_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two answers within 0.25 s, and then the last question in the queue, which is not asked."""
    clock, depth, times = [100.0], [2], list[float]()
    monkeypatch.setattr(LeaderQueue, "depth", property(lambda _: depth[0]))
    first, second, dropped = (Question(f'X{{node="gpu-{n}"}}', timedelta(seconds=60)) for n in range(3))
    asked = confirmations.Confirmations(Slow(clock, 0.1), lambda: clock[0], lambda: times.append(clock[0]))
    asked.want([first, second])
    for question in (first, second, dropped):
        await asked._ask(question)
        depth[0] -= 1
    assert times == [pytest.approx(100.1), pytest.approx(100.2)]
