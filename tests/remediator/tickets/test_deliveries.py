"""The ways in which Alertmanager delivers, each through the receiver into Tickets and issues."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from remediator.core.ticket import About, Alert, NewestAlerts, Subject
from remediator.kube.wire import errors
from remediator.kube.wire.transport import Reply
from remediator.tickets.webhook.receiver import READERS, WRITERS, Receiver, Result
from tests.harness.kinds import NODES
from tests.harness.tickets import GPU, START, MemoryChannel, TicketHarness, delivery, ends, fires, merged, payload

FIRST, SECOND = (Subject(About.NODE, node=name) for name in ("gpu-0001", "gpu-0002"))


async def _states(harness: TicketHarness, subject: Subject = GPU) -> dict[str, bool]:
    return {alert.name: alert.firing for alert in (await harness.ticket(subject)).alerts}


async def test_the_same_delivery_twice_at_once_makes_one_ticket_and_one_write(harness: TicketHarness) -> None:
    await harness.refresh()
    body = delivery(fires(), fires("GpuHot"))
    answers = await asyncio.gather(*(harness.receiver.receive(body) for _ in range(8)))
    assert {answer.result for answer in answers} == {Result.STORED}
    assert len(await harness.tickets()) == 1
    version = (await harness.ticket()).version
    await harness.hear(body)
    assert (await harness.ticket()).version == version
    assert await _states(harness) == {"GpuHot": True, "NodeDown": True}


async def test_two_replicas_that_store_different_alerts_at_once_lose_none(harness: TicketHarness) -> None:
    await harness.refresh()
    other = Receiver(harness.client, harness.store, lambda: True, harness.clock)
    names = [f"A{number}" for number in range(6)]
    await asyncio.gather(
        *(
            (harness.receiver if number % 2 else other).receive(delivery(fires(name)))
            for number, name in enumerate(names)
        )
    )
    assert await _states(harness) == dict.fromkeys(names, True)


async def test_a_group_that_grows_shrinks_ends_and_fires_again(harness: TicketHarness) -> None:
    seen = []
    for step in (
        "01_firing_first",
        "02_firing_new_alert_joins_group",
        "03_firing_repeat_interval",
        "04_firing_partly_resolved",
        "05_resolved_all",
        "06_firing_again",
    ):
        await harness.hear(payload(f"am0.25.0-prom-{step}"))
        await harness.later(minutes=2)
        seen.append([issue.title.split(": ")[0] for issue in harness.channel.issues if issue.open])
    one, two = "[prod] gpu-0001", "[prod] gpu-0002"
    assert seen == [[one], [one, two], [one, two], [two], [], [one]]
    assert len(harness.channel.issues) == 2


async def test_a_truncated_resolve_closes_nothing(harness: TicketHarness) -> None:
    await harness.nodes("n0", "n1")
    await harness.hear(payload("am0.33.1-max_alerts_2_of_5_firing"))
    await harness.work()
    await harness.hear(payload("am0.25.0-max_alerts_first_two_resolved_three_still_firing"))
    await harness.later(minutes=5)
    assert harness.channel.open == [1, 2]


async def test_a_route_that_changed_and_two_routes_deliver_to_the_same_ticket(harness: TicketHarness) -> None:
    body = payload("am0.25.0-reload_changed_route_firing_new_groupkey")
    changed = json.loads(body) | {"groupKey": '{}/{team="x"}:{alertname="Rel"}', "receiver": "other"}
    await harness.hear(body)
    await harness.hear(json.dumps(changed).encode())
    await harness.work()
    assert len(harness.channel.issues) == 1


async def test_a_resolved_for_an_alert_that_nobody_knows_opens_nothing(harness: TicketHarness) -> None:
    await harness.hear(delivery(ends(end=5)))
    await harness.work()
    assert harness.channel.issues == []
    await harness.hear(delivery(fires()))  # the firing that was overtaken
    await harness.work()
    assert harness.channel.issues == []
    await harness.hear(delivery(fires(minute=6)))
    await harness.work()
    assert harness.channel.open == [1]


async def test_a_resolved_alert_that_was_never_open_leaves_no_ticket(harness: TicketHarness) -> None:
    await harness.later(minutes=6)
    await harness.hear(delivery(ends(end=5)))
    await harness.later(minutes=8)
    assert len(await harness.tickets()) == 1  # an old post may still come
    await harness.later(minutes=3)
    assert await harness.tickets() == []


async def test_a_resolve_that_never_comes_leaves_the_issue_open(harness: TicketHarness) -> None:
    await harness.hear(delivery(fires(), fires("GpuErr")))
    await harness.work()
    await harness.hear(delivery(ends(end=1)))
    for _ in range(5):
        await harness.later(hours=12)
    assert harness.channel.open == [1]


@pytest.mark.parametrize("starts", [0, -2, 9], ids=["as before", "as another Prometheus has it", "anew"])
async def test_everything_resolved_because_prometheus_was_away_is_one_closing_and_one_reopening(
    harness: TicketHarness, starts: int
) -> None:
    await harness.hear(delivery(fires()))
    await harness.work()
    await harness.later(minutes=5)
    await harness.hear(delivery(ends(end=4)))
    await harness.later(minutes=1)
    assert harness.channel.open == []
    await harness.later(minutes=9)
    assert (await harness.hear(delivery(fires(minute=starts)))).result is Result.STORED
    await harness.later(minutes=5)
    assert harness.channel.open == [1]
    assert harness.channel.calls.count("create") == 1
    await harness.hear(delivery(ends(minute=starts, end=18)))
    await harness.later(minutes=5)
    assert harness.channel.open == []


async def test_a_firing_that_may_be_older_than_the_end_is_sent_again_until_it_cannot_be(harness: TicketHarness) -> None:
    await harness.hear(delivery(fires()))
    await harness.work()
    await harness.hear(delivery(ends(end=4)))
    harness.now += timedelta(minutes=14)
    received = await harness.hear(delivery(fires(), fires("GpuHot")))
    assert received.result is Result.LATER
    assert "NodeDown ended at 2026-11-20 09:04:00 UTC" in received.message
    assert await _states(harness) == {"GpuHot": True, "NodeDown": False}
    harness.now += timedelta(seconds=1)
    assert (await harness.hear(delivery(fires(), fires("GpuHot")))).result is Result.STORED
    assert await _states(harness) == {"GpuHot": True, "NodeDown": True}


async def test_a_real_prometheus_that_died_closes_what_it_had_opened(harness: TicketHarness) -> None:
    await harness.hear(payload("am0.25.0-prom-01_firing_first"))
    await harness.work()
    await harness.hear(payload("am0.25.0-prom-07_resolved_because_prometheus_died"))
    await harness.later(minutes=5)
    assert (harness.channel.open, len(harness.channel.issues)) == ([], 1)


async def test_an_alert_under_a_new_fingerprint_is_no_new_issue_and_no_new_comment(harness: TicketHarness) -> None:
    await harness.hear(delivery(fires(pod="exporter-a") | {"fingerprint": "one"}))
    await harness.work()
    await harness.hear(delivery(fires(pod="exporter-b", minute=9) | {"fingerprint": "two"}))
    await harness.later(minutes=10)
    assert (len(harness.channel.issues), harness.channel.comments[1]) == (1, [])


async def test_hostile_words_are_filed_and_ping_nobody(harness: TicketHarness) -> None:
    await harness.nodes("n1")
    await harness.hear(payload("am0.33.1-special_characters"))
    await harness.work()
    issue = harness.channel.issue(1)
    assert issue.title == '[prod] n1: 特殊 "quoted" \\ back newline'
    assert issue.body.count("-->") == 3
    assert issue.body.endswith("<!-- remediator:end -->")


@pytest.mark.parametrize("body", [b"{}", b'{"text": "down"}', b"nonsense"])
async def test_what_is_no_payload_has_no_effect(harness: TicketHarness, body: bytes) -> None:
    assert (await harness.hear(body)).result is Result.BAD
    assert await harness.tickets() == []


async def test_a_delivery_is_answered_without_waiting_for_the_tracker(harness: TicketHarness) -> None:
    harness.channel = _Stuck()
    harness.restart()
    assert (await harness.hear(delivery(fires()))).result is Result.STORED
    work = asyncio.ensure_future(harness.work())
    assert (await harness.receiver.receive(delivery(fires("GpuHot")))).result is Result.STORED
    work.cancel()


class _Stuck(MemoryChannel):
    async def create(self, *_: object) -> None:  # type: ignore[override]
        await asyncio.Event().wait()


@pytest.mark.slow
async def test_a_delivery_of_500_nodes_is_stored_whole(harness: TicketHarness) -> None:
    await harness.nodes(*(f"node-{number}" for number in range(500)))
    await harness.refresh()
    body = delivery(*(fires(node=f"node-{number}") for number in range(500)))
    assert (await harness.receiver.receive(body)).result is Result.STORED
    assert len(await harness.tickets()) == 500


@asynccontextmanager
async def _turns() -> AsyncIterator[list[int]]:
    """How often the loop has turned meanwhile."""
    turns = [0]

    async def count() -> None:
        while True:
            await asyncio.sleep(0)
            turns[0] += 1

    counting = asyncio.create_task(count())
    yield turns
    counting.cancel()


async def test_others_have_a_turn_after_each_100_alerts_of_a_delivery_that_is_read(harness: TicketHarness) -> None:
    """Also where the one after 5,000 makes it no payload."""
    await harness.refresh()
    body = delivery(*(fires(f"A{number}") for number in range(5_000)), fires() | {"labels": {"a": 5}})
    async with _turns() as turns:
        answer = await harness.receiver.receive(body)
    assert (answer.result, "labels of alert 5001: " in answer.message) == (Result.BAD, True)
    assert turns[0] >= 49


async def test_others_have_a_turn_while_many_alerts_are_grouped_and_after_each_16_tickets(
    harness: TicketHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """2,000 alerts about as many nodes are read, named and grouped in 20 turns each; no Ticket waits for a server."""
    await harness.refresh()
    stored: list[int] = []
    monkeypatch.setattr(harness.store.cache, "knows_node", lambda name: True)
    async with _turns() as turns:

        async def merge(*given: object) -> None:
            stored.append(turns[0])

        monkeypatch.setattr(harness.store, "merge", merge)
        body = delivery(*(fires(node=f"n{number}") for number in range(2_000)))
        assert (await harness.receiver.receive(body)).result is Result.STORED
    assert (len(stored), stored[0] >= 55) == (2_000, True)
    assert max(Counter(stored).values()) <= WRITERS == 16


async def test_others_have_a_turn_after_each_100_alerts_about_one_node_that_are_merged(
    harness: TicketHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """5,000 are heard in 50 parts, and the 64 that are kept are chosen in 50; what fires and is left out is told."""
    await harness.refresh()
    alerts = [Alert(f"{number:04}", "A", START + timedelta(seconds=number)) for number in range(5_000)]
    request, asked = harness.client.transport.request, []
    for stored in (alerts, [*alerts, Alert("more", "A", START + timedelta(hours=2))]):
        async with _turns() as turns:

            async def noting(*args: Any, turns: list[int] = turns, **kwargs: Any) -> Reply:
                asked.append(turns[0])
                return await request(*args, **kwargs)

            monkeypatch.setattr(harness.client.transport, "request", noting)
            with capture_logs() as logs:
                await harness.store.merge(GPU, stored, START)
        assert asked.pop() >= 97
        assert (await harness.ticket()).alerts == merged((), stored, START)
        assert [(line["held"], line["others"]) for line in logs] == [(64, len(stored) - 64)]


async def test_thousands_of_alerts_about_one_node_are_stored_while_others_about_it_come_without_end(
    harness: TicketHarness,
) -> None:
    """5,000 take 100 turns to be put in order; another alert is stored every 10 turns, and the last write has both."""
    await harness.hear(delivery(fires()))
    alerts = [Alert(f"{number:04}", "A", START + timedelta(seconds=number)) for number in range(5_000)]
    large, small = asyncio.ensure_future(harness.store.merge(GPU, alerts, START)), 0
    while not large.done():
        small += 1
        await harness.store.merge(GPU, [Alert("small", "B", START + timedelta(hours=2, seconds=small))], START)
        for _ in range(10):
            await asyncio.sleep(0)
    large.result()
    held = {alert.fingerprint for alert in (await harness.ticket()).alerts}
    assert (small > 1, {"small", "4999"} <= held) == (True, True)


async def test_alerts_about_one_node_are_counted_once_however_often_its_ticket_was_written_meanwhile(
    harness: TicketHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five writes of others come between; the 200 alerts are gone through once, and all that are left out are told."""
    await harness.hear(delivery(fires()))
    gone_through, patch = Counter[str](), harness.client.patch

    def counting(newest: NewestAlerts, through: Any = NewestAlerts.__iter__) -> Iterator[Alert]:
        gone_through["received" if len(newest.same(alerts)) == 200 else "kept"] += 1
        return through(newest)

    async def overtaken(*args: Any, **kwargs: Any) -> Any:
        gone_through["writes"] += 1
        if gone_through["writes"] <= 5:
            raise errors.Conflict(409, "Conflict", "")
        return await patch(*args, **kwargs)

    alerts = [Alert(f"{number:04}", "A", START + timedelta(seconds=number)) for number in range(200)]
    monkeypatch.setattr(NewestAlerts, "__iter__", counting)
    monkeypatch.setattr(harness.client, "patch", overtaken)
    with capture_logs() as logs:
        await harness.store.merge(GPU, alerts, START)
    assert (gone_through["writes"], gone_through["received"]) == (6, 1)
    assert [line["others"] for line in logs] == [201 - 64] * 6


async def test_an_end_that_may_be_newer_is_named_once_however_often_the_alert_came(harness: TicketHarness) -> None:
    """300 times, in parts of 100."""
    await harness.hear(delivery(fires()))
    await harness.hear(delivery(ends()))
    answer = await harness.receiver.receive(delivery(*[fires()] * 300))
    assert (answer.result, answer.message.count("alert NodeDown ended at")) == (Result.LATER, 1)


async def test_nodes_that_the_cache_knows_are_not_read_and_each_other_name_is_read_once(harness: TicketHarness) -> None:
    await harness.refresh()
    read, request = [], harness.client.transport.request

    async def recording(method: str, path: str, **kwargs: object) -> Reply:
        read.extend([path] if method == "GET" else [])
        return await request(method, path, **kwargs)  # type: ignore[arg-type]

    harness.client.transport.request = recording  # type: ignore[method-assign]
    alerts = [fires(name, node="", instance=f"{node}:9100") for name in "ab" for node in ("gpu-17", "web", "db")]
    assert (await harness.receiver.receive(delivery(*alerts))).result is Result.STORED
    assert sorted(read) == ["/api/v1/nodes/db", "/api/v1/nodes/web"]


async def test_look_ups_that_hang_do_not_keep_another_delivery_from_being_stored(harness: TicketHarness) -> None:
    await harness.refresh()
    request, hanging, full = harness.client.transport.request, [], asyncio.Event()

    async def slow(method: str, path: str, **kwargs: object) -> Reply:
        if path.startswith("/api/v1/nodes/web-"):
            hanging.append(path)
            if len(hanging) == READERS:
                full.set()
            await asyncio.Event().wait()
        return await request(method, path, **kwargs)  # type: ignore[arg-type]

    harness.client.transport.request = slow  # type: ignore[method-assign]
    names = (f"web-{number}:9100" for number in range(50))
    stuck = asyncio.ensure_future(
        harness.receiver.receive(delivery(*(fires(node="", instance=name) for name in names)))
    )
    async with asyncio.timeout(5):
        await full.wait()
        assert (await harness.receiver.receive(delivery(fires()))).result is Result.STORED
    assert (stuck.done(), len(hanging)) == (False, READERS)
    stuck.cancel()


async def test_a_node_that_the_cache_does_not_know_yet_is_found(harness: TicketHarness) -> None:
    await harness.refresh()
    await harness.client.create(NODES, {"metadata": {"name": "new"}})
    await harness.receiver.receive(delivery(fires(node="", instance="new:9100")))
    assert [ticket.subject for ticket in await harness.tickets()] == [Subject(About.NODE, node="new")]


async def test_a_node_is_looked_up_where_only_the_instance_names_it(harness: TicketHarness) -> None:
    await harness.hear(delivery(fires(node="", instance="gpu-18:9100"), fires(node="", instance="web:80")))
    assert {ticket.subject.about for ticket in await harness.tickets()} == {About.NODE, About.ALERT}
    assert await _states(harness, Subject(About.NODE, node="gpu-18")) == {"NodeDown": True}


async def test_a_node_that_the_cache_knows_is_read_live_once_the_watch_of_nodes_is_silent(
    harness: TicketHarness,
) -> None:
    """151 seconds without a sign of life; meanwhile the node has gone."""
    await harness.refresh()
    assert harness.store.cache.has_node("gpu-17")
    await harness.client.delete(NODES, "gpu-17")
    harness.store.cache.nodes._reflector._alive_at -= 151
    await harness.receiver.receive(delivery(fires(node="", instance="gpu-17:9100")))
    assert [ticket.subject.about for ticket in await harness.tickets()] == [About.ALERT]


async def test_cold_caches_and_an_api_server_that_is_away_are_later(harness: TicketHarness) -> None:
    cold = Receiver(harness.client, harness.store, lambda: False, harness.clock)
    assert (await cold.receive(delivery(fires()))).result is Result.LATER
    send = harness.client.transport.request

    async def away(method: str, path: str, **kwargs: object) -> Reply:
        return Reply(503, b"{}", {}) if method == "POST" else await send(method, path, **kwargs)  # type: ignore[arg-type]

    harness.client.transport.request = away  # type: ignore[method-assign]
    received = await harness.hear(delivery(fires(), fires(node="gpu-18")))
    assert received.result is Result.LATER
    assert "503" in received.message
    harness.client.transport.request = send  # type: ignore[method-assign]
    assert (await harness.hear(delivery(fires(), fires(node="gpu-18")))).result is Result.STORED
    assert len(await harness.tickets()) == 2


async def test_nodes_that_are_not_there_have_no_issues_of_their_own(harness: TicketHarness) -> None:
    """Whoever writes rules of Prometheus could have an issue for each name that they think of."""
    await harness.hear(delivery(*(fires(node=f"made-up-{number}") for number in range(200))))
    await harness.work()
    assert [ticket.subject for ticket in await harness.tickets()] == [Subject(About.ALERT, alert="NodeDown")]
    assert len(harness.channel.issues) == 1


async def test_an_alert_goes_on_in_its_ticket_when_its_node_goes_and_when_its_node_comes(
    harness: TicketHarness,
) -> None:
    await harness.hear(delivery(fires(), fires(node="gpu-99")))
    await harness.work()
    assert harness.channel.open == [1, 2]
    await harness.client.delete(NODES, "gpu-17")
    await harness.nodes("gpu-99")
    await harness.hear(delivery(ends(), ends(node="gpu-99")))
    await harness.later(minutes=2)
    assert harness.channel.open == []
    assert len(await harness.tickets()) == 2
