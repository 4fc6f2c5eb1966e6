"""A storm of alerts: one issue for one cause, so many issues an hour, the most severe first, and nothing is lost."""

from datetime import timedelta

import pytest

from remediator.core.ticket import About, Subject
from remediator.tickets.channels.base import Draft, Issue, Later, Refused
from remediator.tickets.floods.limits import FloodLimits
from remediator.tickets.floods.line import OVERFLOW
from tests.harness.tickets import MemoryChannel, TicketHarness, delivery, ends, fires

LIMITS = FloodLimits()  # as shipped: 10 nodes within 10 minutes, 60 issues an hour, after 10 seconds
NODES = [f"n-{number:03}" for number in range(200)]


@pytest.fixture
async def storm() -> TicketHarness:
    """A fleet of 200 nodes, with the limits that are shipped."""
    harness = TicketHarness(limits=LIMITS)
    await harness.nodes(*NODES)
    return harness


def _shared(name: str = "NodeDown") -> Subject:
    return Subject(About.ALERT, alert=name)


async def _settle(harness: TicketHarness) -> None:
    await harness.work()
    await harness.later(seconds=11)


async def test_200_nodes_with_one_alert_have_one_issue_that_counts_them(storm: TicketHarness) -> None:
    await storm.hear(delivery(*(fires(node=node) for node in NODES)))
    await _settle(storm)
    (issue,) = storm.channel.issues
    assert issue.title == "[prod] many nodes: NodeDown"
    assert "Alert `NodeDown` on 200 nodes" in issue.body
    assert "… and 136 more" in issue.body
    assert len(await storm.tickets()) == 201  # what each node has is stored all the same


async def test_posts_of_a_storm_that_come_one_by_one_within_10_seconds_make_one_issue(storm: TicketHarness) -> None:
    for node in NODES[:30]:
        storm.now += timedelta(seconds=0.3)
        await storm.hear(delivery(fires(node=node)))
        await storm.work()
    await _settle(storm)
    assert [issue.title for issue in storm.channel.issues] == ["[prod] many nodes: NodeDown"]


async def test_9_nodes_with_one_alert_have_9_issues(storm: TicketHarness) -> None:
    await storm.hear(delivery(*(fires(node=node) for node in NODES[:9])))
    await _settle(storm)
    assert len(storm.channel.issues) == 9


async def test_a_node_a_day_with_the_same_alert_is_no_storm(storm: TicketHarness) -> None:
    for node in NODES[:12]:
        await storm.hear(delivery(fires(node=node)))
        await _settle(storm)
        await storm.later(days=1)
    assert [issue.title for issue in storm.channel.issues] == [f"[prod] {node}: NodeDown" for node in NODES[:12]]


async def test_the_issue_of_a_storm_closes_when_the_alert_fires_on_no_node_any_more(storm: TicketHarness) -> None:
    await storm.hear(delivery(*(fires(node=node) for node in NODES[:20])))
    await _settle(storm)
    await storm.hear(delivery(*(ends(node=node) for node in NODES[:19])))
    await storm.later(minutes=2)
    assert "Alert `NodeDown` on one node" in storm.channel.issues[0].body
    assert storm.channel.issues[0].open  # one node is no reason for another issue
    await storm.hear(delivery(ends(node=NODES[19])))
    await storm.later(minutes=2)
    assert [issue.open for issue in storm.channel.issues] == [False]


async def test_nobody_hears_again_of_a_storm_whose_issue_a_user_has_closed(storm: TicketHarness) -> None:
    await storm.hear(delivery(*(fires(node=node) for node in NODES[:20])))
    await _settle(storm)
    storm.channel.shut(1)
    await storm.later(hours=2)
    await storm.later(hours=2)
    assert [issue.open for issue in storm.channel.issues] == [False]


async def test_another_alert_of_a_node_in_a_storm_has_the_issue_of_the_node(storm: TicketHarness) -> None:
    await storm.hear(delivery(*(fires(node=node) for node in NODES[:20]), fires("NodeGpuXid", NODES[3])))
    await _settle(storm)
    assert {issue.title for issue in storm.channel.issues} == {
        "[prod] many nodes: NodeDown",
        "[prod] n-003: NodeGpuXid",
    }
    body = next(issue.body for issue in storm.channel.issues if "n-003" in issue.title)
    assert f"on many nodes: see the issue of Ticket `{_shared().name}`" in body


async def _different(storm: TicketHarness, causes: int = 200) -> None:
    """As many nodes with as many causes, every third of them critical."""
    severity = ("critical", "warning", "info")
    alerts = [fires(f"Fault{node}", node, severity=severity[int(node[2:]) % 3]) for node in NODES[:causes]]
    await storm.hear(delivery(*alerts))
    await _settle(storm)


@pytest.fixture
async def smaller() -> TicketHarness:
    """60 nodes, and 20 issues an hour."""
    harness = TicketHarness(limits=FloodLimits(per_hour=20))
    await harness.nodes(*NODES[:60])
    return harness


def _severities(storm: TicketHarness) -> list[str]:
    labels = [label for issue in storm.channel.issues for label in issue.labels if label.startswith("severity")]
    return [label.removeprefix("severity: ") for label in labels]


async def test_200_causes_open_60_issues_and_one_that_lists_the_others_the_most_severe_first(
    storm: TicketHarness,
) -> None:
    await _different(storm)
    await storm.later(seconds=61)
    *opened, overflow = storm.channel.issues
    assert len(opened) == 60
    assert _severities(storm)[:60] == ["critical"] * 60
    assert overflow.title == "[prod] many issues: opened later, since so many were opened within an hour"
    assert "**140 issues are not opened yet** · Critical" in overflow.body
    rows = [line for line in overflow.body.splitlines() if line.startswith("| `n-")]
    assert len(rows) == 100
    assert [row.split(" | ")[2] for row in rows] == ["Critical"] * 7 + ["Warning"] * 67 + ["Info"] * 26
    assert "2026-11-20 10:00:00 UTC" in rows[0]  # an hour after the first
    waiting = await storm.ticket(Subject(About.NODE, node="n-001"))
    condition = waiting.condition("Synced")
    assert condition is not None
    assert condition.reason == "Waiting"


async def test_all_causes_are_opened_in_the_end_and_the_list_closes(smaller: TicketHarness) -> None:
    storm = smaller
    await _different(storm, 60)
    for _ in range(20):
        await storm.later(minutes=15)
    issues = [issue for issue in storm.channel.issues if not issue.title.startswith("[prod] many")]
    severities = [next(label for label in issue.labels if label.startswith("severity")) for issue in issues]
    order = ["severity: critical", "severity: warning", "severity: info"]
    assert severities == sorted(severities, key=order.index)
    assert len({issue.title for issue in issues}) == len(issues) == 60
    (overflow,) = (issue for issue in storm.channel.issues if issue.title.startswith("[prod] many"))
    assert not overflow.open
    hours = [sum(0 <= (other.created - issue.created).total_seconds() < 3600 for other in issues) for issue in issues]
    assert max(hours) <= 20


async def test_warnings_leave_one_issue_in_five_to_what_is_critical(storm: TicketHarness) -> None:
    await storm.hear(delivery(*(fires(f"Fault{node}", node) for node in NODES[:60])))
    await _settle(storm)
    assert _severities(storm) == ["warning"] * 48
    await storm.hear(delivery(fires("NodeDown", NODES[70], severity="critical")))
    await _settle(storm)
    assert "[prod] n-070: NodeDown" in [issue.title for issue in storm.channel.issues]


async def test_an_alert_that_ends_while_its_issue_waits_leaves_the_line(storm: TicketHarness) -> None:
    await storm.hear(delivery(*(fires(f"Fault{node}", node) for node in NODES[:50])))
    await _settle(storm)
    await storm.later(minutes=2)
    assert len(storm.channel.issues) == 49  # 48 and the list
    await storm.hear(delivery(*(ends(f"Fault{node}", node) for node in NODES[48:50])))
    await storm.later(minutes=2)
    assert not storm.channel.issues[-1].open
    await storm.later(hours=2)
    assert len(storm.channel.issues) == 49


async def test_a_new_leader_counts_what_the_one_before_has_opened_and_leaves_the_list_open(
    smaller: TicketHarness,
) -> None:
    storm = smaller
    await _different(storm, 60)
    await storm.later(minutes=2)
    before = len(storm.channel.issues)
    storm.restart()
    await _settle(storm)
    await storm.later(minutes=2)
    assert len(storm.channel.issues) == before == 21
    assert all(issue.open for issue in storm.channel.issues)
    assert storm.channel.calls.count("reopen") == 0


async def test_github_away_for_a_day_is_caught_up_with_once_in_order_of_severity() -> None:
    channel = MemoryChannel()
    storm = TicketHarness(channel, limits=LIMITS)
    await storm.nodes(*NODES[:40])
    channel.script("create", *[Later("no connection to GitHub", 10.0)] * 100_000)
    severity = ("info", "warning", "critical")
    for number, node in enumerate(NODES[:40]):
        await storm.hear(delivery(fires(f"Fault{node}", node, severity=severity[number % 3])))
        await storm.later(minutes=36)
    assert not channel.issues
    channel.heal("create")
    for _ in range(30):
        await storm.later(seconds=5)
    assert len(channel.issues) == 40
    assert _severities(storm) == ["critical"] * 13 + ["warning"] * 13 + ["info"] * 14


async def test_an_issue_that_is_refused_holds_no_other_up(storm: TicketHarness) -> None:
    storm.channel.script("create", Refused("no such repository", "repository"))
    await storm.hear(delivery(*(fires(f"Fault{node}", node) for node in NODES[:3])))
    await _settle(storm)
    await storm.later(seconds=11)
    assert len(storm.channel.issues) == 2
    assert len([ticket for ticket in await storm.tickets() if ticket.subject == OVERFLOW]) == 0


async def test_nodes_whose_own_issues_tell_of_the_alert_are_not_counted(storm: TicketHarness) -> None:
    await storm.hear(delivery(*(fires(node=node) for node in NODES[:9])))
    await _settle(storm)
    await storm.hear(delivery(*(fires(node=node) for node in NODES[9:12])))
    await _settle(storm)
    assert [issue.title for issue in storm.channel.issues] == [f"[prod] {node}: NodeDown" for node in NODES[:12]]


async def test_a_node_a_day_is_no_storm_though_github_was_away_all_the_time(storm: TicketHarness) -> None:
    storm.channel.script("create", *[Later("no connection to GitHub", 10.0)] * 1000)
    for node in NODES[:12]:
        await storm.hear(delivery(fires(node=node)))
        await _settle(storm)
        await storm.later(days=1)
    storm.channel.heal("create")
    for _ in range(4):
        await storm.later(minutes=2)
    assert [issue.title for issue in storm.channel.issues] == [f"[prod] {node}: NodeDown" for node in NODES[:12]]


async def test_a_repository_that_cannot_be_reached_holds_up_no_other(storm: TicketHarness) -> None:
    create = storm.channel.create

    async def half_away(repository: str, draft: Draft) -> Issue:
        if repository == "org/gpu":
            raise Later("no connection", 3600.0)
        return await create(repository, draft)

    storm.channel.create = half_away  # type: ignore[method-assign]
    worse = [fires(f"Xid{node}", node, severity="critical", remediator_route="gpu") for node in NODES[:3]]
    await storm.hear(delivery(*worse, *(fires(f"Fault{node}", node) for node in NODES[3:6])))
    await _settle(storm)
    await storm.later(seconds=11)
    assert [issue.repository for issue in storm.channel.issues] == ["org/default"] * 3
