"""What of a route an issue could not have at first: told on the Ticket, tried again, and never against a person."""

from dataclasses import replace

from remediator.tickets.channels.base import Refused
from remediator.tickets.channels.routes import Route, Routes
from remediator.tickets.reconcile.conditions import ROUTE_INVALID, missing_parts
from tests.harness.tickets import TicketHarness, delivery, fires

Q4 = Route("org/ops", ("ops",), ("ann",), milestone="2026-Q4")


def leads_to(harness: TicketHarness, route: Route) -> None:
    """The routes file says so from now on."""
    harness.routes = Routes(route)
    harness.reconciler._routes = harness.routes


async def filed(harness: TicketHarness, route: Route = Q4) -> None:
    """An alert has its issue."""
    leads_to(harness, route)
    await harness.hear(delivery(fires()))
    await harness.work()


async def said(harness: TicketHarness) -> tuple[str, str]:
    """Reason and message of what is wrong with the route."""
    condition = (await harness.ticket()).condition(ROUTE_INVALID)
    return (condition.reason, condition.message) if condition else ("", "")


async def test_an_issue_gets_the_milestone_of_its_route_and_that_of_a_person_stays(harness: TicketHarness) -> None:
    harness.channel.milestones = {"2026-Q4", "later"}
    await filed(harness)
    assert harness.channel.issue(1).milestone == "2026-Q4"
    harness.channel.change_by_user(1, milestone="later")
    await harness.hear(delivery(fires("GpuHot")))
    await harness.later(hours=2)
    assert harness.channel.issue(1).milestone == "later"
    assert await said(harness) == ("", "")


async def test_a_milestone_that_is_not_there_leaves_the_issue_without_and_is_tried_each_hour(
    harness: TicketHarness,
) -> None:
    await filed(harness)
    assert harness.channel.issue(1).milestone == ""
    assert await said(harness) == ("MilestoneRefused", "filed without milestone: no open milestone '2026-Q4'")
    assert "filed without milestone" in harness.channel.issue(1).body
    harness.channel.milestones = {"2026-Q4"}
    await harness.later(minutes=58)
    assert harness.channel.issue(1).milestone == ""
    await harness.later(minutes=3)
    assert harness.channel.issue(1).milestone == "2026-Q4"
    assert await said(harness) == ("", "")
    await harness.later(minutes=2)
    assert "filed without" not in harness.channel.issue(1).body


async def test_a_route_that_changes_is_tried_at_the_next_pass_and_one_that_asks_for_none_has_nothing_missing(
    harness: TicketHarness,
) -> None:
    harness.channel.milestones = {"2027-Q1"}
    await filed(harness)
    leads_to(harness, replace(Q4, milestone="2027-Q1"))
    await harness.later(seconds=10)
    assert (harness.channel.issue(1).milestone, await said(harness)) == ("2027-Q1", ("", ""))
    await harness.hear(delivery(fires(node="gpu-18")))
    leads_to(harness, Q4)
    await harness.later(seconds=10)
    assert harness.channel.issue(2).milestone == ""
    leads_to(harness, replace(Q4, milestone=""))
    await harness.later(seconds=10)
    assert {missing_parts(ticket) for ticket in await harness.tickets()} == {()}


async def test_what_a_person_has_decided_meanwhile_is_not_written_over(harness: TicketHarness) -> None:
    harness.channel.script("create", Refused("ann cannot be assigned", "assignees"))
    await filed(harness, replace(Q4, milestone="2026-Q4"))
    assert missing_parts(await harness.ticket()) == ("assignees", "milestone")
    harness.channel.change_by_user(1, assignees=("zoe",), milestone="mine")
    harness.channel.milestones = {"2026-Q4"}
    await harness.later(hours=1)
    issue = harness.channel.issue(1)
    assert (issue.assignees, issue.milestone, await said(harness)) == (("zoe",), "mine", ("", ""))


async def test_a_new_leader_tries_once_and_then_waits_an_hour_again(harness: TicketHarness) -> None:
    await filed(harness)
    harness.restart()
    reads = harness.channel.reads
    await harness.later(minutes=1)
    await harness.later(minutes=1)
    assert harness.channel.reads == reads + 1


async def test_people_whom_the_channel_drops_without_a_word_are_named(harness: TicketHarness) -> None:
    drop = harness.channel.create
    harness.channel.create = lambda repository, draft: drop(repository, replace(draft, assignees=()))  # type: ignore[method-assign]
    await filed(harness, replace(Q4, milestone=""))
    reason, message = await said(harness)
    assert reason == "AssigneesRefused"
    assert message.startswith("filed without assignees: org/ops took none of ann; correct assignees in the route")
    await harness.later(hours=1)
    assert (harness.channel.issue(1).assignees, await said(harness)) == (("ann",), ("", ""))
