"""Whole stories: alerts and cases of one node share one issue, from its creation to its end."""

from datetime import timedelta

import pytest

from remediator.core.ticket import ClosedBy, TicketPhase
from remediator.tickets.channels.base import Draft, Issue
from tests.harness.kinds import CASES, POLICIES
from tests.remediator.tickets.office import Office, delivery, ends, fires


async def test_a_firing_alert_gets_one_issue_and_its_end_closes_it_with_a_word(office: Office) -> None:
    assert (await office.hear(delivery(fires(minute=0)))).result.value == "stored"
    await office.work()
    issue = office.channel.issue(1)
    assert (issue.repository, issue.title, issue.open) == ("org/default", "[prod] gpu-17: NodeDown", True)
    assert issue.labels == ("remediator", "severity: warning", "ops")
    assert issue.assignees == ("ann",)
    await office.hear(delivery(ends(minute=0, end=7)))
    await office.later(minutes=7)
    assert office.channel.open == []
    assert office.channel.issue(1).reason == "completed"
    assert "ended at 2026-11-20 09:07:00 UTC, after 7m" in office.channel.comments[1][-1]
    assert (await office.ticket()).closed_by is ClosedBy.US


async def test_a_case_and_an_alert_of_one_node_share_one_issue(office: Office) -> None:
    await office.policy()
    await office.case()
    await office.hear(delivery(fires()))
    await office.work()
    assert len(office.channel.issues) == 1
    assert office.channel.issue(1).repository == "org/gpu"
    for said in ("`case-1`", "`gpu-lost`", "`NodeDown`", "GPU 3 has fallen off the bus", "remediator explain gpu-17"):
        assert said in office.channel.issue(1).body


async def test_nothing_is_written_while_nothing_changes(office: Office) -> None:
    await office.policy()
    await office.case()
    await office.work()
    await office.work()
    before, version = list(office.channel.calls), (await office.ticket()).version
    for _ in range(5):
        await office.later(minutes=2)
    assert office.channel.calls == before == ["create"]
    assert (await office.ticket()).version == version
    assert office.channel.reads == 0


async def test_an_escalation_is_told_once_with_what_to_do(office: Office) -> None:
    await office.policy()
    await office.case()
    await office.work()
    await office.escalates()
    for _ in range(3):
        await office.later(minutes=2)
    (told,) = office.channel.comments[1]
    assert "A person is needed" in told
    assert "repair the node by hand" in told
    assert "spec.release" in office.channel.issue(1).body or '"release":true' in office.channel.issue(1).body


async def test_a_case_that_waits_for_no_person_gets_no_issue_until_it_escalates(office: Office) -> None:
    await office.policy(ticket={"when": "OnEscalation"})
    await office.case()
    await office.work()
    assert office.channel.issues == []
    await office.escalates()
    await office.work()
    assert office.channel.open == [1]


async def test_a_recovered_case_closes_its_issue_and_says_how_it_ended(office: Office) -> None:
    await office.policy()
    await office.case()
    await office.work()
    office.now += timedelta(minutes=9)
    await office.recovers()
    await office.work()
    assert office.channel.open == []
    (told,) = office.channel.comments[1]
    assert "Verified" in told
    assert "good for 5 minutes" in told


async def test_our_own_cordon_that_resolves_the_alert_does_not_close_while_the_case_is_open(office: Office) -> None:
    await office.policy(ticket={"when": "OnEscalation"})
    await office.hear(delivery(fires()))
    await office.work()
    await office.case(phase="Draining")
    await office.hear(delivery(ends(end=3)))
    await office.later(minutes=5)
    assert office.channel.open == [1]
    await office.recovers()
    await office.later(minutes=5)
    assert office.channel.open == []


async def test_what_came_back_within_a_day_reopens_ours_and_later_opens_another(office: Office) -> None:
    await office.hear(delivery(fires()))
    await office.work()
    await office.hear(delivery(ends(end=1)))
    await office.later(minutes=1)
    await office.hear(delivery(fires(minute=60)))
    await office.later(hours=1)
    assert office.channel.open == [1]
    assert "**New:**" in office.channel.comments[1][-1]
    await office.hear(delivery(ends(minute=60, end=61)))
    await office.later(minutes=2)
    assert office.channel.open == []
    await office.hear(delivery(fires(minute=60 * 26)))
    await office.later(hours=25)
    assert office.channel.open == [2]
    assert f"Before this: {office.channel.issue(1).url}" in office.channel.issue(2).body


async def test_a_second_closing_says_again_how_it_ended(office: Office) -> None:
    for start in (0, 60):
        await office.hear(delivery(fires(minute=start)))
        await office.later(minutes=5)
        await office.hear(delivery(ends(minute=start, end=start + 3)))
        await office.later(minutes=5)
    assert sum("closing it" in text for text in office.channel.comments[1]) == 2
    assert office.channel.calls.count("close") == 2


# --- people --------------------------------------------------------------------------------------------------------


async def test_what_a_person_closed_stays_closed_for_the_same_causes(office: Office) -> None:
    await office.policy()
    await office.case()
    await office.work()
    office.channel.shut(1)
    await office.becomes("case-1", "Operating")
    for _ in range(3):
        await office.later(hours=2)
    assert office.channel.open == []
    assert len(office.channel.issues) == 1
    ticket = await office.ticket()
    assert (ticket.phase, ticket.closed_by) == (TicketPhase.CLOSED, ClosedBy.USER)


async def test_a_cause_that_began_after_a_person_closed_it_opens_a_new_issue(office: Office) -> None:
    await office.hear(delivery(fires(minute=0)))
    await office.work()
    office.channel.shut(1)
    await office.hear(delivery(fires(minute=0), fires("GpuHot", minute=30)))
    await office.later(minutes=30)
    assert office.channel.open == [2]
    assert "GpuHot" in office.channel.issue(2).body


async def test_the_same_alert_that_ends_and_fires_again_after_a_person_closed_it_opens_a_new_issue(
    office: Office,
) -> None:
    await office.hear(delivery(fires(minute=0)))
    await office.work()
    office.channel.shut(1)
    await office.hear(delivery(ends(minute=0, end=5)))
    await office.later(minutes=5)
    await office.hear(delivery(fires(minute=180)))
    await office.later(hours=3)
    assert office.channel.open == [2]


async def test_the_younger_of_two_alerts_of_a_name_ending_is_no_new_cause(office: Office) -> None:
    await office.hear(delivery(fires(minute=0, gpu="0"), fires(minute=10, gpu="1")))
    await office.later(minutes=10)
    office.channel.shut(1)
    await office.hear(delivery(ends(minute=10, end=20, gpu="1")))
    await office.later(hours=2)
    assert (await office.ticket()).closed_by is ClosedBy.USER
    await office.later(hours=2)
    assert len(office.channel.issues) == 1


async def test_a_person_who_opens_it_again_has_it_kept_up_again(office: Office) -> None:
    await office.hear(delivery(fires()))
    await office.work()
    office.channel.shut(1)
    await office.later(hours=2)
    office.channel.change_by_user(1, open=True, reason="reopened", closed_by_user=False)
    await office.later(hours=2)
    assert (await office.ticket()).phase is TicketPhase.OPEN
    await office.hear(delivery(ends(end=300)))
    await office.later(hours=1)
    assert office.channel.open == []
    assert office.channel.issue(1).closed_by_user is False


async def test_what_a_person_deleted_is_not_filed_again_for_the_same_causes_nor_asked_for_again(office: Office) -> None:
    await office.policy()
    await office.case()
    await office.work()
    office.channel.delete(1)
    await office.becomes("case-1", "Operating")
    await office.later(minutes=2)
    ticket = await office.ticket()
    assert (ticket.phase, ticket.closed_by, ticket.issue) == (TicketPhase.CLOSED, ClosedBy.USER, None)
    reads = office.channel.reads
    for _ in range(3):
        await office.later(hours=2)
    assert (len(office.channel.issues), office.channel.reads) == (1, reads)
    note = (await office.ticket()).condition("Synced")
    assert note is None or note.status == "True"


@pytest.mark.parametrize("before", ["open", "closed by a person", "closed by us"])
async def test_a_cause_that_began_after_a_person_deleted_the_issue_opens_a_new_one(office: Office, before: str) -> None:
    await office.hear(delivery(fires(minute=0)))
    await office.work()
    if before == "closed by a person":
        office.channel.shut(1)
        await office.later(hours=2)
    elif before == "closed by us":
        await office.hear(delivery(ends(end=1)))
        await office.later(hours=2)
    office.channel.delete(1)
    await office.hear(delivery(fires("GpuHot", minute=130)))
    await office.later(minutes=20)
    assert office.channel.open == [2]
    assert "GpuHot" in office.channel.issue(2).body
    assert "Before this" not in office.channel.issue(2).body


async def test_an_issue_that_a_person_moved_is_kept_up_in_its_new_place(office: Office) -> None:
    await office.hear(delivery(fires()))
    await office.work()
    office.channel.change_by_user(1, repository="org/other")
    await office.hear(delivery(fires("GpuHot")))
    await office.later(minutes=2)
    ticket = await office.ticket()
    assert (ticket.issue and ticket.issue.repository, office.channel.open) == ("org/other", [1])
    assert "GpuHot" in office.channel.issue(1).body


async def test_a_repository_that_was_renamed_is_named_to_whom_keeps_the_routes(office: Office) -> None:
    create = office.channel.create

    async def elsewhere(repository: str, draft: Draft) -> Issue:
        return await create("org/new", draft)

    office.channel.create = elsewhere  # type: ignore[method-assign]
    await office.hear(delivery(fires()))
    await office.work()
    ticket = await office.ticket()
    note = ticket.condition("RouteInvalid")
    assert note
    assert (note.reason, note.message) == ("RepositoryMoved", "org/default is org/new now; correct the routes file")
    assert ticket.issue
    assert ticket.issue.repository == "org/new"


@pytest.mark.parametrize(("own", "written"), [(64_900, True), (65_300, False)])
async def test_a_text_of_people_that_leaves_no_room_for_ours_is_left_as_it_is(
    office: Office, own: int, written: bool
) -> None:
    await office.hear(delivery(fires()))
    await office.work()
    theirs = "x" * own
    body = office.channel.change_by_user(1, body=f"{office.channel.issue(1).body}\n\n{theirs}").body
    await office.hear(delivery(fires("GpuHot")))
    for _ in range(3):
        await office.later(minutes=2)
    assert (office.channel.issue(1).body != body) is written
    assert office.channel.issue(1).body.endswith(theirs)
    assert len(office.channel.comments[1]) == 1
    ticket = await office.ticket()
    synced = ticket.condition("Synced")
    assert (ticket.condition("BodyFull") is None) is written
    assert synced
    assert synced.reason == ("Synced" if written else "BodyFull")
    office.channel.change_by_user(1, body=office.channel.issue(1).body[:-own])
    await office.hear(delivery(fires("FanStuck")))
    await office.later(minutes=2)
    assert "FanStuck" in office.channel.issue(1).body
    assert (await office.ticket()).condition("BodyFull") is None
    await office.hear(delivery(ends(), ends("GpuHot"), ends("FanStuck")))
    await office.later(minutes=2)
    assert office.channel.open == []


async def test_what_people_write_label_and_assign_survives(office: Office) -> None:
    await office.policy()
    await office.case()
    await office.work()
    body = f"my own words\n\n{office.channel.issue(1).body}\n\nand more: <b>here</b>"
    labels, people = ("remediator", "wontfix"), ("bob",)
    office.channel.change_by_user(1, title="mine", body=body, labels=labels, assignees=people)
    await office.becomes("case-1", "Verifying")
    await office.later(minutes=5)
    issue = office.channel.issue(1)
    assert "Verifying" in issue.body
    assert issue.body.startswith("my own words\n\n<!-- remediator:begin -->")
    assert issue.body.endswith("<!-- remediator:end -->\n\nand more: <b>here</b>")
    assert (issue.title, issue.labels, issue.assignees) == ("mine", labels, people)


async def test_a_severity_that_changes_swaps_our_label_only(office: Office) -> None:
    await office.hear(delivery(fires()))
    await office.work()
    office.channel.change_by_user(1, labels=(*office.channel.issue(1).labels, "rack-7"))
    await office.hear(delivery(fires("GpuLost", severity="critical")))
    await office.later(minutes=5)
    assert office.channel.issue(1).labels == ("remediator", "ops", "rack-7", "severity: critical")


# --- shared causes, other subjects ---------------------------------------------------------------------------------


async def test_many_nodes_with_one_cause_have_one_issue_that_is_not_told_of_each_node(office: Office) -> None:
    correlation = {"nodes": 3, "within": "10m"}
    await office.policy(ticket={"when": "OnEscalation"}, correlation=correlation)
    block = {"reason": "SharedCause", "message": "40 nodes say the same"}
    for number in range(40):
        held = {"at": "2026-11-20T09:00:00Z", "reason": "SharedCause"}
        await office.case(f"case-{number}", f"node-{number}", blockedBy=[block], timeline=[held])
    await office.work()
    assert [issue.title for issue in office.channel.issues] == ["[prod] many nodes: GpuLost"]
    for number in range(39):
        await office.recovers(f"case-{number}")
    await office.later(minutes=5)
    assert (office.channel.open, office.channel.comments[1]) == ([1], [])
    await office.recovers("case-39")
    await office.later(minutes=5)
    assert office.channel.open == []
    assert "and 20 more cases" in office.channel.comments[1][0]


async def test_a_case_that_turns_out_to_share_its_cause_moves_to_the_shared_issue(office: Office) -> None:
    await office.policy(correlation={"nodes": 3, "within": "10m"})
    await office.case()
    await office.work()
    block = {"reason": "SharedCause", "message": "3 nodes say the same"}
    await office.becomes("case-1", "Held", blockedBy=[block])
    await office.later(minutes=2)
    assert office.channel.open == [2]
    assert "moved" in office.channel.comments[1][0]


async def test_an_alert_that_names_no_node_has_an_issue_of_its_own_for_each_cluster(office: Office) -> None:
    for cluster in ("a", "b"):
        await office.hear(delivery(fires("Down", node="", cluster=cluster), fires("Down", node="", cluster=cluster)))
    await office.work()
    assert sorted(issue.title for issue in office.channel.issues) == ["[prod] a: Down", "[prod] b: Down"]


async def test_a_dry_run_and_a_policy_without_tickets_get_none(office: Office) -> None:
    await office.policy("dry", mode="DryRun")
    await office.policy("never", ticket={"when": "Never"})
    await office.case("case-1", policy="dry", phase="Escalated")
    await office.case("case-2", policy="never", phase="Escalated")
    await office.work()
    assert (office.channel.issues, await office.tickets()) == ([], [])


async def test_a_policy_that_is_deleted_neither_opens_nor_closes(office: Office) -> None:
    await office.policy()
    await office.case("case-1")
    await office.escalates("case-1")
    await office.work()
    await office.client.delete(POLICIES, "gpu-lost")
    await office.case("case-2", node="gpu-18")
    await office.later(minutes=5)
    assert office.channel.open == [1]


async def test_an_unknown_route_goes_to_the_default_and_says_so(office: Office) -> None:
    await office.policy(ticket={"when": "Always", "route": "tpu"})
    await office.case()
    await office.work()
    assert office.channel.issue(1).repository == "org/default"
    note = (await office.ticket()).condition("RouteInvalid")
    assert note
    assert (note.status, note.reason) == ("True", "UnknownRoute")
    assert "no route tpu in the routes file" in office.channel.issue(1).body


async def test_a_ticket_without_cause_goes_after_a_week_unless_an_alert_comes_meanwhile(office: Office) -> None:
    await office.hear(delivery(fires()))
    await office.work()
    await office.hear(delivery(ends(end=1)))
    await office.later(minutes=2)
    await office.later(days=6)
    assert len(await office.tickets()) == 1
    await office.refresh()
    await office.receiver.receive(delivery(fires(minute=60 * 24 * 8)))
    office.world.note(await office.ticket())
    await office.later(days=2)
    assert office.channel.open == [2]
    await office.hear(delivery(ends(minute=60 * 24 * 8, end=60 * 24 * 8 + 1)))
    await office.later(minutes=5)
    await office.later(days=8)
    assert await office.tickets() == []


@pytest.mark.parametrize("gone", ["Escalated", "Operating"])
async def test_a_case_that_is_deleted_closes_its_issue(office: Office, gone: str) -> None:
    await office.policy()
    await office.case(phase=gone)
    await office.work()
    await office.client.delete(CASES, "case-1")
    await office.later(minutes=2)
    assert office.channel.open == []
    assert "its case was deleted" in office.channel.comments[1][0]
