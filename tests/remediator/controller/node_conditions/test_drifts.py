"""NodeDrift: nodes of a group are compared, the odd one is told of once the group stands still, and nothing is done."""

from collections import Counter
from collections.abc import AsyncIterator
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from remediator.clock import Clock
from remediator.controller.effects import Done, Patch
from remediator.controller.node_conditions import drifts
from remediator.controller.node_conditions.drifts import ASK, NodeDrifts
from remediator.core import node_drift, own_condition, version_groups
from remediator.core.names import GROUP, GROUP_LABELS
from remediator.core.node import Node
from remediator.core.node_drift import GRACE
from remediator.core.node_versions import NODE_DRIFT, NODE_VERSIONS, versions
from remediator.kube.runtime.queue import WorkQueue
from remediator.kube.wire.transport import STRATEGIC_PATCH
from remediator.settings import Settings
from tests.builders import a_node, at, condition
from tests.contract.conditions import ROOT
from tests.harness import yaml_files
from tests.harness.controller import (
    Answer,
    ControllerHarness,
    Object,
    controller_harness,
    now,
    running,
    stamp,
    until,
)
from tests.harness.kinds import CASES, NODES, POLICIES, TICKETS

pytestmark = pytest.mark.sampled("drifts")

POOL, EQUAL = f"{GROUP}/pool", "kernel=6.8.0 persistence=on"
ODD = "kernel=6.8.0 persistence=off"


@pytest.fixture
async def harness(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ControllerHarness]:
    """Six nodes of one pool; looks come at once, and what has stood still for no time at all is told."""
    monkeypatch.setattr(drifts, "EVERY", 0.1)
    monkeypatch.setattr(node_drift, "GRACE", timedelta(0))
    monkeypatch.setattr(version_groups, "SETTLED", timedelta(0))
    async with controller_harness() as harness:
        for number in range(1, 7):
            await harness.node(f"gpu-{number}", pool="h100")
            await says(harness, f"gpu-{number}", EQUAL)
        yield harness


async def says(harness: ControllerHarness, node: str, message: str, status: str = "True") -> None:
    """What the detector on the node reads now."""
    times = {"lastTransitionTime": stamp(now()), "lastHeartbeatTime": stamp(now())}
    said = {"type": NODE_VERSIONS, "status": status, "reason": "VersionsRead", "message": message}
    patch = {"status": {"conditions": [said | times]}}
    await harness.client.patch(NODES, node, patch, subresource="status", content_type=STRATEGIC_PATCH)


def drift(harness: ControllerHarness, node: str = "gpu-1") -> Object:
    conditions = harness.look(node)["status"]["conditions"]
    return next((each for each in conditions if each["type"] == NODE_DRIFT), {})


async def test_the_odd_node_is_told_of_and_is_well_when_it_is_as_the_others_and_of_those_nothing_is_written(
    harness: ControllerHarness,
) -> None:
    await says(harness, "gpu-1", ODD)
    async with running(harness, drift_labels=POOL):
        await until(lambda: drift(harness).get("status") == "True")
        assert (drift(harness)["reason"], drift(harness)["message"]) == (
            "PersistenceDrift",
            "persistence off where 5 of 6 nodes of h100 have on",
        )
        await says(harness, "gpu-1", EQUAL)
        await until(lambda: drift(harness)["status"] == "False")
    assert drift(harness)["reason"] == "NoDrift"
    assert [drift(harness, f"gpu-{number}") for number in range(2, 7)] == [{}] * 5


async def test_a_roll_out_tells_of_nobody_and_one_that_stops_of_the_nodes_it_has_left_behind(
    harness: ControllerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_drift, "GRACE", GRACE)
    async with running(harness, drift_labels=POOL):
        for number in range(1, 6):  # one after the other, and then it stops
            await says(harness, f"gpu-{number}", ODD)
            await harness.quiet()
            assert [drift(harness, f"gpu-{each}") for each in range(1, 7)] == [{}] * 6
        monkeypatch.setattr(node_drift, "GRACE", timedelta(0))
        await until(lambda: drift(harness, "gpu-6").get("status") == "True")
    assert drift(harness, "gpu-6")["message"] == "persistence on where 5 of 6 nodes of h100 have off"
    assert [drift(harness, f"gpu-{each}") for each in range(1, 6)] == [{}] * 5


async def test_a_new_leader_leaves_what_was_told_as_it_is_and_tells_nothing_new_before_the_grace_is_over(
    harness: ControllerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    await says(harness, "gpu-1", ODD)
    async with running(harness, drift_labels=POOL):
        await until(lambda: drift(harness).get("status") == "True")
    monkeypatch.setattr(node_drift, "GRACE", GRACE)
    told = drift(harness)["lastTransitionTime"]
    async with running(harness, "two", drift_labels=POOL):
        await until(lambda: drift(harness)["status"] == "True")
        await harness.quiet()
        assert (drift(harness)["status"], drift(harness)["lastTransitionTime"]) == ("True", told)
        await says(harness, "gpu-1", "nothing can be read", "Unknown")
        await until(lambda: drift(harness)["status"] == "Unknown")
    assert drift(harness)["message"] == "persistence cannot be compared: the node does not tell it now"


async def test_a_new_leader_that_hears_nobody_of_the_group_cannot_tell_and_calls_no_node_well(
    harness: ControllerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after an hour without an API server: no heartbeat is young."""
    await says(harness, "gpu-1", ODD)
    async with running(harness, drift_labels=POOL):
        await until(lambda: drift(harness).get("status") == "True")
    monkeypatch.setattr(node_drift, "STALE_AFTER", timedelta(0))
    async with running(harness, "two", drift_labels=POOL):
        await harness.quiet()
        assert drift(harness)["status"] != "False"


async def test_a_node_that_an_operation_has_cured_is_told_well_again_while_its_case_asks_for_proof(
    harness: ControllerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_condition, "BEAT_OF_CASE", timedelta(seconds=1))
    harness.silent.add(NODE_DRIFT)

    async def cured(harness: ControllerHarness, node: str) -> None:
        await says(harness, node, EQUAL)

    harness.answer("fix", Answer(does=cured))
    await harness.template("fix", timeout="20s")
    verify = {"settle": "1s", "fresh": "1s", "timeout": "20s"}
    when = [{"condition": NODE_DRIFT, "for": "0s"}]
    await harness.policy("drift", when=when, ladder=[{"operation": "fix", "attempts": 1}], verify=verify)
    await says(harness, "gpu-1", ODD)
    async with running(harness, drift_labels=POOL):
        await until(lambda: [case.get("status", {}).get("phase") for case in harness.all(CASES)] == ["Recovered"])


async def test_the_shipped_policy_tells_it_and_does_nothing_to_the_node(harness: ControllerHarness) -> None:
    spec = yaml_files.read(ROOT / "deploy/policies/node-drift.yaml")["spec"]
    when = [{**spec["when"][0], "for": "0s"}]
    await harness.make(POLICIES, "node-drift", **spec | {"mode": "Enforce", "when": when})
    await says(harness, "gpu-1", ODD)
    async with running(harness, drift_labels=POOL):
        await until(lambda: drift(harness).get("status") == "True")
        await harness.quiet()
    assert (harness.ran, harness.taints("gpu-1")) == ([], [])
    assert not harness.look("gpu-1")["spec"].get("unschedulable")
    assert harness.all(TICKETS) is not None


class Written(list[Patch]):
    """In place of a performer: what would be written."""

    async def one(self, effect: Patch) -> Done:
        self.append(effect)
        return Done()


class CountedNodes(dict[str, Node]):
    """In place of the cache of nodes: how often each is read."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = Counter[str]()

    def get(self, name: str, default: Any = None) -> Any:
        self.reads["one"] += 1
        return super().get(name, default)

    def __iter__(self) -> Any:
        for node in self.values():
            self.reads["all"] += 1
            yield node


def a_fleet(size: int, odd: int) -> CountedNodes:
    """Nodes in pools of a hundred; every hundredth, up to `odd`, has no persistence mode."""
    nodes = CountedNodes()
    for number in range(size):
        line = ODD if number % 100 == 0 and number < 100 * odd else EQUAL
        said = condition(NODE_VERSIONS, heartbeat=60 * 24, message=line)
        labels = {GROUP_LABELS[1]: f"pool-{number // 100}"}
        nodes[f"n{number}"] = a_node(f"n{number}", said, labels=labels, versions=versions(line))
    return nodes


async def test_a_look_at_5000_nodes_reads_each_once_and_only_those_that_differ_are_written() -> None:
    nodes, written, time = a_fleet(5000, odd=20), Written(), [at(60 * 24 - 1)]
    cases = SimpleNamespace(by=lambda *_: (), on_change=lambda _: None)
    cache: Any = SimpleNamespace(nodes=nodes, cases=cases, has_open_case=lambda _: False)
    performer: Any = written
    looks = NodeDrifts(cache, performer, Clock(lambda: time[0], lambda: 0.0), Settings().group_labels)
    looks.queue._queue = WorkQueue("drifts")
    await looks._pass(ASK)
    assert list(looks.queue._feeds.pop()) == [], "the grace begins"
    time[0] = at(60 * 24)
    looks._seen = looks._seen and looks._seen._replace(began=at(60 * 24) - GRACE)
    nodes.reads.clear()
    assert await looks._pass(ASK) == drifts.EVERY
    differing = list(looks.queue._feeds.pop())
    assert (sorted(differing), nodes.reads) == (sorted(f"n{100 * number}" for number in range(20)), {"all": 5000})
    for name in differing:
        await looks._pass(name)
    assert [patch.name for patch in written] == differing


def test_the_labels_that_make_groups_are_at_most_eight_keys_or_none() -> None:
    assert Settings().group_labels == GROUP_LABELS
    assert (Settings(drift_labels="rack,pool").group_labels, Settings(drift_labels="").group_labels) == (
        ("rack", "pool"),
        (),
    )
    with pytest.raises(ValueError, match=r"--drift-labels is 'a b', not at most 8 keys of labels"):
        Settings(drift_labels="a b")
    with pytest.raises(ValueError, match="not at most 8 keys"):
        Settings(drift_labels=",".join("abcdefghi"))
