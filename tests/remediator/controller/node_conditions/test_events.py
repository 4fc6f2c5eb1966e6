"""Event/RULE: Events about a node that repeat become a Condition, and policies act on it as on any other."""

import json
from datetime import timedelta
from typing import Any, cast

import msgspec
import pytest
from structlog.testing import capture_logs

from remediator.controller.node_conditions import events
from remediator.core import node_events
from remediator.kube.api.node_events import NodeEvent, node_event
from tests.harness.controller import Answer, ControllerHarness, controller_harness, now, running, stamp, until
from tests.harness.kinds import EVENTS, Object

TYPE = "Event/TaskHung/3-in-60s"
ASKS = {"when": [{"event": {"reason": "TaskHung", "within": "1m"}, "for": "0s"}]}


@pytest.fixture
async def harness(monkeypatch):
    monkeypatch.setattr(events, "LOOK", 0.05)
    async with controller_harness() as harness:
        yield harness


async def happens(
    harness: ControllerHarness, name: str, count: int = 1, node: str = "gpu-1", ago: float = 0, **more: Any
):
    """node-problem-detector tells of a hung task: so often, all of them so many seconds ago."""
    at = stamp(now() - timedelta(seconds=ago))
    about = {"kind": "Node", "name": node, "uid": node}
    times = {"firstTimestamp": at, "lastTimestamp": at, "count": count}
    body = {"metadata": {"name": name, "namespace": "default"}, "involvedObject": about, "reason": "TaskHung"}
    await harness.client.create(EVENTS, body | times | more, namespace="default")


async def again(harness: ControllerHarness, name: str, count: int) -> None:
    body = {"count": count, "lastTimestamp": stamp(now())}
    await harness.client.patch(EVENTS, name, body, namespace="default")


def condition(harness: ControllerHarness, node: str = "gpu-1") -> tuple[str, str] | None:
    ours: list[Object] = [entry for entry in harness.look(node)["status"]["conditions"] if entry["type"] == TYPE]
    return (ours[0]["status"], ours[0]["reason"]) if ours else None


async def test_events_that_repeat_open_a_case_which_recovers_once_it_has_been_quiet(harness, monkeypatch) -> None:
    async def cured(harness: ControllerHarness, node: str) -> None:
        await harness.boot(node)
        harness.kept_for = timedelta(0)

    harness.kept_for = timedelta(minutes=1)
    monkeypatch.setattr(events, "kept", lambda seen, _: tuple(seen) if harness.kept_for else ())
    harness.answer("reboot", Answer(exit=137, does=cured))
    await harness.policy("task-hung", **ASKS)
    await harness.node("gpu-1")
    async with running(harness):
        await happens(harness, "hung")
        await again(harness, "hung", 2)
        await harness.quiet()
        assert (condition(harness), harness.cases("gpu-1")) == (None, [])
        await again(harness, "hung", 3)
        case = await until(lambda: next(iter(harness.cases("gpu-1")), None))
        assert condition(harness) == ("True", "Repeats")
        assert case["spec"]["trigger"]["message"].startswith("3 or more Events TaskHung within 1 min")
        await until(lambda: harness.ended("gpu-1", "Recovered"))
        assert condition(harness) == ("False", "Quiet")


async def test_events_of_before_count_for_the_next_leader_where_all_of_them_are_young_enough(harness) -> None:
    await harness.policy("task-hung", mode="DryRun", **ASKS)
    for node, ago in (("gpu-1", 5), ("gpu-2", 120)):
        await harness.node(node)
        await happens(harness, f"{node}-hung", count=3, node=node, ago=ago)
    async with running(harness):
        await until(lambda: condition(harness) == ("True", "Repeats"))
        await harness.quiet()
        assert condition(harness, "gpu-2") is None


async def test_events_with_other_reasons_about_other_objects_or_nodes_that_are_not_meant_say_nothing(
    harness,
) -> None:
    await harness.policy("task-hung", mode="DryRun", nodeSelector={"matchLabels": {"remediator.dev/a": "b"}}, **ASKS)
    await harness.node("gpu-1", a="b")
    await harness.node("gpu-2", a="c")
    async with running(harness):
        await happens(harness, "other-reason", count=9, reason="OOMKilling")
        pod = {"kind": "Pod", "name": "gpu-1", "namespace": "default"}
        await happens(harness, "other-object", count=9, involvedObject=pod)
        await happens(harness, "other-node", count=9, node="gpu-2")
        await happens(harness, "no-node", count=9, node="gpu-9")
        await happens(harness, "ahead", count=9, ago=-7200)
        await harness.quiet()
        assert (condition(harness), condition(harness, "gpu-2")) == (None, None)
        await happens(harness, "meant", count=3)
        await until(lambda: condition(harness) == ("True", "Repeats"))


async def test_of_more_events_than_a_watch_keeps_none_counts_until_it_is_tried_again(harness, monkeypatch) -> None:
    """20 may be kept: 21 about a node that does not exist, and then the flood is over."""
    monkeypatch.setattr(events, "MOST", 20)
    monkeypatch.setattr(events, "AGAIN", timedelta(seconds=1))
    await harness.policy("task-hung", mode="DryRun", **ASKS)
    await harness.node("gpu-1")
    with capture_logs() as logs:
        async with running(harness):
            for number in range(21):
                await happens(harness, f"flood-{number}", node="gpu-9")
            await happens(harness, "true", count=3)
            await until(lambda: any(line["event"].startswith("too many Events") for line in logs))
            assert condition(harness) is None
            for number in range(21):
                await harness.client.delete(EVENTS, f"flood-{number}", namespace="default")
            await until(lambda: condition(harness) == ("True", "Repeats"))


async def test_events_about_nodes_that_do_not_exist_are_not_kept() -> None:
    """1,000 Events about as many names, one about a node, which then goes."""
    handlers: list[Any] = []

    class Watch:
        async def run(self) -> None:
            pass

        def on_change(self, handler: Any) -> None:
            handlers.append(handler)

        def __len__(self) -> int:
            return 0

    class Now:
        now = staticmethod(now)

    nodes, told = {"gpu-1"}, list[str]()
    watched = events.WatchedEvents(cast(Any, Watch()), cast(Any, Now()), nodes.__contains__, told.append)
    for name in [*(f"none-{number}" for number in range(1000)), "gpu-1"]:
        handlers[0](name, None, told_event(name))
    assert (told, watched.nodes()) == (["gpu-1"], ("gpu-1",))
    nodes.clear()
    assert watched.nodes() == ()


def told_event(node: str) -> node_events.NodeEvent:
    return node_events.NodeEvent(node, 1, now(), now())


def test_a_name_that_no_node_can_have_is_none() -> None:
    """253 characters are the most that a name may have."""
    for length, wanted in ((253, "a" * 253), (254, "")):
        body = {"involvedObject": {"name": "a" * length}}
        assert node_event(msgspec.json.decode(json.dumps(body), type=NodeEvent)).node == wanted


READ = [
    ({"count": 4, "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:09:00Z"}, (4, 9)),
    ({"eventTime": "2026-01-01T00:03:00.000000Z", "firstTimestamp": None, "lastTimestamp": None}, (1, 3)),
    (
        {
            "eventTime": "2026-01-01T00:03:00.000000Z",
            "series": {"count": 7, "lastObservedTime": "2026-01-01T00:08:00.000000Z"},
        },
        (7, 8),
    ),
    ({"count": 2**31 - 1, "lastTimestamp": "2026-01-01T00:01:00Z"}, (1_000_000, 1)),
]


@pytest.mark.parametrize(("fields", "wanted"), READ, ids=["kubelet", "one of events.k8s.io", "a series", "absurd"])
def test_events_of_old_and_new_writers_are_read(fields: Object, wanted: tuple[int, int]) -> None:
    read = node_event(msgspec.json.decode(json.dumps(fields | {"involvedObject": {"name": "gpu-1"}}), type=NodeEvent))
    assert (read.node, read.count, read.last.minute) == ("gpu-1", *wanted)
