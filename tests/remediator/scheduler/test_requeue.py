"""A node that was refused is marked once when it may be let through, and only then: the scheduler then tries again."""

from datetime import datetime, timedelta

import pytest

from remediator.core import names
from remediator.kube.api.builtin import NODE
from remediator.kube.wire.errors import Unavailable
from remediator.metrics import REGISTRY
from remediator.scheduler.attributes.catalog import facts_of
from remediator.scheduler.reasons import VerdictReason
from remediator.scheduler.row import NodeState, schedulable_again
from tests.harness.kinds import NODES
from tests.harness.scheduler import GPU, SchedulerHarness, names_body, pod
from tests.harness.waiting import until


async def mark(harness: SchedulerHarness, name: str) -> str:
    """The annotation; "" where there is none."""
    return (
        (await harness.client.get(NODES, name))["metadata"].get("annotations", {}).get(names.SCHEDULABLE_AGAIN_AT, "")
    )


def refuse(harness: SchedulerHarness, *nodes: str, gpus: int = 1) -> None:
    """Ask for these nodes as the scheduler does; all of them are refused."""
    assert b'"NodeNames":[]' in harness.extender.filter(names_body([*nodes], pod(gpus=gpus)))


async def test_a_sick_node_that_was_refused_is_marked_when_it_is_well(harness: SchedulerHarness) -> None:
    await harness.add_node("n1", GpuLost="True")
    await harness.sees("n1", "Unhealthy")
    refuse(harness, "n1")
    await harness.condition("n1", "GpuLost", "False")
    assert datetime.fromisoformat(await until(lambda: mark(harness, "n1"))).utcoffset() == timedelta()


async def test_a_node_that_nobody_asked_for_is_not_marked(harness: SchedulerHarness) -> None:
    for name in ("asked", "spared"):
        await harness.add_node(name, GpuLost="True")
        await harness.sees(name, "Unhealthy")
    refuse(harness, "asked")
    for name in ("spared", "asked"):
        await harness.condition(name, "GpuLost", "False")
    await until(lambda: mark(harness, "asked"))
    assert await mark(harness, "spared") == ""


async def test_a_node_that_was_refused_to_a_pod_that_requires_proven_health_is_marked_when_it_is_proven(
    harness: SchedulerHarness,
) -> None:
    """Both nodes become well; one was refused to such a Pod, the other to one that finds no room there."""
    for name in ("proven", "full"):
        await harness.add_node(name)
    await harness.bind("a", "full", 8)
    await until(lambda: harness.reason("full") == "NoFreeGpus")
    asking = pod(gpus=1)
    asking["metadata"]["annotations"] = {names.REQUIRE_HEALTH: names.PROVEN}
    assert b'"NodeNames":[]' in harness.extender.filter(names_body(["proven"], asking))
    refuse(harness, "full")
    for name in ("full", "proven"):
        await harness.condition(name, "GpuLost", "False")
    await until(lambda: mark(harness, "proven"))
    assert await mark(harness, "full") == ""


async def test_each_refusal_is_told_once_and_a_later_one_again(harness: SchedulerHarness) -> None:
    await harness.add_node("n1", GpuLost="True")
    marks = []
    for _ in range(2):
        await harness.sees("n1", "Unhealthy")
        refuse(harness, "n1")
        refuse(harness, "n1")
        await harness.condition("n1", "GpuLost", "False")
        await until(lambda: _differs(harness, marks))
        marks.append(await mark(harness, "n1"))
        await harness.condition("n1", "GpuLost", "True")
    await harness.sees("n1", "Unhealthy")
    await harness.condition("n1", "GpuLost", "False")
    await harness.sees("n1", "Fit")
    await harness.add_node("last", GpuLost="True")
    await harness.sees("last", "Unhealthy")
    refuse(harness, "last")
    await harness.condition("last", "GpuLost", "False")
    await until(lambda: mark(harness, "last"))
    assert await mark(harness, "n1") == marks[-1], "well again, and asked by nobody since"


async def _differs(harness: SchedulerHarness, marks: list[str]) -> bool:
    return await mark(harness, "n1") not in ["", *marks]


async def test_a_full_node_that_was_refused_is_marked_when_a_pod_gives_its_gpus_back(harness: SchedulerHarness) -> None:
    await harness.add_node("n1", GpuLost="False")
    await harness.bind("a", "n1", 8)
    await harness.sees("n1", "NoFreeGpus")
    refuse(harness, "n1")
    await harness.finish("a")
    await until(lambda: mark(harness, "n1"))


async def test_a_policy_that_goes_wakes_the_pods_that_its_nodes_were_refused_to(harness: SchedulerHarness) -> None:
    await harness.policy("idle", "GpuIdle")
    await harness.add_node("n1", GpuLost="False", GpuIdle="True")
    await harness.sees("n1", "Unhealthy")
    refuse(harness, "n1")
    await harness.drop_policy("idle")
    await until(lambda: mark(harness, "n1"))


async def test_a_node_that_goes_is_forgotten_and_one_that_was_never_there_is_not_kept(
    harness: SchedulerHarness,
) -> None:
    await harness.add_node("n1", GpuLost="True")
    await harness.sees("n1", "Unhealthy")
    refuse(harness, "n1")
    await harness.client.delete(NODES, "n1")
    await harness.sees("n1", "UnknownNode")
    assert harness.extender._requeuer._refused == set()


async def test_a_mark_that_the_api_server_does_not_take_is_tried_again(
    harness: SchedulerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    patch, failures = harness.client.patch, [Unavailable(503, "ServiceUnavailable", "away")]

    async def once(*args: object, **kwargs: object) -> object:
        if args[0] is NODE and args[1] == "n1" and failures:
            raise failures.pop()
        return await patch(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(harness.client, "patch", once)
    await harness.add_node("n1", GpuLost="True")
    await harness.sees("n1", "Unhealthy")
    refuse(harness, "n1")
    before = REGISTRY.get_sample_value("remediator_extender_requeues_total") or 0
    await harness.condition("n1", "GpuLost", "False")
    await until(lambda: mark(harness, "n1"))
    assert failures == []
    assert REGISTRY.get_sample_value("remediator_extender_requeues_total") == before + 1


EIGHT = ((GPU, 8),)
SCHEDULABLE_AGAIN_AT = [
    pytest.param(
        NodeState(VerdictReason.FIT, ((GPU, 8),)),
        NodeState(VerdictReason.FIT, ((GPU, 8),), (), facts_of({"nvidia.com/gpu.memory": "40960"})),
        True,
        id="its labels say something else of its GPUs",
    ),
    (NodeState(VerdictReason.UNHEALTHY, EIGHT), NodeState(VerdictReason.FIT, EIGHT), True),
    (NodeState(VerdictReason.CLAIMED, EIGHT), NodeState(VerdictReason.REPAIRED, EIGHT), True),
    (NodeState(VerdictReason.CLAIMED, EIGHT), NodeState(VerdictReason.QUARANTINED, EIGHT), False),
    (NodeState(VerdictReason.FIT, EIGHT), NodeState(VerdictReason.UNHEALTHY, EIGHT), False),
    (NodeState(VerdictReason.FIT, EIGHT, EIGHT), NodeState(VerdictReason.FIT, EIGHT, ((GPU, 7),)), True),
    (NodeState(VerdictReason.FIT, EIGHT, ((GPU, 7),)), NodeState(VerdictReason.FIT, EIGHT, EIGHT), False),
    (NodeState(VerdictReason.FIT, ((GPU, 4),)), NodeState(VerdictReason.FIT, EIGHT), True),
    (NodeState(VerdictReason.UNHEALTHY, EIGHT, EIGHT), NodeState(VerdictReason.UNHEALTHY, EIGHT), False),
    (NodeState(VerdictReason.HEALTH_UNKNOWN, EIGHT), NodeState(VerdictReason.FIT, EIGHT), False),
]


@pytest.mark.parametrize(("old", "new", "so"), SCHEDULABLE_AGAIN_AT)
def test_a_node_is_schedulable_again_when_a_pod_that_was_refused_may_be_let_through(
    old: NodeState, new: NodeState, so: bool
) -> None:
    assert schedulable_again(old, new) is so
