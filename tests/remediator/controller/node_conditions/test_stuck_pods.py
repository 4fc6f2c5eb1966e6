"""PodsStuckTerminating: the controller follows which Pods are to end, and says where some do not."""

from collections.abc import AsyncIterator
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from remediator.controller.node_conditions import stuck_pods
from remediator.core import own_condition
from remediator.core.spare import NOTHING, PodHolding, ending
from remediator.core.stuck_pods import LONG, SOON, STUCK_PODS
from remediator.kube.wire.transport import STRATEGIC_PATCH
from tests.contract.conditions import ROOT
from tests.harness import yaml_files
from tests.harness.controller import (
    GPU,
    Answer,
    ControllerHarness,
    Object,
    controller_harness,
    cure,
    now,
    running,
    stamp,
    until,
)
from tests.harness.kinds import CASES, NODES, PODS, POLICIES

pytestmark = pytest.mark.sampled("stuck pods")
AN_HOUR = timedelta(hours=1)


@pytest.fixture
async def harness(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ControllerHarness]:
    """A node whose kubelet is Ready since an hour; Pods are looked for each second."""
    monkeypatch.setattr(stuck_pods, "LOOK", timedelta(seconds=1))
    async with controller_harness() as harness:
        await harness.node("gpu-1")
        await harness.condition("gpu-1", "True", "Ready", since=now() - AN_HOUR)
        yield harness


async def pod(harness: ControllerHarness, name: str, late: timedelta | None = None, phase: str = "Running") -> None:
    """A Pod of a user on the node; `late`: for how long its grace is over since somebody has deleted it."""
    spec = {"nodeName": "gpu-1", "containers": [{"name": "main", "image": "train"}]}
    await harness.client.create(PODS, {"metadata": {"name": name}, "spec": spec}, namespace="default")
    entries = harness.server.cluster.store.collection("pods").entries
    stored = entries["default", name].copy() | {"status": {"phase": phase}}
    if late is not None:
        stored["metadata"] = stored["metadata"] | {"deletionTimestamp": stamp(now() - late)}
    harness.server.cluster.put("pods", stored)


def end(harness: ControllerHarness, name: str) -> None:
    """Its kubelet has ended it."""
    entry = harness.server.cluster.store.collection("pods").entries["default", name]
    harness.server.cluster.remove("pods", entry.copy())


def said(harness: ControllerHarness) -> Object:
    conditions = harness.look("gpu-1")["status"]["conditions"]
    return next((each for each in conditions if each["type"] == STUCK_PODS), {})


async def test_a_pod_that_stays_for_half_an_hour_raises_it_and_its_end_ends_it(harness: ControllerHarness) -> None:
    await pod(harness, "train", LONG)
    await pod(harness, "goes-on")
    async with running(harness):
        await until(lambda: said(harness).get("status") == "True")
        assert said(harness)["message"].startswith("1 Pod stays 30 minutes or more after")
        end(harness, "train")
        await until(lambda: said(harness).get("status") == "False")


async def test_pods_that_have_ended_or_have_had_little_time_raise_nothing(harness: ControllerHarness) -> None:
    """The first three wait for a finalizer: their kubelet has ended them, and says so by their phase."""
    for number in range(3):
        await pod(harness, f"ended-{number}", AN_HOUR, "Failed" if number else "Succeeded")
        await pod(harness, f"slow-{number}", SOON - timedelta(minutes=2))
    await pod(harness, "alone", LONG - timedelta(minutes=2))
    async with running(harness):
        await harness.quiet()
        await pod(harness, "second", SOON)
        await harness.quiet()
        assert said(harness) == {}
        await pod(harness, "third", SOON)
        await until(lambda: said(harness).get("status") == "True")


async def test_while_the_kubelet_is_silent_nobody_can_tell(harness: ControllerHarness) -> None:
    await pod(harness, "train", LONG)
    async with running(harness):
        await until(lambda: said(harness).get("status") == "True")
        await harness.condition("gpu-1", "Unknown", "Ready")
        await until(lambda: said(harness)["status"] == "Unknown")
    async with running(harness, "two"):
        await harness.condition("gpu-1", "True", "Ready", since=now() - SOON)
        await until(lambda: said(harness)["status"] == "True")


async def test_the_shipped_policy_tells_a_person_and_touches_nothing(harness: ControllerHarness) -> None:
    spec = yaml_files.read(ROOT / "deploy/policies/pods-stuck-terminating.yaml")["spec"]
    spec["when"][0]["for"] = "0s"
    await harness.make(POLICIES, "pods-stuck-terminating", **spec | {"mode": "Enforce"})
    await pod(harness, "train", LONG)
    async with running(harness):
        await until(lambda: harness.cases("gpu-1"))
        await harness.quiet()
    assert (harness.ran, harness.taints("gpu-1"), harness.claims()) == ([], [], [])
    assert harness.cases("gpu-1")[0]["spec"]["trigger"]["message"] == said(harness)["message"]


async def test_of_thousands_of_pods_those_are_kept_that_are_to_end_and_one_of_the_same_name_is_another() -> None:
    heard: list[Any] = []
    informer = SimpleNamespace(on_change=heard.append)
    informers = {name: SimpleNamespace(on_change=lambda handler: None) for name in ("nodes", "cases")}
    cache = SimpleNamespace(**informers)
    follows = stuck_pods.StuckPods(SimpleNamespace(gpu_pods=informer), cache, None, None)  # type: ignore[arg-type]
    (moved,) = heard
    working, ends = PodHolding("gpu-1", cpu=100), now()
    moved("team/a", None, working)
    moved("team/b", None, NOTHING)
    assert follows._ends == {}
    moved("team/a", working, ending(working, "gpu-1", ends))
    moved("team/b", NOTHING, ending(NOTHING, "gpu-2", ends))
    assert follows._ends == {"gpu-1": {"team/a": ends}, "gpu-2": {"team/b": ends}}
    moved("team/a", ending(working, "gpu-1", ends), working)
    moved("team/b", ending(NOTHING, "gpu-2", ends), None)
    assert follows._ends == {}


async def test_a_node_that_was_well_long_ago_is_told_well_again_where_a_case_asks_for_proof(
    harness: ControllerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The case is about another Condition of the same policy: both have to prove that the node is well."""
    monkeypatch.setattr(own_condition, "BEAT_OF_CASE", timedelta(seconds=1))
    harness.silent.add(STUCK_PODS)
    long_ago = stamp(now() - timedelta(days=3))
    well = {"type": STUCK_PODS, "status": "False", "reason": "NoPodStuck", "message": "no Pod stays"}
    times = {"lastTransitionTime": long_ago, "lastHeartbeatTime": long_ago}
    status = {"status": {"conditions": [well | times]}}
    await harness.client.patch(NODES, "gpu-1", status, subresource="status", content_type=STRATEGIC_PATCH)
    harness.answer("fix", Answer(does=cure))
    await harness.template("fix", timeout="20s")
    when = [{"condition": kind, "for": "0s"} for kind in (GPU, STUCK_PODS)]
    verify = {"settle": "0s", "fresh": "1s", "timeout": "20s"}
    await harness.policy("both", when=when, ladder=[{"operation": "fix", "attempts": 1}], verify=verify)
    async with running(harness):
        await harness.condition("gpu-1", "True")
        await until(lambda: [case.get("status", {}).get("phase") for case in harness.all(CASES)] == ["Recovered"])
