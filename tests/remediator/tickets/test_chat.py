"""Rooms hear of issues: from an alert or a case to a thread of Slack, over the embedded server and slack_sdk."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from remediator.core.policy import Severity
from remediator.core.window import Window
from remediator.kube.wire import errors
from remediator.tickets.channels.base import Later
from remediator.tickets.channels.routes import Route
from remediator.tickets.chat.run import AFTER_REFUSAL, EVERY, PACE
from remediator.tickets.chat.store import ThreadStore
from remediator_sim.slack import CallFault
from tests.harness.chat import PLACE, ROOM, ChatHarness, chat_harness
from tests.harness.kinds import CRDS
from tests.harness.tickets import delivery, ends, fires

pytestmark = pytest.mark.sampled("chat")

POST = "chat.postMessage"


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[ChatHarness]:
    async with chat_harness(tmp_path) as made:
        yield made


async def test_an_issue_has_one_thread_that_is_edited_and_says_when_a_person_is_needed_and_when_it_is_over(
    harness: ChatHarness,
) -> None:
    await harness.policy()
    await harness.case()
    await harness.told()
    (thread,) = harness.threads
    assert thread.lines == [
        "[prod] gpu-17: GpuLost",
        "Warning, it waits",
        "gpu-lost on gpu-17: Held",
        "Issue: org/gpu#1",
    ]
    assert thread.links == [link["url"] for link in thread.elements if link["type"] == "link"]
    await harness.becomes("case-1", "Draining")
    await harness.told(minutes=2)
    assert (harness.heads, harness.replies()) == (["Warning, it is being repaired"], [])
    await harness.escalates()
    await harness.told(minutes=2)
    assert (harness.heads, harness.replies()) == (["Warning, a person is needed"], ["Warning, a person is needed"])
    await harness.recovers()
    await harness.told(minutes=2)
    assert harness.heads == ["Warning, it is over"]
    assert harness.replies()[1:] == ["Warning, it is over"]
    asked = len(harness.slack.calls)
    assert await harness.told(minutes=2) == EVERY
    assert len(harness.slack.calls) == asked


async def test_what_is_over_within_a_minute_of_the_last_edit_is_edited_once_more(harness: ChatHarness) -> None:
    await harness.policy()
    await harness.case()
    await harness.told()
    await harness.escalates()
    await harness.told(minutes=2)
    await harness.recovers()
    await harness.told(seconds=10)
    assert (harness.heads, harness.replies()[-1]) == (["Warning, a person is needed"], "Warning, it is over")
    await harness.told(minutes=1)
    assert harness.heads == ["Warning, it is over"]


async def test_a_storm_of_40_causes_is_one_message_that_is_edited(harness: ChatHarness) -> None:
    await harness.nodes(*(f"node-{number}" for number in range(40)))
    await harness.hear(delivery(*(fires(node=f"node-{number}") for number in range(40))))
    await harness.told()
    (thread,) = harness.threads
    assert thread.lines[0] == "[prod] 40 issues at once: 0 need a person, 0 are over"
    assert (len(thread.lines), thread.lines[-1]) == (22, "and 20 more: kubectl get tickets")
    await harness.hear(delivery(*(ends(node=f"node-{number}") for number in range(30)), fires(node="gpu-17")))
    await harness.told(minutes=2)
    assert [thread.lines[0] for thread in harness.threads] == ["[prod] 41 issues at once: 0 need a person, 30 are over"]
    assert len(harness.slack.channels[PLACE]) == 1
    assert [method for method, _ in harness.slack.calls] == [POST, "chat.update"]


async def test_five_that_come_together_have_a_thread_each_and_the_sixth_begins_one_for_all_that_follow(
    harness: ChatHarness,
) -> None:
    await harness.nodes(*(f"node-{number}" for number in range(9)))
    await harness.hear(delivery(*(fires(node=f"node-{number}") for number in range(5))))
    await harness.told()
    assert len(harness.threads) == 5
    await harness.hear(delivery(fires(node="node-5"), fires(node="node-6")))
    await harness.told(minutes=1)
    await harness.hear(delivery(fires(node="node-7")))
    await harness.told(minutes=2)
    assert [thread.lines[0] for thread in harness.threads[5:]] == [
        "[prod] 3 issues at once: 0 need a person, 0 are over"
    ]
    await harness.hear(delivery(fires(node="node-8")))
    await harness.told(minutes=20)
    assert len(harness.threads) == 7


async def test_a_room_hears_only_of_its_severities_and_routes(harness: ChatHarness) -> None:
    harness.hears(Severity.CRITICAL, routes=frozenset({"gpu"}))
    await harness.hear(
        delivery(
            fires(severity="critical"),
            fires(node="gpu-18", remediator_route="gpu"),
            fires(node="gpu-0001", severity="critical", remediator_route="gpu"),
        )
    )
    await harness.told()
    assert [thread.lines[0] for thread in harness.threads] == ["[prod] gpu-0001: NodeDown"]


async def test_in_quiet_hours_of_a_route_only_what_is_critical_is_posted_and_the_rest_after_them(
    harness: ChatHarness,
) -> None:
    hour = Window(f"{harness.now.minute} {harness.now.hour} * * *", timedelta(hours=1))
    harness.routes = type(harness.routes)(Route("org/default", quiet=(hour,)))
    harness.restart()
    harness.restart_chat()
    await harness.hear(delivery(fires(), fires(node="gpu-18", severity="critical")))
    await harness.told()
    assert harness.heads == ["Critical, it waits"]
    await harness.told(hours=2)
    assert harness.heads == ["Critical, it waits", "Warning, it waits"]


# --- exactly one thread ----------------------------------------------------------------------------------------------


async def test_a_post_whose_answer_was_lost_is_found_again_by_who_leads_next(harness: ChatHarness) -> None:
    await harness.hear(delivery(fires()))
    harness.slack.fail(POST, CallFault(lost=True, carried_out=True))
    await harness.told()
    harness.restart_chat()
    await harness.told(minutes=2)
    assert len(harness.threads) == 1
    (remembered,) = (await harness.ticket()).chat
    assert (remembered.id, remembered.tries) == (harness.threads[0].ts, 1)
    await harness.hear(delivery(ends()))
    await harness.told(minutes=2)
    assert harness.heads == ["Warning, it is over"]


async def test_a_crash_between_the_post_and_its_record_makes_no_second_thread(
    harness: ChatHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    put, writes = ThreadStore.put, []

    async def dies(self: ThreadStore, *given: object) -> None:
        writes.append(given)
        if len(writes) == 2:
            raise RuntimeError("killed")
        await put(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(ThreadStore, "put", dies)
    await harness.hear(delivery(fires()))
    with pytest.raises(RuntimeError):
        await harness.told()
    harness.restart_chat()
    await harness.told(minutes=2)
    assert len(harness.threads) == 1
    assert [method for method, _ in harness.slack.calls] == [POST, "conversations.history", "chat.update"]


async def test_a_post_that_was_not_carried_out_is_posted_again_after_a_look(harness: ChatHarness) -> None:
    await harness.hear(delivery(fires()))
    harness.slack.fail(POST, CallFault(lost=True))
    await harness.told()
    assert harness.threads == []
    await harness.told(minutes=2)
    assert len(harness.threads) == 1


async def test_where_nobody_can_look_it_is_posted_three_times_at_most(harness: ChatHarness) -> None:
    harness.slack.scopes = {"chat:write"}
    await harness.hear(delivery(fires()))
    harness.slack.fail(POST, *[CallFault(lost=True, carried_out=True)] * 9)
    for _ in range(9):
        await harness.told(minutes=2)
    assert len(harness.threads) == 3
    (remembered,) = (await harness.ticket()).chat
    assert remembered.given_up
    await harness.hear(delivery(ends()))
    await harness.told(minutes=2)
    assert (await harness.ticket()).chat == ()


async def test_of_two_that_believe_to_lead_one_posts(harness: ChatHarness) -> None:
    await harness.hear(delivery(fires()))
    await harness.work()
    await harness.refresh()
    other = harness.another()
    other._store._cache = harness.rooms._cache = harness.rooms._store._cache = harness.world
    before: Any = SimpleNamespace(tickets=list(harness.world.tickets), about=harness.world.about, nodes={})
    await harness.rooms.serve(ROOM)
    harness.now += timedelta(seconds=5)
    other._cache = before  # the other knows nothing yet of what the first has written
    assert await other.serve(ROOM) == PACE
    assert len(harness.threads) == 1


async def test_who_does_not_lead_says_nothing(harness: ChatHarness) -> None:
    harness.leader.is_leader = False
    await harness.hear(delivery(fires()))
    await harness.told()
    assert harness.slack.calls == []


# --- what goes wrong -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", ["invalid_auth", "channel_not_found", "not_in_channel"])
async def test_what_slack_refuses_disturbs_no_issue_and_is_tried_again_after_five_minutes(
    harness: ChatHarness, wrong: str
) -> None:
    await harness.hear(delivery(fires()))
    harness.slack.fail(POST, CallFault(error=wrong))
    assert await harness.told() == AFTER_REFUSAL
    assert (await harness.ticket()).issue is not None
    assert (await harness.ticket()).chat == ()
    await harness.told(minutes=6)
    assert len(harness.threads) == 1


async def test_a_limit_is_kept_for_as_long_as_slack_asks(harness: ChatHarness) -> None:
    await harness.hear(delivery(fires()))
    harness.slack.fail(POST, CallFault("ratelimited", 429, {"Retry-After": "37"}))
    assert await harness.told() == 37
    await harness.told(seconds=37)
    assert len(harness.threads) == 1


async def test_while_github_is_away_rooms_hear_of_what_has_no_issue_yet(harness: ChatHarness) -> None:
    harness.channel.script("create", Later("GitHub is away", 60.0))
    await harness.hear(delivery(fires()))
    await harness.told()
    assert (await harness.ticket()).issue is None
    assert harness.threads[0].lines == ["[prod] gpu-17: NodeDown", "Warning, it waits", "NodeDown: NodeDown on gpu-17"]


async def test_nothing_is_posted_where_the_api_server_keeps_no_threads(harness: ChatHarness) -> None:
    """Its CRD is older than the controller: each post would be forgotten, and posted again."""
    path = CRDS.path("tickets.remediator.dev")
    definition = msgspec.json.decode((await harness.client.transport.request("GET", path)).body)
    for version in definition["spec"]["versions"]:
        del version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]["chat"]
    await harness.client.send("PUT", path, dict, definition)
    await harness.hear(delivery(fires()))
    with capture_logs() as logs:
        assert await harness.told() == AFTER_REFUSAL
    assert (harness.slack.calls, (await harness.ticket()).issue is not None) == ([], True)
    assert "apply deploy/crds" in logs[-1]["message"]


async def test_a_thread_that_a_user_deleted_is_not_begun_again_until_the_issue_is_over(harness: ChatHarness) -> None:
    await harness.hear(delivery(fires()))
    await harness.told()
    harness.slack.delete(PLACE, harness.threads[0].ts)
    await harness.hear(delivery(fires(), fires("GpuHot")))
    await harness.told(minutes=2)
    await harness.told(minutes=2)
    assert harness.threads == []
    await harness.hear(delivery(ends(), ends("GpuHot")))
    await harness.told(minutes=2)
    await harness.hear(delivery(fires(minute=40)))
    await harness.told(minutes=40)
    assert len(harness.threads) == 1


async def test_what_comes_back_within_a_day_goes_on_in_its_thread_and_later_in_another(harness: ChatHarness) -> None:
    await harness.hear(delivery(fires()))
    await harness.told()
    await harness.hear(delivery(ends()))
    await harness.told(minutes=2)
    await harness.hear(delivery(fires(minute=60)))
    await harness.told(hours=1)
    assert len(harness.threads) == 1
    assert harness.replies() == ["Warning, it is over", "Warning, it waits"]
    await harness.hear(delivery(ends(minute=60, end=70)))
    await harness.told(minutes=10)
    await harness.told(hours=30)
    await harness.hear(delivery(fires(minute=1900)))
    await harness.told(hours=1)
    assert len(harness.threads) == 2


async def test_a_room_waits_between_two_messages_as_slack_asks(harness: ChatHarness) -> None:
    await harness.hear(delivery(*(fires(f"Alert{number}", node="") for number in range(5))))
    await harness.work()
    began, steps = harness.now, 0
    while (seconds := await harness.step()) < EVERY:
        harness.now, steps = harness.now + timedelta(seconds=seconds), steps + 1
    assert (steps, len(harness.threads)) == (5, 5)
    assert harness.now - began >= timedelta(seconds=5)


# --- whatever goes wrong ---------------------------------------------------------------------------------------------

SLACK_FAULTS = (
    CallFault(lost=True, carried_out=True),
    CallFault(lost=True),
    CallFault(status=503, page="<html>Service Unavailable</html>", carried_out=True),
    CallFault("ratelimited", 429, {"Retry-After": "5"}),
    CallFault(error="internal_error"),
)


class Killed(Exception):
    """The process ends here."""


def unreliable(harness: ChatHarness, chance: Random) -> None:
    """Writes to the Ticket fail before or after they have their effect, or the process dies with them."""
    put = ThreadStore.put

    async def fails(*given: Any) -> None:
        when = chance.choice(("never", "never", "before", "after", "killed before", "killed after"))
        if when.endswith("before"):
            raise Killed if "killed" in when else errors.Unavailable(0, "Away", "no answer")
        await put(harness.rooms._store, *given)
        if when.endswith("after"):
            raise Killed if "killed" in when else errors.Unavailable(0, "Away", "no answer")

    harness.rooms._store.put = fails  # type: ignore[method-assign]


async def one_life(harness: ChatHarness, seed: int) -> None:
    """Issues come, escalate and end, while Slack, the API server and the leader fail; then all is well."""
    chance = Random(seed)
    await harness.policy()
    for minute, deed in enumerate((harness.case, harness.escalates, harness.recovers)):
        await deed()
        harness.slack.fail(POST, *chance.choices(SLACK_FAULTS, k=chance.randrange(3)))
        harness.slack.fail("chat.update", *chance.choices(SLACK_FAULTS, k=chance.randrange(2)))
        for _ in range(chance.randrange(1, 8)):
            unreliable(harness, chance)
            try:
                await harness.later(seconds=chance.choice((1, 20, 90)))
                await harness.step()
            except Killed:
                harness.restart_chat()
        assert len(harness.threads) <= 1, f"seed {seed}, minute {minute}"
    harness.slack._faults.clear()
    harness.restart_chat()
    for _ in range(4):
        await harness.told(minutes=3)
    assert len(harness.threads) <= 1, f"seed {seed}"
    assert harness.heads in ([], ["Warning, it is over"]), f"seed {seed}"
    texts = [reply.lines[1] for thread in harness.threads for reply in harness.slack.replies(PLACE, thread.ts)]
    assert len(texts) == len(set(texts)), f"seed {seed}: said twice"


async def lives(seeds: range, folder: Path) -> int:
    """All of them; how many threads there were."""
    threads = 0
    for seed in seeds:
        (folder / str(seed)).mkdir()
        async with chat_harness(folder / str(seed)) as harness:
            await one_life(harness, seed)
            threads += len(harness.threads)
    return threads


async def test_whatever_fails_an_issue_has_at_most_one_thread_which_says_at_the_end_what_is_so(tmp_path: Path) -> None:
    assert await lives(range(4), tmp_path) >= 2


@pytest.mark.long
async def test_the_same_over_150_lives(tmp_path: Path) -> None:
    assert await lives(range(1000, 1150), tmp_path) >= 50
