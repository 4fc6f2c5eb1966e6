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
from remediator_sim.apiserver.store import Entry
from tests.builders import a_node
from tests.harness.controller import Answer, ControllerHarness, controller_harness, now, running, stamp, until
from tests.harness.kinds import EVENTS, NODES, POLICIES, Object

TYPE, EDITED = "Event/TaskHung/3-in-600s", "Event/TaskHung/5-in-1200s"
ASKS = {"when": [{"event": {"reason": "TaskHung"}, "for": "0s"}]}
ASKS_MORE = {"when": [{"event": {"reason": "TaskHung", "count": 5, "within": "20m"}, "for": "0s"}]}


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


async def again(harness: ControllerHarness, name: str, count: int, ago: float = 0) -> None:
    body = {"count": count, "lastTimestamp": stamp(now() - timedelta(seconds=ago))}
    await harness.client.patch(EVENTS, name, body, namespace="default")


def made_an_hour_ago(harness: ControllerHarness) -> None:
    """All nodes that there are; before the controller runs."""
    entries = harness.server.cluster.store.collection("nodes").entries
    for key, entry in entries.items():
        made = {"creationTimestamp": stamp(now() - timedelta(hours=1))}
        entries[key] = Entry({**entry.obj, "metadata": {**entry.obj["metadata"], **made}}, entry.rv)


def condition(harness: ControllerHarness, node: str = "gpu-1", type: str = TYPE) -> tuple[str, str] | None:
    ours: list[Object] = [entry for entry in harness.look(node)["status"]["conditions"] if entry["type"] == type]
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
        assert case["spec"]["trigger"]["message"].startswith("3 or more Events TaskHung within 10 min")
        await until(lambda: harness.ended("gpu-1", "Recovered"))
        assert condition(harness) == ("False", "Quiet")


async def test_events_of_before_count_for_the_next_leader_where_all_of_them_are_young_enough(harness) -> None:
    await harness.policy("task-hung", mode="DryRun", **ASKS)
    for node, ago in (("gpu-1", 5), ("gpu-2", 1200)):
        await harness.node(node)
        await happens(harness, f"{node}-hung", count=3, node=node, ago=ago)
    made_an_hour_ago(harness)
    async with running(harness):
        await until(lambda: condition(harness) == ("True", "Repeats"))
        await harness.quiet()
        assert condition(harness, "gpu-2") is None


@pytest.mark.slow
async def test_events_about_a_machine_that_is_gone_say_nothing_of_one_that_has_its_name(harness) -> None:
    """Three a minute ago; the Node is an hour old, and then a new one."""
    await harness.policy("task-hung", mode="DryRun", **ASKS)
    await harness.node("gpu-1")
    made_an_hour_ago(harness)
    await happens(harness, "hung", count=3, ago=60)
    async with running(harness):
        await until(lambda: condition(harness) == ("True", "Repeats"))
        await harness.client.delete(NODES, "gpu-1")
        await harness.node("gpu-1")
        await happens(harness, "hung-again")
        await harness.quiet()
        assert condition(harness) is None


async def test_an_event_whose_time_or_count_goes_back_and_on_again_is_counted_once(harness) -> None:
    """Two: now, a minute ago, one of them, both again."""
    await harness.policy("task-hung", mode="DryRun", **ASKS)
    await harness.node("gpu-1")
    made_an_hour_ago(harness)
    async with running(harness):
        await happens(harness, "hung", count=2)
        for count, ago in ((2, 60), (1, 0), (2, 0)):
            await again(harness, "hung", count, ago)
            await harness.quiet()
        assert condition(harness) is None
        await again(harness, "hung", 3)
        await until(lambda: condition(harness) == ("True", "Repeats"))


async def test_a_rule_that_is_edited_while_a_case_is_open_ends_it_once_there_was_no_event_for_its_new_time(
    harness, monkeypatch
) -> None:
    """Three are enough, then five are. The budget is full, so that the case stays Held."""
    silent: list[str] = []
    monkeypatch.setattr(events, "kept", lambda seen, _: () if silent else tuple(seen))
    await harness.budget("full", 0)
    await harness.policy("task-hung", **ASKS)
    await harness.node("gpu-1")
    async with running(harness):
        await happens(harness, "hung", count=3)
        await until(lambda: harness.reasons("gpu-1") == ["BudgetSpent"])
        await harness.client.patch(POLICIES, "task-hung", {"spec": ASKS_MORE})
        await until(lambda: harness.reasons("gpu-1") == ["HealthUnknown"])
        await harness.quiet()
        assert (condition(harness, type=EDITED), harness.reasons("gpu-1")) == (None, ["HealthUnknown"])
        silent.append("from now on")
        await until(lambda: harness.ended("gpu-1", "Recovered"))
        assert condition(harness, type=EDITED) == ("False", "Quiet")


async def test_who_begins_to_lead_says_that_there_was_no_event_for_the_time_of_a_rule_that_was_edited_before(
    harness,
) -> None:
    await harness.policy("task-hung", mode="DryRun", **ASKS)
    await harness.node("gpu-1")
    await harness.condition("gpu-1", "True", EDITED)
    async with running(harness):
        await until(lambda: condition(harness) == ("False", "Quiet"))


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

    nodes, told = {"gpu-1": a_node("gpu-1")}, list[str]()
    watched = events.WatchedEvents(cast(Any, Watch()), cast(Any, Now()), nodes.get, told.append)
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
