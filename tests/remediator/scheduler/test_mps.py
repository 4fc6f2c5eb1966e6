"""Pods that ask for MPS: on which nodes they get it, and what is said of the others."""

import json
from typing import Any

import msgspec
import pytest

from remediator.core.node import Node
from remediator.kube.api import gpu_pods
from remediator.scheduler.extender import shape_of
from remediator.scheduler.mps import Mps, mps
from remediator.scheduler.reasons import VerdictReason
from remediator.scheduler.row import STRANGER, NodeState, schedulable_again
from remediator.scheduler.verdict import Shape, verdict
from tests.builders import a_node, at, condition
from tests.harness.scheduler import GPU, SchedulerHarness, names_body, pod
from tests.harness.scheduler import scheduler_harness as harness
from tests.harness.waiting import until

R = VerdictReason
VOLTA = {"nvidia.com/gpu.compute.major": "7", "nvidia.com/gpu.compute.minor": "0"}
PASCAL = {"nvidia.com/gpu.compute.major": "6", "nvidia.com/gpu.compute.minor": "1"}
SHARES, OURS = {"nvidia.com/gpu.sharing-strategy": "mps"}, {"remediator.dev/gpu.mps": "true"}
SICK = condition("MpsUnhealthy", status="True")


def node(*conditions: Any, **labels: str) -> Node:
    return a_node("n", *conditions, labels=labels)


NODES = [
    pytest.param(node(**VOLTA), None, R.MPS_NOT_OFFERED, id="no label says that it offers MPS"),
    pytest.param(node(**SHARES), None, R.MPS_NOT_OFFERED, id="nobody knows its GPUs"),
    pytest.param(
        node(**VOLTA, **{"nvidia.com/gpu.sharing-strategy": "time-slicing"}), None, R.MPS_NOT_OFFERED, id="time slicing"
    ),
    pytest.param(node(**SHARES, **PASCAL), Mps.TOO_OLD, R.MPS_TOO_OLD, id="Pascal"),
    pytest.param(node(**SHARES, **VOLTA), Mps.USABLE, R.FIT, id="Volta"),
    pytest.param(node(**OURS, **VOLTA), Mps.USABLE, R.FIT, id="by the label of its administrator"),
    pytest.param(node(SICK, **SHARES, **VOLTA), Mps.UNHEALTHY, R.MPS_UNHEALTHY, id="the daemon is unhealthy"),
    pytest.param(
        node(condition("MpsUnhealthy", status="Unknown"), **SHARES, **VOLTA), Mps.USABLE, R.FIT, id="nobody can tell"
    ),
]


@pytest.mark.parametrize(("seen", "offers", "reason"), NODES)
def test_of_a_node_for_a_pod_that_asks_for_mps(seen: Node, offers: Mps | None, reason: VerdictReason) -> None:
    assert mps(seen, at(0)) is offers
    row = NodeState(R.FIT, ((GPU, 8),), mps=offers)
    assert verdict(row, Shape(((GPU, 1),), mps=True)) is reason
    assert verdict(row, Shape(((GPU, 1),))) is R.FIT, "who does not ask is not refused"
    assert verdict(row, Shape(daemon=True, mps=True)) is R.FIT


def test_what_was_found_long_ago_refuses_nobody_and_a_stranger_is_let_through() -> None:
    assert mps(node(SICK, **SHARES, **VOLTA), at(16)) is Mps.USABLE
    assert verdict(STRANGER, Shape(mps=True)) is R.UNKNOWN_NODE


def test_a_pod_that_was_refused_is_tried_again_when_the_daemon_works() -> None:
    sick, well = (NodeState(R.FIT, ((GPU, 8),), mps=each) for each in (Mps.UNHEALTHY, Mps.USABLE))
    assert (schedulable_again(sick, well), schedulable_again(well, sick)) == (True, False)


@pytest.mark.parametrize(
    ("value", "asks", "mistake"), [("true", True, ""), ("false", False, ""), ("yes", False, "yes")]
)
def test_a_pod_asks_by_annotation_and_another_word_is_a_mistake(value: str, asks: bool, mistake: str) -> None:
    made = pod()
    made["metadata"]["annotations"] = {"remediator.dev/gpu-mps": value}
    shape = shape_of(msgspec.json.decode(json.dumps(made), type=gpu_pods.GpuPod))
    assert (shape.mps, mistake in shape.attributes.mistake) == (asks, True)
    assert bool(shape.attributes.mistake) is bool(mistake)


async def test_the_extender_follows_the_condition() -> None:
    wanted = pod()
    wanted["metadata"]["annotations"] = {"remediator.dev/gpu-mps": "true"}
    async with harness() as stand:
        await stand.add_node("n1", GpuLost="False", MpsUnhealthy="False")
        await stand.patch_node("n1", {"metadata": {"labels": {**SHARES, **VOLTA}}})
        await stand.sees("n1", "Fit")
        for status, refused in (("False", []), ("True", ["n1"]), ("False", [])):
            await stand.condition("n1", "MpsUnhealthy", status)
            body = names_body(["n1"], wanted)
            await until(lambda body=body, refused=refused: unhealthy(stand, body) == refused, 10)
            assert json.loads(stand.extender.filter(names_body(["n1"])))["NodeNames"] == ["n1"]


def unhealthy(stand: SchedulerHarness, body: bytes) -> list[str]:
    """The nodes that are refused for their MPS daemon."""
    refused = json.loads(stand.extender.filter(body))["FailedAndUnresolvableNodes"]
    return [name for name, text in refused.items() if text == "node(s) whose MPS daemon is not healthy"]
