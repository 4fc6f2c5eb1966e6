"""A real Alertmanager posts to the webhook, and is asked what fires: silenced, resolved, and killed."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from deploy.images.programs import NotBuilt
from remediator.clock import SYSTEM
from remediator.prometheus.alertmanager import Alertmanager
from remediator.prometheus.alerts import Alertmanagers
from remediator.prometheus.reading import CannotTell, Doubt
from remediator.tickets.alertmanager.run import Comparison
from remediator.web import webhook
from tests.cluster.alertmanager import RealAlertmanager, real_alertmanager
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
    app = web.Application()
    app.add_routes(webhook.routes(harness.receiver, webhook.bodies(1)))
    async with TestServer(app, host="127.0.0.1") as listening:
        try:
            with real_alertmanager(tmp_path, str(listening.make_url(webhook.PATH))) as server:
                server.post(XID)
                await until(lambda: _open(harness, [1]), 30)
                assert [alert.name for alert in (await harness.ticket(GPU)).alerts] == ["NodeGpuXid"]
                server.post(XID, seconds=0)
                await until(lambda: _open(harness, []), 30)
        except NotBuilt as why:
            pytest.skip(str(why))
    assert harness.channel.calls.count("create") == 1


async def _open(harness: TicketHarness, issues: list[int]) -> bool:
    await harness.refresh()
    await harness.work()
    return harness.channel.open == issues


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
