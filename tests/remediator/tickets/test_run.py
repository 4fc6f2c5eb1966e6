"""The whole: watches, queue, lease, and the writer to GitHub against a GitHub in this process."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from remediator.app import elector
from remediator.clock import SYSTEM
from remediator.kube.informers import Informers
from remediator.kube.runtime.leader import Leader
from remediator.prometheus.alerts import Alertmanagers
from remediator.settings import Settings
from remediator.tickets.channels.base import Refused
from remediator.tickets.channels.github import GitHub, GithubTokenFile
from remediator.tickets.channels.routes import Route, Routes
from remediator.tickets.floods.limits import FloodLimits
from remediator.tickets.reconcile.run import Tickets
from remediator.tickets.webhook.receiver import Result
from remediator_sim.github import FakeGitHub, GithubFault
from tests.harness.alertmanager import PlayedAlertmanager, listed
from tests.harness.kinds import NAMESPACES
from tests.harness.replica import at_work
from tests.harness.tickets import GPU, MemoryChannel, TicketHarness, delivery, ends, fires
from tests.harness.waiting import until

pytestmark = pytest.mark.sampled("run")

REPO = "org/default"
ROUTES = Routes(Route(REPO))


@asynccontextmanager
async def running(
    harness: TicketHarness,
    channel: Any,
    identity: str = "one",
    alertmanagers: Alertmanagers | None = None,
    limits: FloodLimits | None = None,
) -> AsyncIterator[Tickets]:
    """Tickets at work, until the block is left."""
    asked = Settings(identity=identity, namespace="gpu-ops", lease_retry=0.1)
    informers = Informers(harness.client, SYSTEM, asked.namespaces)
    leader = Leader(elector(harness.client, asked, SYSTEM), SYSTEM)
    asking = {"alertmanagers": alertmanagers, "limits": limits}
    made = Tickets(harness.client, channel, ROUTES, informers, leader, SYSTEM, **asking)
    async with at_work(informers.run(), leader.run()):
        await until(made.ready)
        yield made


@pytest.fixture
async def cluster(harness: TicketHarness) -> TicketHarness:
    """An office in whose cluster our namespace stands."""
    await harness.client.create(NAMESPACES, {"metadata": {"name": "gpu-ops"}})
    harness.now = datetime.now(UTC)
    return harness


@pytest.fixture
async def github(tmp_path: Path) -> AsyncIterator[tuple[FakeGitHub, GitHub]]:
    """A GitHub that at the end has seen only what its description allows, and the writer to it."""
    async with FakeGitHub([REPO], ["ann"]) as fake:
        (tmp_path / "token").write_text(fake.token)
        writer = GitHub(fake.url, GithubTokenFile(tmp_path / "token"), SYSTEM, spacing=0.0, timeout=15)
        yield fake, writer
        await writer.aclose()
        assert fake.violations == []


async def test_an_alert_a_case_a_person_and_recovery_on_one_issue(
    cluster: TicketHarness, github: tuple[FakeGitHub, GitHub]
) -> None:
    fake, writer = github
    async with running(cluster, writer) as tickets:
        assert (await tickets.receiver.receive(delivery(fires()))).result is Result.STORED
        await until(lambda: len(fake.issues(REPO)) == 1)
        ann = fake.person("ann")
        ann.edit(REPO, 1, body=fake.issues(REPO)[0].body + "\n\nI am on it.")
        ann.label(REPO, 1, "mine")
        await cluster.policy(ticket={"when": "OnEscalation"})
        await cluster.case()
        await cluster.escalates()
        await until(lambda: "A person is needed" in _said(fake))
        assert (await tickets.receiver.receive(delivery(ends(end=2)))).result is Result.STORED
        await cluster.recovers()
        await until(lambda: not fake.issues(REPO)[0].open)
        issue = fake.issues(REPO)[0]
        assert issue.body.endswith("I am on it.")
        assert "mine" in issue.labels
        assert "Verified" in _said(fake)
        assert len(fake.issues(REPO)) == 1


def _said(fake: FakeGitHub) -> str:
    return "\n".join(comment.body for comment in fake.issues(REPO)[0].comments)


async def test_an_answer_that_is_lost_leaves_a_pending_ticket_and_one_issue(
    cluster: TicketHarness, github: tuple[FakeGitHub, GitHub]
) -> None:
    fake, writer = github
    fake.fail("POST", f"/repos/{REPO}/issues$", GithubFault(502, carried_out=True))
    async with running(cluster, writer, "one") as tickets:
        await tickets.receiver.receive(delivery(fires()))
        await until(lambda: _said_unsure(cluster))
    async with running(cluster, writer, "two"):  # a leader that knows nothing looks at once
        await until(lambda: _has_issue(cluster))
    assert [issue.open for issue in fake.issues(REPO)] == [True]


async def _said_unsure(harness: TicketHarness) -> bool:
    note = (await harness.ticket()).condition("Synced")
    return note is not None and note.reason == "Unsure"


async def _has_issue(harness: TicketHarness) -> bool:
    return (await harness.ticket()).issue is not None


async def test_a_tracker_that_refuses_is_not_asked_again_by_the_echo_of_our_own_writes(cluster: TicketHarness) -> None:
    channel = MemoryChannel()
    channel.script("create", *[Refused("no such repository", "repository")] * 50)
    async with running(cluster, channel) as tickets:
        await tickets.receiver.receive(delivery(fires()))
        await until(lambda: channel.left("create") < 50)
        for number in range(10):  # ten more events, each seen before the next
            await tickets.receiver.receive(delivery(fires(f"A{number}")))
            await until(lambda count=number + 2: len(tickets.cache.tickets.get(GPU.name).alerts) == count)
        assert channel.left("create") == 49


async def test_replicas_store_alerts_and_one_of_them_files(cluster: TicketHarness) -> None:
    channel = MemoryChannel()
    async with running(cluster, channel, "one") as first, running(cluster, channel, "two") as second:
        bodies = [delivery(fires(f"A{number}")) for number in range(4)]
        await asyncio.gather(*(replica.receiver.receive(body) for replica in (first, second) for body in bodies))
        await until(lambda: channel.issues)
        await until(lambda: first.leader.is_leader != second.leader.is_leader)
        first.measure()
    assert channel.calls.count("create") == 1
    assert len((await cluster.ticket(GPU)).alerts) == 4


async def test_when_the_leader_goes_another_takes_over(cluster: TicketHarness) -> None:
    channel = MemoryChannel()
    async with running(cluster, channel, "one") as first:
        await first.receiver.receive(delivery(fires()))
        await until(lambda: channel.open == [1])
    async with running(cluster, channel, "two") as second:
        await second.receiver.receive(delivery(ends(end=1)))
        await until(lambda: channel.open == [])
    assert channel.calls.count("create") == 1


async def test_deliveries_are_later_while_the_watch_of_nodes_is_silent(cluster: TicketHarness) -> None:
    async with running(cluster, MemoryChannel()) as tickets:
        tickets.cache.nodes._reflector._alive_at -= 151
        assert not tickets.ready()
        assert (await tickets.receiver.receive(delivery(fires()))).result is Result.LATER


async def test_the_leader_asks_alertmanager_by_itself_and_a_post_ends_nothing_then(cluster: TicketHarness) -> None:
    channel, played = MemoryChannel(), PlayedAlertmanager()
    played.lists(listed(fires()))
    async with running(cluster, channel, alertmanagers=Alertmanagers([played], "remediator")) as tickets:
        await until(lambda: channel.open == [1])
        assert (await tickets.receiver.receive(delivery(ends(end=1)))).result is Result.STORED
        assert [alert.firing for alert in (await cluster.ticket(GPU)).alerts] == [True]


async def test_a_storm_of_30_nodes_is_one_issue_and_10_other_causes_follow_each_other_at_once(
    cluster: TicketHarness,
) -> None:
    nodes = [f"n-{number}" for number in range(40)]
    await cluster.nodes(*nodes)
    channel, limits = MemoryChannel(), FloodLimits(settle=timedelta(seconds=0.5))
    async with running(cluster, channel, limits=limits) as tickets:
        for node in nodes[:30]:  # a post for each
            assert (await tickets.receiver.receive(delivery(fires(node=node)))).result is Result.STORED
        faults = [fires(f"Fault{node}", node) for node in nodes[30:]]
        assert (await tickets.receiver.receive(delivery(*faults))).result is Result.STORED
        await until(lambda: len(channel.issues) == 11)  # who waits looks again every 5 s: 50 s, were nobody woken
    assert [issue.title for issue in channel.issues].count("many nodes: NodeDown") == 1
