"""Event/RULE: Events about a node that repeat become a Condition, and policies act on it as on any other."""

import json
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from remediator.controller.node_conditions import events
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
