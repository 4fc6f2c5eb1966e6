"""The webhook is a hint: which alerts Tickets hold in the end is what Alertmanagers list."""

import asyncio
import json
import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from remediator.core.ticket import About, Subject
from remediator.kube import api
from remediator.kube.wire import errors
from remediator.prometheus.alerts import Alertmanagers, of_answer, together
from remediator.tickets.alertmanager.run import Comparison
from remediator.tickets.webhook.receiver import Receiver, Result
from tests.harness.alertmanager import AWAY, PlayedAlertmanager, listed
from tests.harness.kinds import NODES
from tests.harness.tickets import GPU, TicketHarness, delivery, ends, fires

pytestmark = pytest.mark.sampled("alertmanager")

WATCHDOG = listed(fires("Watchdog", node=""), receiver="null")


class Stage:
    """A harness with a pair of Alertmanagers, which are asked every 30 s."""

    def __init__(self, harness: TicketHarness, watchdog: str = "") -> None:
        self.harness, self.pair = harness, (PlayedAlertmanager(), PlayedAlertmanager())
        self.asked = Alertmanagers(self.pair, "remediator", watchdog)
        harness.receiver = Receiver(harness.client, harness.store, lambda: True, harness.clock, asked=True)
        self.restart()

    def restart(self) -> None:
        """Another leader."""
        self.comparison = Comparison(self.asked, self.harness.store, lambda: self.harness.leads, self.harness.clock)

    def both(self, *alerts: dict[str, Any]) -> None:
        """Both list these."""
        for one in self.pair:
            one.lists(*alerts)

    async def passes(self, minutes: float) -> None:
        """Time goes by, with a comparison every 30 s and then a pass over tickets."""
        for _ in range(int(minutes * 2)):
            self.harness.now += timedelta(seconds=30)
            await self.harness.refresh()
            assert await self.comparison.compare() == 30.0
            await self.harness.work()

    async def firing(self, subject: Subject = GPU) -> list[str]:
        """Names of the alerts that a Ticket holds as firing."""
        return [alert.name for alert in (await self.harness.ticket(subject)).alerts if alert.firing]


@pytest.fixture
async def stage(harness: TicketHarness) -> Stage:
    return Stage(harness)


async def test_a_post_that_was_lost_makes_its_issue_all_the_same_and_what_is_stored_says_when_it_was_heard(
    stage: Stage,
) -> None:
    stage.pair[0].lists(listed(fires()))  # firing in one is firing
    await stage.passes(0.5)
    assert stage.harness.channel.open == [1]
    [alert] = (await stage.harness.ticket()).alerts
    assert (alert.name, alert.summary, alert.received) == ("NodeDown", "NodeDown on gpu-17", stage.harness.now)


async def test_no_write_outlives_a_comparison_of_which_another_write_failed(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    put, over = stage.harness.store.put, []

    async def one_fails(subject: Subject, *more: Any) -> None:
        if subject == GPU:
            raise errors.Unavailable(503, "ServiceUnavailable", "no")
        for _ in range(20):
            await asyncio.sleep(0)
        await put(subject, *more)
        over.append(subject.node)

    monkeypatch.setattr(stage.harness.store, "put", one_fails)
    stage.both(listed(fires()), listed(fires(node="gpu-18")))
    await stage.harness.refresh()
    with pytest.raises(errors.Unavailable):
        await stage.comparison.compare()
    assert over == ["gpu-18"]


async def test_a_resolution_that_is_never_sent_closes_the_issue_after_three_minutes(stage: Stage) -> None:
    await stage.harness.hear(delivery(fires()))
    stage.both(listed(fires()))
    await stage.passes(60)
    stage.both()
    await stage.passes(3)
    assert stage.harness.channel.open == [1]
    await stage.passes(0.5)
    assert stage.harness.channel.open == []
    [alert] = (await stage.harness.ticket()).alerts
    assert (alert.ended, alert.received) == (stage.harness.now - timedelta(minutes=3), stage.harness.now)


NEVER_SENT = {
    "silenced": listed(fires(), "suppressed"),
    "not yet dispatched": listed(fires(), "unprocessed"),
    "its route changed": listed(fires(), receiver="other"),
}


@pytest.mark.parametrize("alert", NEVER_SENT.values(), ids=NEVER_SENT.keys())
async def test_what_is_not_to_be_sent_starts_nothing_and_ends_nothing(stage: Stage, alert: dict[str, Any]) -> None:
    stage.both(alert)
    await stage.passes(5)
    assert await stage.harness.tickets() == []
    await stage.harness.hear(delivery(fires()))
    await stage.passes(60)
    assert stage.harness.channel.open == [1]
    stage.both()
    await stage.passes(3.5)
    assert stage.harness.channel.open == []
    stage.both(alert)
    await stage.passes(5)
    assert stage.harness.channel.open == []


@pytest.mark.parametrize("both", [False, True], ids=["one of them", "both"])
async def test_an_alertmanager_that_does_not_answer_ends_nothing_and_its_peer_starts_what_it_lists(
    stage: Stage, both: bool
) -> None:
    stage.both(listed(fires()))
    await stage.passes(1)
    stage.both()
    for one in stage.pair[: 1 + both]:
        one.reply = AWAY
    await stage.passes(60)
    assert stage.harness.channel.open == [1]
    stage.pair[1].lists(listed(fires("GpuHot", node="gpu-18")))
    await stage.passes(1)
    assert stage.harness.channel.open == [1, 2]


async def test_a_look_that_cannot_tell_and_a_new_leader_let_the_three_minutes_begin_anew(stage: Stage) -> None:
    stage.both(listed(fires()))
    await stage.passes(1)
    for interruption in (lambda: setattr(stage.pair[1], "reply", AWAY), stage.restart):
        stage.both()
        await stage.passes(3)
        interruption()
        await stage.passes(0.5)
        stage.both()
        await stage.passes(2.5)
        assert stage.harness.channel.open == [1]
        stage.both(listed(fires()))
        await stage.passes(0.5)


async def test_an_alertmanager_that_lists_nothing_for_a_minute_after_its_start_ends_nothing(stage: Stage) -> None:
    stage.both(listed(fires()))
    await stage.passes(1)
    stage.both()
    await stage.passes(1)
    stage.both(listed(fires()))
    await stage.passes(60)
    assert stage.harness.channel.calls == ["create"]


async def test_while_no_alertmanager_lists_the_watchdog_prometheus_is_away_and_nothing_ends(
    harness: TicketHarness,
) -> None:
    stage = Stage(harness, watchdog="Watchdog")
    stage.both(WATCHDOG, listed(fires()))
    await stage.passes(1)
    stage.both()
    await harness.hear(delivery(ends(end=5)))
    await stage.passes(120)
    assert harness.channel.open == [1]
    stage.pair[0].lists(WATCHDOG)
    await stage.passes(3.5)
    assert harness.channel.open == []
    assert len(await harness.tickets()) == 1  # none of the watchdog, which goes to another receiver


async def test_an_alert_that_fires_again_with_its_old_start_reopens_the_issue_at_once(stage: Stage) -> None:
    stage.both(listed(fires()))
    await stage.passes(1)
    stage.both()
    await stage.passes(4)
    assert stage.harness.channel.open == []
    stage.both(listed(fires()))
    await stage.passes(0.5)
    assert stage.harness.channel.open == [1]


async def test_an_old_post_that_comes_late_is_answered_with_200_and_opens_nothing(stage: Stage) -> None:
    stage.both(listed(fires()))
    await stage.passes(1)
    stage.both()
    await stage.passes(4)
    assert (await stage.harness.hear(delivery(fires()))).result is Result.STORED
    await stage.passes(1)
    assert stage.harness.channel.open == []


async def test_an_alert_that_is_posted_while_it_is_missing_has_three_minutes_from_then(stage: Stage) -> None:
    stage.both(listed(fires()))
    await stage.passes(1)
    stage.both()
    await stage.passes(2)
    await stage.harness.hear(delivery(fires(minute=3)))
    await stage.passes(2.5)
    assert stage.harness.channel.open == [1]
    await stage.passes(1)
    assert stage.harness.channel.open == []


async def test_what_is_alike_in_each_look_is_written_once(stage: Stage) -> None:
    many = [listed(fires(f"A{number}", minute=number)) for number in range(70)]  # more than a Ticket holds
    stage.both(*many)
    await stage.passes(1)
    version = (await stage.harness.ticket()).version
    words = {"annotations": {"summary": "now 81 degrees"}}
    stage.both(*(alert | words for alert in many))
    await stage.passes(5)
    assert (await stage.harness.ticket()).version == version
    assert len(await stage.firing()) == 64


async def test_without_the_lease_nothing_is_written(stage: Stage) -> None:
    stage.both(listed(fires()))
    stage.harness.leads = False
    await stage.passes(1)
    assert await stage.harness.tickets() == []


async def test_a_ticket_that_was_written_meanwhile_is_compared_again(stage: Stage) -> None:
    await stage.harness.hear(delivery(fires()))
    await stage.harness.refresh()
    stage.both(listed(fires()), listed(fires("GpuHot")))
    await stage.harness.client.patch(api.TICKET, GPU.name, {"metadata": {"labels": {"a": "b"}}})
    assert await stage.comparison.compare() == 30.0
    assert await stage.firing() == ["NodeDown"]
    await stage.passes(0.5)
    assert await stage.firing() == ["GpuHot", "NodeDown"]


async def test_an_alert_whose_node_is_gone_stays_in_the_ticket_that_holds_it(stage: Stage) -> None:
    alert = fires(node="", instance="gpu-18:9100")
    await stage.harness.hear(delivery(alert))
    stage.both(listed(alert))
    await stage.passes(1)
    await stage.harness.client.delete(NODES, "gpu-18")
    await stage.passes(5)
    assert [ticket.subject for ticket in await stage.harness.tickets()] == [Subject(About.NODE, node="gpu-18")]


def lost(bodies: list[bytes]) -> list[bytes]:
    return []


def doubled(bodies: list[bytes]) -> list[bytes]:
    return [body for body in bodies for _ in range(2)]


def shuffled(bodies: list[bytes]) -> list[bytes]:
    return random.Random(7).sample(bodies, len(bodies))


def late(bodies: list[bytes]) -> list[bytes]:
    return [*bodies[-1:], *bodies[:-1]]


@pytest.mark.parametrize("way", [lost, doubled, shuffled, late, lambda bodies: bodies[:1], reversed])
async def test_however_posts_arrive_the_end_is_what_is_listed(
    stage: Stage, way: Callable[[list[bytes]], list[bytes]]
) -> None:
    """Of three alerts one ends, one fires again, and one is left out by `max_alerts` and said to be over."""
    posts = [
        delivery(fires("A"), fires("B"), fires("C")),
        delivery(ends("A", end=2), fires("B"), fires("C")),
        delivery(ends("B", end=3), truncated=1),
        delivery(fires("B", minute=4), ends("C", end=3)),
    ]
    for body in way(posts):
        assert (await stage.harness.hear(body)).result is Result.STORED
        await stage.harness.later(seconds=5)
    stage.both(listed(fires("B", minute=4)), listed(fires("C")))
    await stage.passes(5)
    assert await stage.firing() == ["B", "C"]
    assert len([issue for issue in stage.harness.channel.issues if issue.open]) == 1
    stage.both()
    await stage.passes(4)
    assert await stage.firing() == []
    assert stage.harness.channel.open == []


def test_an_alert_in_two_lists_is_active_where_it_is_in_one_and_has_the_receivers_of_both() -> None:
    one, other = (
        of_answer(200, json.dumps([alert]).encode())
        for alert in (listed(fires(), receiver="other"), listed(fires(minute=1), "suppressed"))
    )
    for pair in ((one, other), (other, one)):
        [alert] = together(pair, "").alerts.values()
        assert (alert.active, set(alert.receivers)) == (True, {"other", "remediator"})
