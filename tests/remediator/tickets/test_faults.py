"""Lost answers, search that lags, limits, crashes, two leaders: at most one open issue, and none forgotten."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from remediator.core.ticket import TicketPhase
from remediator.kube.wire.transport import Reply
from remediator.tickets.channels.base import Later, Refused
from tests.harness.examples import examples
from tests.harness.tickets import GPU, TicketHarness, delivery, ends, fires


async def test_a_create_whose_answer_was_lost_is_found_and_not_repeated(harness: TicketHarness) -> None:
    harness.channel.script("create", "lost")
    await harness.hear(delivery(fires()))
    await harness.work()
    assert (await harness.ticket()).phase is TicketPhase.PENDING
    await harness.later(minutes=1)
    ticket = await harness.ticket()
    assert (ticket.phase, ticket.issue and ticket.issue.number, ticket.creating) == (TicketPhase.OPEN, 1, None)
    assert harness.channel.calls.count("create") == 1


async def test_a_create_that_was_not_carried_out_is_repeated_only_after_the_wait(harness: TicketHarness) -> None:
    harness.channel.script("create", "dropped")
    await harness.hear(delivery(fires()))
    await harness.work()
    for _ in range(9):
        await harness.later(minutes=1)
        assert harness.channel.calls == []
    await harness.later(minutes=1)
    assert harness.channel.open == [1]


async def test_a_twin_that_the_search_hid_too_long_is_closed_as_duplicate_of_the_older(harness: TicketHarness) -> None:
    harness.channel.script("create", "lost")
    harness.channel.hidden = {1}
    await harness.hear(delivery(fires()))
    await harness.work()
    await harness.later(minutes=10)
    assert harness.channel.open == [1, 2]
    harness.channel.hidden = set()
    await harness.later(minutes=10)
    assert harness.channel.open == [1]
    assert harness.channel.issue(2).reason == "duplicate"
    ticket = await harness.ticket()
    assert (ticket.issue and ticket.issue.number, ticket.creating) == (1, None)


async def test_a_create_whose_cause_ends_meanwhile_is_not_repeated(harness: TicketHarness) -> None:
    harness.channel.script("create", "dropped")
    await harness.hear(delivery(fires()))
    await harness.work()
    await harness.hear(delivery(ends(end=2)))
    await harness.later(minutes=11)
    assert (harness.channel.issues, (await harness.ticket()).phase) == ([], TicketPhase.NEW)


async def test_a_lost_create_whose_cause_ends_meanwhile_is_closed_with_a_word(harness: TicketHarness) -> None:
    harness.channel.script("create", "lost")
    await harness.hear(delivery(fires()))
    await harness.work()
    await harness.hear(delivery(ends(end=2)))
    await harness.later(minutes=2)
    assert (harness.channel.open, len(harness.channel.comments[1])) == ([], 1)


async def test_later_is_tried_again_when_it_said_and_shown_meanwhile(harness: TicketHarness) -> None:
    harness.channel.script("create", Later("rate limit", 37.0))
    await harness.hear(delivery(fires()))
    assert (await harness.work())[GPU] == 37.0
    note = (await harness.ticket()).condition("Synced")
    assert note
    assert (note.status, note.reason) == ("False", "ChannelUnavailable")
    await harness.later(seconds=37)
    assert harness.channel.open == [1]
    note = (await harness.ticket()).condition("Synced")
    assert note
    assert note.status == "True"


async def test_what_is_refused_is_shown_with_its_remedy_and_tried_again_slowly(harness: TicketHarness) -> None:
    harness.channel.script("create", Refused("no such repository org/default", "repository"))
    await harness.hear(delivery(fires()))
    assert (await harness.work())[GPU] == 300.0
    ticket = await harness.ticket()
    note = ticket.condition("Synced")
    assert note
    assert note.message.startswith("no such repository org/default; correct repository")
    assert (ticket.phase, ticket.creating) == (TicketPhase.PENDING, None)
    await harness.later(minutes=5)
    assert harness.channel.open == [1]


async def test_what_is_refused_for_another_reason_is_shown_with_that_one(harness: TicketHarness) -> None:
    harness.channel.script(
        "create", Refused("no such repository", "repository"), Refused("issues are off", "repository")
    )
    await harness.hear(delivery(fires()))
    await harness.work()
    first = (await harness.ticket()).condition("Synced")
    await harness.later(minutes=5)
    then = (await harness.ticket()).condition("Synced")
    assert first
    assert then
    assert then.message.startswith("issues are off; ")
    assert then.since == first.since


async def test_a_tracker_that_is_away_in_other_words_each_time_costs_no_write_each_time(harness: TicketHarness) -> None:
    await harness.hear(delivery(fires()))
    await harness.work()
    harness.channel.script("get", *(Later(f"the limit is spent for {left} s more", 60.0) for left in range(5)))
    await harness.hear(delivery(fires("GpuHot")))
    await harness.later(minutes=2)
    version = (await harness.ticket()).version
    for _ in range(4):
        await harness.later(minutes=2)
    assert (harness.channel.left("get"), (await harness.ticket()).version) == (0, version)


async def test_an_assignee_whom_the_tracker_does_not_know_costs_only_the_assignee(harness: TicketHarness) -> None:
    harness.channel.script("create", Refused("ann cannot be assigned", "assignees"))
    await harness.hear(delivery(fires()))
    await harness.work()
    issue = harness.channel.issue(1)
    assert (issue.assignees, issue.labels) == ((), ("remediator", "severity: warning", "ops"))
    assert "filed without assignees: ann cannot be assigned" in issue.body
    note = (await harness.ticket()).condition("RouteInvalid")
    assert note
    assert note.reason == "AssigneesRefused"


@pytest.mark.parametrize(("fault", "sent"), [("lost", 1), ("dropped", 0)])
async def test_a_comment_of_unknown_end_is_not_repeated(harness: TicketHarness, fault: str, sent: int) -> None:
    await harness.policy()
    await harness.case()
    await harness.work()
    harness.channel.script("comment", fault)
    await harness.escalates()
    for _ in range(3):
        await harness.later(minutes=2)
    assert len(harness.channel.comments[1]) == sent


async def test_a_comment_that_was_put_off_is_sent_once_later(harness: TicketHarness) -> None:
    await harness.policy()
    await harness.case()
    await harness.work()
    harness.channel.script("comment", Later("rate limit", 5.0), Later("rate limit", 5.0))
    await harness.escalates()
    for _ in range(4):
        await harness.later(minutes=2)
    assert len(harness.channel.comments[1]) == 1


async def test_a_close_that_was_carried_out_but_not_recorded_is_not_a_persons(harness: TicketHarness) -> None:
    await harness.hear(delivery(fires()))
    await harness.work()
    harness.channel.change_by_user(1, open=False, reason="completed", closed_by_user=False)
    await harness.hear(delivery(ends(end=1)))
    await harness.later(minutes=1)
    assert (await harness.ticket()).phase is TicketPhase.CLOSED
    assert (await harness.ticket()).closed_by.value == "Remediator"


async def test_of_two_leaders_that_begin_at_once_only_one_creates(harness: TicketHarness) -> None:
    await harness.hear(delivery(fires()))
    other = TicketHarness(harness.channel, harness.server)
    await asyncio.gather(harness.refresh(), other.refresh())
    await asyncio.gather(harness.reconciler.reconcile(GPU, harness.now), other.reconciler.reconcile(GPU, other.now))
    assert harness.channel.calls == ["create"]


async def test_who_does_not_lead_writes_nothing_to_the_tracker(harness: TicketHarness) -> None:
    await harness.hear(delivery(fires()))
    harness.leads = False
    assert (await harness.work())[GPU] == 1.0
    assert harness.channel.calls == []


async def test_an_alert_that_comes_while_the_issue_is_created_loses_neither(harness: TicketHarness) -> None:
    await harness.hear(delivery(fires()))
    create = harness.channel.create

    async def slow(repository: str, draft: Any) -> Any:
        issue = await create(repository, draft)
        await harness.receiver.receive(delivery(fires("GpuHot")))
        return issue

    harness.channel.create = slow  # type: ignore[method-assign]
    await harness.work()
    ticket = await harness.ticket()
    assert ticket.issue is not None
    assert [alert.name for alert in ticket.alerts] == ["GpuHot", "NodeDown"]
    await harness.later(minutes=2)
    assert "GpuHot" in harness.channel.issue(1).body


FAULTS = st.sampled_from([None, None, "lost", "dropped", Later("limit", 3.0), Refused("no")])
MUTE = st.sampled_from([None, None, Later("limit", 3.0), Refused("no")])
STEP = st.one_of(
    st.tuples(st.just("alert"), st.booleans()),
    st.tuples(st.just("wait"), st.sampled_from([1, 3, 12, 70, 1500])),
    st.tuples(st.just("crash"), st.none()),
    st.tuples(st.just("person"), st.booleans()),
    st.tuples(st.just("delete"), st.none()),
)


@pytest.mark.slow
@settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    steps=st.lists(STEP, min_size=3, max_size=14),
    creates=st.lists(FAULTS, max_size=4),
    comments=st.lists(FAULTS, max_size=4),
    closes=st.lists(MUTE, max_size=3),
    edits=st.lists(MUTE, max_size=3),
)
def test_whatever_goes_wrong_a_subject_has_at_most_one_open_issue_and_at_the_end_the_right_one(
    steps: list[Any], creates: list[Any], comments: list[Any], closes: list[Any], edits: list[Any]
) -> None:
    asyncio.run(_story(steps, creates, comments, closes, edits))


async def _story(
    steps: list[Any], creates: list[Any], comments: list[Any], closes: list[Any], edits: list[Any]
) -> None:
    harness = TicketHarness()
    await harness.prepare()
    for verb, faults in (("create", creates), ("comment", comments), ("close", closes), ("edit", edits)):
        harness.channel.script(verb, *faults)
    minute, begun = 0, 0
    for what, how in steps:
        match what:
            case "alert":
                begun = minute if how else begun
                await harness.hear(delivery(fires(minute=begun) if how else ends(minute=begun, end=minute)))
            case "crash":
                harness.restart()
            case "person":
                for issue in [issue for issue in harness.channel.there[-1:] if issue.open is how]:
                    harness.channel.change_by_user(issue.number, open=not how, closed_by_user=how)
            case "delete":
                for issue in harness.channel.there[-1:]:
                    harness.channel.delete(issue.number)
            case "wait":
                minute += how
                harness.now += timedelta(minutes=how)
        await harness.work()
        assert len(harness.channel.open) <= 1
    await harness.hear(delivery(fires(minute=minute + 1)))
    for _ in range(30):
        await harness.later(minutes=10)
    assert len(harness.channel.open) == 1
    ticket = await harness.ticket()
    assert ticket.issue is not None
    assert (ticket.phase, [ticket.issue.number]) == (TicketPhase.OPEN, harness.channel.open)
    await harness.hear(delivery(ends(minute=minute + 1, end=minute + 2)))
    for _ in range(15):
        await harness.later(minutes=10)
    assert harness.channel.open == []


async def test_a_refusal_is_not_shown_any_more_once_nothing_is_wanted(harness: TicketHarness) -> None:
    harness.channel.script("create", *[Refused("no such repository", "repository")] * 2)
    await harness.hear(delivery(fires()))
    await harness.work()
    await harness.hear(delivery(ends(end=1)))
    await harness.later(minutes=5)
    note = (await harness.ticket()).condition("Synced")
    assert note
    assert note.status == "True"
    assert harness.channel.issues == []


@pytest.mark.parametrize("verb", ["create", "edit", "comment"])
async def test_what_happens_while_the_tracker_answers_is_written_and_told_afterwards(
    harness: TicketHarness, verb: str
) -> None:
    await harness.policy()
    await harness.hear(delivery(fires()))
    if verb != "create":
        await harness.work()
        await harness.hear(delivery(fires("GpuHot")))
    method = "change" if verb == "edit" else verb
    call = getattr(harness.channel, method)

    async def slow(*args: Any, **kwargs: Any) -> Any:
        answer = await call(*args, **kwargs)
        if not harness.world.cases:
            await harness.case()
            await harness.escalates()
            stale = harness.world
            await harness.refresh()
            stale.cases = harness.world.cases
            stale.policies = harness.world.policies
        return answer

    setattr(harness.channel, method, slow)
    for _ in range(3):
        await harness.later(minutes=2)
    assert "`case-1`" in harness.channel.issue(1).body
    assert sum("A person is needed" in text for text in harness.channel.comments[1]) == 1


async def test_what_a_person_writes_while_the_create_is_answered_survives_the_first_edit(
    harness: TicketHarness,
) -> None:
    await harness.hear(delivery(fires()))
    create = harness.channel.create

    async def slow(repository: str, draft: Any) -> Any:
        issue = await create(repository, draft)
        harness.channel.change_by_user(1, body=issue.body + "\n\nI am on it.")
        await harness.receiver.receive(delivery(fires("GpuHot")))
        return issue

    harness.channel.create = slow  # type: ignore[method-assign]
    for _ in range(3):
        await harness.later(minutes=2)
    assert "GpuHot" in harness.channel.issue(1).body
    assert harness.channel.issue(1).body.endswith("I am on it.")


async def test_a_cause_that_began_after_a_person_closed_what_we_had_not_seen_yet_opens_a_new_issue(
    harness: TicketHarness,
) -> None:
    harness.channel.script("create", "lost")
    await harness.hear(delivery(fires()))
    await harness.work()
    harness.channel.shut(1)
    await harness.hear(delivery(fires(minute=1)))
    await harness.later(minutes=2)
    assert harness.channel.open == [2]


async def test_what_a_person_reopens_while_we_are_about_to_create_another_is_taken_instead(
    harness: TicketHarness,
) -> None:
    harness.channel.script("create", None, "dropped")
    await harness.hear(delivery(fires()))
    await harness.work()
    harness.channel.shut(1)
    await harness.hear(delivery(fires("GpuHot", minute=1)))
    await harness.later(minutes=1)
    harness.channel.change_by_user(1, open=True, reason="reopened", closed_by_user=False)
    for _ in range(15):
        await harness.later(minutes=1)
    assert (harness.channel.open, len(harness.channel.issues)) == ([1], 1)
    assert "GpuHot" in harness.channel.issue(1).body


async def test_a_cluster_whose_name_we_may_not_read_has_its_tickets_all_the_same(harness: TicketHarness) -> None:
    send = harness.client.transport.request

    async def forbidden(method: str, path: str, **kwargs: Any) -> Reply:
        return Reply(403, b"{}", {}) if "kube-system" in path else await send(method, path, **kwargs)

    harness.client.transport.request = forbidden  # type: ignore[method-assign]
    await harness.hear(delivery(fires()))
    await harness.work()
    assert harness.channel.open == [1]
