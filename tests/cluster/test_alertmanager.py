"""A real Alertmanager posts to the webhook, and is asked what fires: silenced, inhibited, resolved, and killed."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from deploy.images.programs import NotBuilt
from remediator.clock import SYSTEM
from remediator.prometheus.alertmanager import Alertmanager
from remediator.prometheus.alerts import Alertmanagers
from remediator.prometheus.reading import CannotTell, Doubt
from remediator.tickets.alertmanager.run import Comparison
from remediator.tickets.floods.limits import FloodLimits
from remediator.tickets.webhook.receiver import Receiver
from remediator.web import webhook
from tests.cluster.alertmanager import CONFIG, RealAlertmanager, real_alertmanager
from tests.harness.tickets import GPU, TicketHarness
from tests.harness.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180)]
XID = {"alertname": "NodeGpuXid", "node": "gpu-17", "severity": "critical"}
HOT = {"alertname": "NodeGpuHot", "node": "gpu-17"}


@pytest.fixture
async def pair(tmp_path: Path) -> AsyncIterator[tuple[RealAlertmanager, Alertmanager]]:
    """A server, and the client that asks it."""
    try:
        with real_alertmanager(tmp_path) as server:
            client = Alertmanager(server.url, SYSTEM)
            yield server, client
            await client.aclose()
    except NotBuilt as why:
        pytest.skip(str(why))


async def _states(client: Alertmanager) -> dict[str, tuple[bool, tuple[str, ...]]]:
    listing = await client.alerts()
    assert not isinstance(listing, CannotTell), listing
    return {alert.labels["alertname"]: (alert.active, alert.receivers) for alert in listing}


async def test_what_a_real_alertmanager_lists_makes_and_ends_tickets(
    pair: tuple[RealAlertmanager, Alertmanager],
) -> None:
    server, client = pair
    harness = TicketHarness()
    await harness.prepare()
    comparison = Comparison(Alertmanagers([client], "remediator"), harness.store, lambda: True, harness.clock)

    async def later(**delta: float) -> list[int]:
        harness.now += timedelta(**delta)
        await harness.refresh()
        await comparison.compare()
        await harness.work()
        return harness.channel.open

    server.silence("NodeGpuHot")
    server.post(XID, HOT)
    active, silenced = (True, ("remediator",)), (False, ("remediator",))
    await until(lambda: _are(client, {"NodeGpuXid": active, "NodeGpuHot": silenced}), 30)
    assert await later(seconds=30) == [1]
    assert [(alert.name, alert.severity) for alert in (await harness.ticket(GPU)).alerts] == [
        ("NodeGpuXid", "Critical")
    ]

    server.post(XID, seconds=0)  # a resolution, which is not listed
    await until(lambda: _are(client, {"NodeGpuHot": silenced}), 30)
    assert [await later(minutes=minutes) for minutes in (1, 2, 1)] == [[1], [1], []]

    server.post(XID)
    await until(lambda: _are(client, {"NodeGpuXid": active, "NodeGpuHot": silenced}), 30)
    assert await later(minutes=1) == [1]
    server.stop()
    assert (await client.alerts()).doubt is Doubt.UNREACHABLE
    assert await later(hours=1) == [1]
    server.start()  # it knows nothing until Prometheus sends again
    assert await _states(client) == {}
    assert await later(minutes=1) == [1]
    server.post(XID)
    assert await later(minutes=5) == [1]
    assert harness.channel.calls.count("create") == 1


async def test_what_a_real_alertmanager_posts_opens_and_closes_an_issue_without_any_list(tmp_path: Path) -> None:
    harness = TicketHarness()
    await harness.prepare()
    async with posting(harness, tmp_path, asked=False) as (server, _):
        server.post(XID)
        await until(lambda: _open(harness, [1]), 30)
        assert [alert.name for alert in (await harness.ticket(GPU)).alerts] == ["NodeGpuXid"]
        server.post(XID, seconds=0)
        await until(lambda: _open(harness, []), 30)
    assert harness.channel.calls.count("create") == 1


INHIBITED = {"source_matchers": ['alertname="NodeDown"'], "target_matchers": ['alertname="NodeGpuXid"']}
OTHER_ROUTE = {"route": CONFIG["route"] | {"receiver": "other"}}


@pytest.mark.parametrize(
    ("config", "state"),
    [
        pytest.param({"inhibit_rules": [INHIBITED]}, (False, ("remediator",)), id="inhibited"),
        pytest.param(OTHER_ROUTE, (True, ("other",)), id="its route leads elsewhere"),
    ],
)
async def test_an_alert_of_which_a_real_alertmanager_tells_nothing_more_keeps_its_issue_until_it_is_over(
    config: dict[str, Any], state: tuple[bool, tuple[str, ...]], tmp_path: Path
) -> None:
    harness = TicketHarness()
    await harness.prepare()
    async with posting(harness, tmp_path) as (server, client):
        comparison = Comparison(Alertmanagers([client], "remediator"), harness.store, lambda: True, harness.clock)

        async def is_open(minutes: float) -> bool:
            harness.now += timedelta(minutes=minutes)
            await harness.refresh()
            await comparison.compare()
            await harness.work()
            return harness.channel.issue(1).open

        server.post(XID)
        await until(lambda: _open(harness, [1]), 30)
        server.reload(**config)
        server.post({"alertname": "NodeDown"})  # the second inhibits the alert, where that is configured
        await until(lambda: _has(client, "NodeGpuXid", state), 30)
        assert [await is_open(60) for _ in range(3)] == [True] * 3
        server.post(XID, seconds=0)
        await until(lambda: _has(client, "NodeGpuXid", None), 30)
        assert [await is_open(minutes) for minutes in (1, 4)] == [True, False]


async def test_the_alerts_that_a_real_alertmanager_leaves_out_of_its_post_have_their_issues_by_its_list(
    tmp_path: Path,
) -> None:
    """With `max_alerts: 1` and all alerts in one group the post has one of three, and then says that it is over."""
    harness = TicketHarness()
    await harness.prepare()
    three = [{"alertname": "NodeGpuXid", "node": node} for node in ("gpu-17", "gpu-18", "gpu-0001")]
    async with posting(harness, tmp_path) as (server, client):
        server.reload(most=1, route=CONFIG["route"] | {"group_by": ["alertname"]})
        comparison = Comparison(Alertmanagers([client], "remediator"), harness.store, lambda: True, harness.clock)
        server.post(*three)
        await until(lambda: _open(harness, [1]), 30)
        await until(lambda: _as_many(client, 3), 30)
        await harness.refresh()
        await comparison.compare()
        await harness.work()
    assert harness.channel.open == [1, 2, 3]
    assert sorted(issue.title.split()[1] for issue in harness.channel.issues) == ["gpu-0001:", "gpu-17:", "gpu-18:"]


@asynccontextmanager
async def posting(
    harness: TicketHarness, folder: Path, *, asked: bool = True
) -> AsyncIterator[tuple[RealAlertmanager, Alertmanager]]:
    """A server that posts to the webhook of a harness, and the client that asks it.

    `asked`: what the client hears ends an alert, and no post does.
    """
    receiver = Receiver(harness.client, harness.store, lambda: True, harness.clock, asked=asked)
    app = web.Application()
    app.add_routes(webhook.routes(receiver, webhook.bodies(1)))
    async with TestServer(app, host="127.0.0.1") as listening:
        try:
            with real_alertmanager(folder, str(listening.make_url(webhook.PATH))) as server:
                client = Alertmanager(server.url, SYSTEM)
                yield server, client
                await client.aclose()
        except NotBuilt as why:
            pytest.skip(str(why))


async def _has(client: Alertmanager, alert: str, state: tuple[bool, tuple[str, ...]] | None) -> bool:
    return (await _states(client)).get(alert) == state


async def _open(harness: TicketHarness, issues: list[int]) -> bool:
    await harness.refresh()
    await harness.work()
    return harness.channel.open == issues


async def test_200_causes_at_once_open_60_issues_an_hour_the_most_severe_first_and_none_is_lost(
    pair: tuple[RealAlertmanager, Alertmanager],
) -> None:
    """In the second hour Alertmanager is killed, and its peer never came: what waits for its turn is stored."""
    server, client = pair
    nodes = [f"n-{number:03}" for number in range(200)]
    harness = TicketHarness(limits=FloodLimits())
    await harness.nodes(*nodes)
    comparison = Comparison(Alertmanagers([client], "remediator"), harness.store, lambda: True, harness.clock)
    severity = ("critical", "warning", "info")  # 67, 67 and 66
    causes = [
        {"alertname": f"Fault{number}", "node": node, "severity": severity[number % 3]}
        for number, node in enumerate(nodes)
    ]

    async def later(**delta: float) -> list[int]:
        """How many issues of nodes there are by now, and how many of them are open."""
        harness.now += timedelta(**delta)
        await harness.refresh()
        await comparison.compare()
        await harness.work()
        of_nodes = [issue for issue in harness.channel.issues if "many issues" not in issue.title]
        return [len(of_nodes), sum(issue.open for issue in of_nodes)]

    server.post(*causes, seconds=3600)
    await until(lambda: _as_many(client, 200), 60)
    await later(seconds=1)
    assert await later(seconds=11) == [60, 60]
    assert {label for issue in harness.channel.issues for label in issue.labels if "severity" in label} == {
        "severity: critical"
    }
    await later(minutes=2)
    (overflow,) = [issue for issue in harness.channel.issues if "many issues" in issue.title]
    assert "**140 issues are not opened yet**" in overflow.body
    server.stop()
    opened = [await later(minutes=30) for _ in range(4)]
    assert [count for count, _ in opened] == [60, 108, 108, 156], "of 60 an hour 12 are for what is Critical"
    server.start()
    server.post(*causes, seconds=3600)
    await until(lambda: _as_many(client, 200), 60)
    for _ in range(4):
        count, still = await later(minutes=30)
    assert (count, still) == (200, 200)
    titles = [issue.title for issue in harness.channel.issues if issue is not overflow]
    assert len(set(titles)) == len(titles)
    ranks = [[*severity].index(label.removeprefix("severity: ")) for label in _severities(harness)]
    assert ranks == sorted(ranks)
    begun = sorted(ticket.opened for ticket in await harness.tickets() if ticket.opened and ticket.subject.node)
    assert max(sum(at <= other < at + timedelta(hours=1) for other in begun) for at in begun) <= 60
    server.post(*causes, seconds=0)
    await until(lambda: _as_many(client, 0), 60)
    ends = [await later(minutes=minutes) for minutes in (1, 2, 2)]
    assert ends[-1] == [200, 0]
    assert not any(issue.open for issue in harness.channel.issues)
    assert harness.channel.calls.count("create") == 201


def _severities(harness: TicketHarness) -> list[str]:
    """Of all issues of nodes, in the order in which they were opened."""
    of_nodes = [issue for issue in harness.channel.issues if "many issues" not in issue.title]
    return [label for issue in of_nodes for label in issue.labels if label.startswith("severity: ")]


async def _as_many(client: Alertmanager, count: int) -> bool:
    listing = await client.alerts()
    return not isinstance(listing, CannotTell) and len(listing) == count


async def _are(client: Alertmanager, states: dict[str, tuple[bool, tuple[str, ...]]]) -> bool:
    return await _states(client) == states


async def test_a_matcher_leaves_out_the_alerts_of_other_clusters_whose_nodes_have_the_same_names(
    pair: tuple[RealAlertmanager, Alertmanager],
) -> None:
    server, client = pair
    server.post(XID | {"cluster": "a"}, HOT | {"cluster": "b"})
    await until(lambda: _are(client, dict.fromkeys(("NodeGpuXid", "NodeGpuHot"), (True, ("remediator",)))), 30)
    ours, typo = (Alertmanager(server.url, SYSTEM, matcher=matcher) for matcher in ('cluster="a"', "a typo"))
    assert list(await _states(ours)) == ["NodeGpuXid"]
    refused = await typo.alerts()
    assert isinstance(refused, CannotTell)
    assert "--alertmanager-matcher" in refused.message
    for each in (ours, typo):
        await each.aclose()
