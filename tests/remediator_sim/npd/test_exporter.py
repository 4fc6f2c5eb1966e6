"""When the conditions of a node are sent, with a server that fails, in virtual time."""

import asyncio
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime

import msgspec
import pytest

from remediator.clock import Clock
from remediator.kube.wire.client import Client
from remediator.kube.wire.transport import Reply
from remediator_sim.npd.config import Monitor, Rule
from remediator_sim.npd.exporter import Exporter
from remediator_sim.npd.monitor import next_batch, repeat
from remediator_sim.npd.status import Condition, ReportedEvent

NOW = datetime(2026, 1, 1, tzinfo=UTC)
BROKEN = Condition("Broken", "True", NOW, "Bad", "oh")
pytestmark = pytest.mark.looptime


class Wire:
    """A transport that remembers (seconds, method, path, body) and refuses while `down`."""

    def __init__(self):
        self.calls, self.down = [], False

    async def request(self, method, path, *, body=b"", **_):
        self.calls.append((round(asyncio.get_running_loop().time(), 2), method, path, msgspec.json.decode(body)))
        return Reply(503 if self.down else 200, b"{}", {})

    def patches(self):
        return [moment for moment, method, *_ in self.calls if method == "PATCH"]

    def tries(self):
        """The second of each round of tries."""
        return sorted({int(moment) for moment in self.patches()})


@asynccontextmanager
async def exporting(heartbeat=300.0):
    wire = Wire()
    exporter = Exporter(Client(wire), "n", heartbeat, Clock(lambda: NOW, lambda: 0.0))
    task = asyncio.create_task(exporter.run())
    yield exporter, wire
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_news_is_sent_at_the_next_second_and_then_only_the_heartbeat():
    async with exporting(heartbeat=60) as (exporter, wire):
        exporter.tell("s", [BROKEN])
        await asyncio.sleep(5.5)
        exporter.tell("s", [BROKEN])  # nothing new
        await asyncio.sleep(120)
    assert wire.patches() == [1, 61, 121]


async def test_a_patch_that_failed_is_tried_five_times_and_again_after_ten_seconds():
    async with exporting() as (exporter, wire):
        wire.down = True
        exporter.tell("s", [BROKEN])
        await asyncio.sleep(25)
        assert wire.tries() == [1, 11, 21]
        assert len(wire.patches()) == 15
        wire.down = False
        await asyncio.sleep(100)
    assert wire.tries() == [1, 11, 21, 31]


async def test_news_does_not_wait_for_the_ten_seconds():
    async with exporting() as (exporter, wire):
        wire.down = True
        exporter.tell("s", [BROKEN])
        await asyncio.sleep(3.5)
        wire.down = False
        exporter.tell("s", [Condition("Other", "False", NOW, "Well", "")])
        await asyncio.sleep(30)
    assert wire.tries() == [1, 4]
    conditions = wire.calls[-1][3]["status"]["conditions"]
    assert [one["type"] for one in conditions] == ["Broken", "Other"]
    assert "message" not in conditions[1]


async def test_an_event_waits_for_the_server_and_its_repetition_is_counted():
    async with exporting() as (exporter, wire):
        wire.down = True
        exporter.tell("s", (), [ReportedEvent(True, "Bad", "oh")])
        await asyncio.sleep(0.9)
        wire.down = False
        exporter.tell("s", (), [ReportedEvent(True, "Bad", "oh")] * 2)
        await asyncio.sleep(0.05)
        exporter.tell("s", (), [ReportedEvent(True, "Bad", "ah")])
        await asyncio.sleep(0.9)
    made = [body["metadata"]["name"] for _, method, _, body in wire.calls if method == "POST"]
    assert len(set(made)) == 2
    counted = [(path, body["count"]) for _, method, path, body in wire.calls if method == "PATCH" and "count" in body]
    counts = [(path.rpartition("/")[2], count) for path, count in counted]
    assert counts == [(made[0], 2), (made[0], 3)]


async def test_a_batch_lasts_as_long_as_its_slowest_rule_and_the_ticks_keep_their_phase():
    begun = []

    async def run(rule):
        begun.append((rule.path, asyncio.get_running_loop().time()))
        await asyncio.sleep(25 if rule.path == "slow" and len(begun) < 3 else 0)

    rules = (Rule("permanent", "A", "Bad", "slow"), Rule("permanent", "A", "Bad", "quick"))
    with suppress(TimeoutError):
        await asyncio.wait_for(repeat(Monitor("s", (), rules, interval=10), run), 45)
    assert [moment for path, moment in begun if path == "quick"] == [0, 25, 30, 40]
    assert [moment for path, moment in begun if path == "slow"] == [0, 25, 30, 40]


async def test_no_more_rules_run_at_once_than_the_file_allows():
    running, most = 0, 0

    async def run(_):
        nonlocal running, most
        running, most = running + 1, max(most, running + 1)
        await asyncio.sleep(1)
        running -= 1

    rules = tuple(Rule("permanent", "A", "Bad", str(number)) for number in range(5))
    with suppress(TimeoutError):
        await asyncio.wait_for(repeat(Monitor("s", (), rules, interval=10, concurrency=2), run), 9)
    assert most == 2


def test_a_tick_that_comes_just_as_a_batch_ends_starts_the_next():
    assert next_batch(0, 10, 10) == 10
    assert next_batch(0, 10.1, 10) == 10.1
    assert next_batch(10.1, 10.2, 10) == 20
