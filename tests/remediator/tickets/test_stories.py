"""Whole stories: alerts and cases of one node share one issue, from its creation to its end."""

from datetime import timedelta

import pytest

from remediator.core.ticket import ClosedBy, TicketPhase
from remediator.tickets.channels.base import Draft, Issue
from tests.harness.kinds import CASES, POLICIES
from tests.harness.tickets import TicketHarness, delivery, ends, fires


async def test_a_firing_alert_gets_one_issue_and_its_end_closes_it_with_a_word(harness: TicketHarness) -> None:
    assert (await harness.hear(delivery(fires(minute=0)))).result.value == "stored"
    await harness.work()
    issue = harness.channel.issue(1)
    assert (issue.repository, issue.title, issue.open) == ("org/default", "[prod] gpu-17: NodeDown", True)
    assert issue.labels == ("remediator", "severity: warning", "ops")
    assert issue.assignees == ("ann",)
    await harness.hear(delivery(ends(minute=0, end=7)))
    await harness.later(minutes=7)
    assert harness.channel.open == []
    assert harness.channel.issue(1).reason == "completed"
    assert "ended at 2026-11-20 09:07:00 UTC, after 7m" in harness.channel.comments[1][-1]
    assert (await harness.ticket()).closed_by is ClosedBy.US


async def test_a_case_and_an_alert_of_one_node_share_one_issue(harness: TicketHarness) -> None:
    await harness.policy()
    await harness.case()
    await harness.hear(delivery(fires()))
    await harness.work()
    assert len(harness.channel.issues) == 1
    assert harness.channel.issue(1).repository == "org/gpu"
    for said in ("`case-1`", "`gpu-lost`", "`NodeDown`", "GPU 3 has fallen off the bus", "remediator explain gpu-17"):
        assert said in harness.channel.issue(1).body


async def test_nothing_is_written_while_nothing_changes(harness: TicketHarness) -> None:
    await harness.policy()
    await harness.case()
    await harness.work()
    await harness.work()
    before, version = list(harness.channel.calls), (await harness.ticket()).version
    for _ in range(5):
        await harness.later(minutes=2)
    assert harness.channel.calls == before == ["create"]
    assert (await harness.ticket()).version == version
    assert harness.channel.reads == 0


async def test_an_escalation_is_told_once_with_what_to_do(harness: TicketHarness) -> None:
    await harness.policy()
    await harness.case()
    await harness.work()
    await harness.escalates()
    for _ in range(3):
        await harness.later(minutes=2)
    (told,) = harness.channel.comments[1]
    assert "A person is needed" in told
    assert "repair the node by hand" in told
    assert "spec.release" in harness.channel.issue(1).body or '"release":true' in harness.channel.issue(1).body


async def test_a_node_that_is_out_for_too_long_gets_an_issue_that_its_return_closes(
    harness: TicketHarness,
) -> None:
    asked = {"operation": "take-out-1", "uid": "u", "templateName": "drain", "requestedBy": "olga"}
    terms = {"until": "2026-11-20T10:00:00Z", "reason": "OPS-17 new PSU"}
    await harness.make(CASES, "case-1", nodeName="gpu-17", nodeUID="uid-gpu-17", manual=asked, keepOut=terms)
    await harness.becomes("case-1", "Escalated", reason="TakenOut", message="gpu-17 is taken out")
    await harness.work()
    assert harness.channel.issues == []
    late = "gpu-17 is taken out by olga; that time is over"
    await harness.becomes("case-1", "Escalated", reason="TakeOutOverdue", message=late)
    await harness.work()
    issue = harness.channel.issue(1)
    assert (issue.repository, issue.title) == ("org/default", "[prod] gpu-17: taken out")
    assert "severity: warning" in issue.labels
    assert "gpu-17`: taken out `by olga until 2026-11-20 10:00:00 UTC: OPS-17 new PSU`" in issue.body
    assert ("remediator put-back gpu-17" in issue.body, '"retry"' in issue.body) == (True, False)
    ended = harness.now.strftime("%Y-%m-%dT%H:%M:%SZ")
    await harness.becomes("case-1", "Escalated", reason="ReleasedByUser", message="put back", endedAt=ended)
    await harness.later(minutes=2)
    assert harness.channel.open == []


async def test_a_case_that_waits_for_no_person_gets_no_issue_until_it_escalates(harness: TicketHarness) -> None:
    await harness.policy(ticket={"when": "OnEscalation"})
    await harness.case()
    await harness.work()
    assert harness.channel.issues == []
    await harness.escalates()
    await harness.work()
    assert harness.channel.open == [1]


async def test_a_recovered_case_closes_its_issue_and_says_how_it_ended(harness: TicketHarness) -> None:
    await harness.policy()
    await harness.case()
    await harness.work()
    harness.now += timedelta(minutes=9)
    await harness.recovers()
    await harness.work()
    assert harness.channel.open == []
    (told,) = harness.channel.comments[1]
    assert "Verified" in told
    assert "good for 5 minutes" in told


async def test_our_own_cordon_that_resolves_the_alert_does_not_close_while_the_case_is_open(
    harness: TicketHarness,
) -> None:
    await harness.policy(ticket={"when": "OnEscalation"})
    await harness.hear(delivery(fires()))
    await harness.work()
    await harness.case(phase="Draining")
    await harness.hear(delivery(ends(end=3)))
    await harness.later(minutes=5)
    assert harness.channel.open == [1]
    await harness.recovers()
    await harness.later(minutes=5)
    assert harness.channel.open == []


async def test_what_came_back_within_a_day_reopens_ours_and_later_opens_another(harness: TicketHarness) -> None:
    await harness.hear(delivery(fires()))
    await harness.work()
    await harness.hear(delivery(ends(end=1)))
    await harness.later(minutes=1)
    await harness.hear(delivery(fires(minute=60)))
    await harness.later(hours=1)
    assert harness.channel.open == [1]
    assert "**New:**" in harness.channel.comments[1][-1]
    await harness.hear(delivery(ends(minute=60, end=61)))
    await harness.later(minutes=2)
    assert harness.channel.open == []
    await harness.hear(delivery(fires(minute=60 * 26)))
    await harness.later(hours=25)
    assert harness.channel.open == [2]
    assert f"Before this: {harness.channel.issue(1).url}" in harness.channel.issue(2).body


@pytest.mark.parametrize(("within", "back", "issue"), [(90, 60, 1), (90, 120, 2), (0, 60, 2)])
async def test_for_how_long_what_comes_back_reopens_ours_is_an_option(within: int, back: int, issue: int) -> None:
    """In minutes: the issue is closed after the first."""
    harness = TicketHarness(reopen_within=timedelta(minutes=within))
    await harness.prepare()
    await harness.hear(delivery(fires()))
    await harness.work()
    await harness.hear(delivery(ends(end=1)))
    await harness.later(minutes=1)
    assert harness.channel.open == []
    await harness.hear(delivery(fires(minute=back)))
    await harness.later(minutes=back)
    assert harness.channel.open == [issue]


async def test_a_second_closing_says_again_how_it_ended(harness: TicketHarness) -> None:
    for start in (0, 60):
        await harness.hear(delivery(fires(minute=start)))
        await harness.later(minutes=5)
        await harness.hear(delivery(ends(minute=start, end=start + 3)))
        await harness.later(minutes=5)
    assert sum("closing it" in text for text in harness.channel.comments[1]) == 2
    assert harness.channel.calls.count("close") == 2


# --- people --------------------------------------------------------------------------------------------------------


async def test_what_a_person_closed_stays_closed_for_the_same_causes(harness: TicketHarness) -> None:
    await harness.policy()
    await harness.case()
    await harness.work()
    harness.channel.shut(1)
    await harness.becomes("case-1", "Operating")
    for _ in range(3):
        await harness.later(hours=2)
    assert harness.channel.open == []
    assert len(harness.channel.issues) == 1
    ticket = await harness.ticket()
    assert (ticket.phase, ticket.closed_by) == (TicketPhase.CLOSED, ClosedBy.USER)


async def test_a_cause_that_began_after_a_person_closed_it_opens_a_new_issue(harness: TicketHarness) -> None:
    await harness.hear(delivery(fires(minute=0)))
    await harness.work()
    harness.channel.shut(1)
    await harness.hear(delivery(fires(minute=0), fires("GpuHot", minute=30)))
    await harness.later(minutes=30)
    assert harness.channel.open == [2]
    assert "GpuHot" in harness.channel.issue(2).body


async def test_the_same_alert_that_ends_and_fires_again_after_a_person_closed_it_opens_a_new_issue(
    harness: TicketHarness,
) -> None:
    await harness.hear(delivery(fires(minute=0)))
    await harness.work()
    harness.channel.shut(1)
    await harness.hear(delivery(ends(minute=0, end=5)))
    await harness.later(minutes=5)
    await harness.hear(delivery(fires(minute=180)))
    await harness.later(hours=3)
    assert harness.channel.open == [2]


async def test_the_younger_of_two_alerts_of_a_name_ending_is_no_new_cause(harness: TicketHarness) -> None:
    await harness.hear(delivery(fires(minute=0, gpu="0"), fires(minute=10, gpu="1")))
    await harness.later(minutes=10)
    harness.channel.shut(1)
    await harness.hear(delivery(ends(minute=10, end=20, gpu="1")))
    await harness.later(hours=2)
    assert (await harness.ticket()).closed_by is ClosedBy.USER
    await harness.later(hours=2)
    assert len(harness.channel.issues) == 1


async def test_a_person_who_opens_it_again_has_it_kept_up_again(harness: TicketHarness) -> None:
    await harness.hear(delivery(fires()))
    await harness.work()
    harness.channel.shut(1)
    await harness.later(hours=2)
    harness.channel.change_by_user(1, open=True, reason="reopened", closed_by_user=False)
    await harness.later(hours=2)
    assert (await harness.ticket()).phase is TicketPhase.OPEN
    await harness.hear(delivery(ends(end=300)))
    await harness.later(hours=1)
    assert harness.channel.open == []
    assert harness.channel.issue(1).closed_by_user is False


async def test_what_a_person_deleted_is_not_filed_again_for_the_same_causes_nor_asked_for_again(
    harness: TicketHarness,
) -> None:
    await harness.policy()
    await harness.case()
    await harness.work()
    harness.channel.delete(1)
    await harness.becomes("case-1", "Operating")
    await harness.later(minutes=2)
    ticket = await harness.ticket()
    assert (ticket.phase, ticket.closed_by, ticket.issue) == (TicketPhase.CLOSED, ClosedBy.USER, None)
    reads = harness.channel.reads
    for _ in range(3):
        await harness.later(hours=2)
    assert (len(harness.channel.issues), harness.channel.reads) == (1, reads)
    note = (await harness.ticket()).condition("Synced")
    assert note is None or note.status == "True"


@pytest.mark.parametrize("before", ["open", "closed by a person", "closed by us"])
async def test_a_cause_that_began_after_a_person_deleted_the_issue_opens_a_new_one(
    harness: TicketHarness, before: str
) -> None:
    await harness.hear(delivery(fires(minute=0)))
    await harness.work()
    if before == "closed by a person":
        harness.channel.shut(1)
        await harness.later(hours=2)
    elif before == "closed by us":
        await harness.hear(delivery(ends(end=1)))
        await harness.later(hours=2)
    harness.channel.delete(1)
    await harness.hear(delivery(fires("GpuHot", minute=130)))
    await harness.later(minutes=20)
    assert harness.channel.open == [2]
    assert "GpuHot" in harness.channel.issue(2).body
    assert "Before this" not in harness.channel.issue(2).body


async def test_an_issue_that_a_person_moved_is_kept_up_in_its_new_place(harness: TicketHarness) -> None:
    await harness.hear(delivery(fires()))
    await harness.work()
    harness.channel.change_by_user(1, repository="org/other")
    await harness.hear(delivery(fires("GpuHot")))
    await harness.later(minutes=2)
    ticket = await harness.ticket()
    assert (ticket.issue and ticket.issue.repository, harness.channel.open) == ("org/other", [1])
    assert "GpuHot" in harness.channel.issue(1).body


async def test_a_repository_that_was_renamed_is_named_to_whom_keeps_the_routes(harness: TicketHarness) -> None:
    create = harness.channel.create

    async def elsewhere(repository: str, draft: Draft) -> Issue:
        return await create("org/new", draft)

    harness.channel.create = elsewhere  # type: ignore[method-assign]
    await harness.hear(delivery(fires()))
    await harness.work()
    ticket = await harness.ticket()
    note = ticket.condition("RouteInvalid")
    assert note
    assert (note.reason, note.message) == ("RepositoryMoved", "org/default is org/new now; correct the routes file")
    assert ticket.issue
    assert ticket.issue.repository == "org/new"


@pytest.mark.parametrize(("own", "written"), [(64_900, True), (65_300, False)])
async def test_a_text_of_people_that_leaves_no_room_for_ours_is_left_as_it_is(
    harness: TicketHarness, own: int, written: bool
) -> None:
    await harness.hear(delivery(fires()))
    await harness.work()
    theirs = "x" * own
    body = harness.channel.change_by_user(1, body=f"{harness.channel.issue(1).body}\n\n{theirs}").body
    await harness.hear(delivery(fires("GpuHot")))
    for _ in range(3):
        await harness.later(minutes=2)
    assert (harness.channel.issue(1).body != body) is written
    assert harness.channel.issue(1).body.endswith(theirs)
    assert len(harness.channel.comments[1]) == 1
    ticket = await harness.ticket()
    synced = ticket.condition("Synced")
    assert (ticket.condition("BodyFull") is None) is written
    assert synced
    assert synced.reason == ("Synced" if written else "BodyFull")
    harness.channel.change_by_user(1, body=harness.channel.issue(1).body[:-own])
    await harness.hear(delivery(fires("FanStuck")))
    await harness.later(minutes=2)
    assert "FanStuck" in harness.channel.issue(1).body
    assert (await harness.ticket()).condition("BodyFull") is None
    await harness.hear(delivery(ends(), ends("GpuHot"), ends("FanStuck")))
    await harness.later(minutes=2)
    assert harness.channel.open == []


async def test_what_people_write_label_and_assign_survives(harness: TicketHarness) -> None:
    await harness.policy()
    await harness.case()
    await harness.work()
    body = f"my own words\n\n{harness.channel.issue(1).body}\n\nand more: <b>here</b>"
    labels, people = ("remediator", "wontfix"), ("bob",)
    harness.channel.change_by_user(1, title="mine", body=body, labels=labels, assignees=people)
    await harness.becomes("case-1", "Verifying")
    await harness.later(minutes=5)
    issue = harness.channel.issue(1)
    assert "Verifying" in issue.body
    assert issue.body.startswith("my own words\n\n<!-- remediator:begin -->")
    assert issue.body.endswith("<!-- remediator:end -->\n\nand more: <b>here</b>")
    assert (issue.title, issue.labels, issue.assignees) == ("mine", labels, people)


async def test_a_severity_that_changes_swaps_our_label_only(harness: TicketHarness) -> None:
    await harness.hear(delivery(fires()))
    await harness.work()
    harness.channel.change_by_user(1, labels=(*harness.channel.issue(1).labels, "rack-7"))
    await harness.hear(delivery(fires("GpuLost", severity="critical")))
    await harness.later(minutes=5)
    assert harness.channel.issue(1).labels == ("remediator", "ops", "rack-7", "severity: critical")


# --- shared causes, other subjects ---------------------------------------------------------------------------------


async def test_many_nodes_with_one_cause_have_one_issue_that_is_not_told_of_each_node(harness: TicketHarness) -> None:
    correlation = {"nodes": 3, "within": "10m"}
    await harness.policy(ticket={"when": "OnEscalation"}, correlation=correlation)
    block = {"reason": "SharedCause", "message": "40 nodes show the same message"}
    for number in range(40):
        held = {"at": "2026-11-20T09:00:00Z", "reason": "SharedCause"}
        await harness.case(f"case-{number}", f"node-{number}", blockedBy=[block], timeline=[held])
    await harness.work()
    assert [issue.title for issue in harness.channel.issues] == ["[prod] many nodes: GpuLost"]
    for number in range(39):
        await harness.recovers(f"case-{number}")
    await harness.later(minutes=5)
    assert (harness.channel.open, harness.channel.comments[1]) == ([1], [])
    await harness.recovers("case-39")
    await harness.later(minutes=5)
    assert harness.channel.open == []
    assert "and 20 more cases" in harness.channel.comments[1][0]


async def test_a_case_that_turns_out_to_share_its_cause_moves_to_the_shared_issue(harness: TicketHarness) -> None:
    await harness.policy(correlation={"nodes": 3, "within": "10m"})
    await harness.case()
    await harness.work()
    block = {"reason": "SharedCause", "message": "3 nodes show the same message"}
    await harness.becomes("case-1", "Held", blockedBy=[block])
    await harness.later(minutes=2)
    assert harness.channel.open == [2]
    assert "moved" in harness.channel.comments[1][0]


async def test_an_alert_that_names_no_node_has_an_issue_of_its_own_for_each_cluster(harness: TicketHarness) -> None:
    for cluster in ("a", "b"):
        await harness.hear(delivery(fires("Down", node="", cluster=cluster), fires("Down", node="", cluster=cluster)))
    await harness.work()
    assert sorted(issue.title for issue in harness.channel.issues) == ["[prod] a: Down", "[prod] b: Down"]


async def test_a_dry_run_and_a_policy_without_tickets_get_none(harness: TicketHarness) -> None:
    await harness.policy("dry", mode="DryRun")
    await harness.policy("never", ticket={"when": "Never"})
    await harness.case("case-1", policy="dry", phase="Escalated")
    await harness.case("case-2", policy="never", phase="Escalated")
    await harness.work()
    assert (harness.channel.issues, await harness.tickets()) == ([], [])


async def test_a_policy_that_is_deleted_neither_opens_nor_closes(harness: TicketHarness) -> None:
    await harness.policy()
    await harness.case("case-1")
    await harness.escalates("case-1")
    await harness.work()
    await harness.client.delete(POLICIES, "gpu-lost")
    await harness.case("case-2", node="gpu-18")
    await harness.later(minutes=5)
    assert harness.channel.open == [1]


async def test_an_unknown_route_goes_to_the_default_and_says_so(harness: TicketHarness) -> None:
    await harness.policy(ticket={"when": "Always", "route": "tpu"})
    await harness.case()
    await harness.work()
    assert harness.channel.issue(1).repository == "org/default"
    note = (await harness.ticket()).condition("RouteInvalid")
    assert note
    assert (note.status, note.reason) == ("True", "UnknownRoute")
    assert "no route tpu in the routes file" in harness.channel.issue(1).body


async def test_a_ticket_without_cause_goes_after_a_week_unless_an_alert_comes_meanwhile(harness: TicketHarness) -> None:
    await harness.hear(delivery(fires()))
    await harness.work()
    await harness.hear(delivery(ends(end=1)))
    await harness.later(minutes=2)
    await harness.later(days=6)
    assert len(await harness.tickets()) == 1
    await harness.refresh()
    await harness.receiver.receive(delivery(fires(minute=60 * 24 * 8)))
    harness.world.note(await harness.ticket())
    await harness.later(days=2)
    assert harness.channel.open == [2]
    await harness.hear(delivery(ends(minute=60 * 24 * 8, end=60 * 24 * 8 + 1)))
    await harness.later(minutes=5)
    await harness.later(days=8)
    assert await harness.tickets() == []


@pytest.mark.parametrize("gone", ["Escalated", "Operating"])
async def test_a_case_that_is_deleted_closes_its_issue(harness: TicketHarness, gone: str) -> None:
    await harness.policy()
    await harness.case(phase=gone)
    await harness.work()
    await harness.client.delete(CASES, "case-1")
    await harness.later(minutes=2)
    assert harness.channel.open == []
    assert "its case was deleted" in harness.channel.comments[1][0]
