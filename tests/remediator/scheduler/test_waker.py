"""A node that was refused is marked once when it may be let through, and only then: the scheduler then tries again."""

from datetime import datetime, timedelta

import pytest

from remediator.core import names
from remediator.kube.api.builtin import NODE
from remediator.kube.wire.errors import Unavailable
from remediator.metrics import REGISTRY
from remediator.scheduler.verdict import NodeState, VerdictReason, schedulable_again
from tests.harness.kinds import NODES
from tests.remediator.scheduler.stand import GPU, Stand, names_body, pod
from tests.remediator_sim.waiting import until


async def mark(stand: Stand, name: str) -> str:
    """The annotation; "" where there is none."""
    return (await stand.client.get(NODES, name))["metadata"].get("annotations", {}).get(names.SCHEDULABLE_AGAIN_AT, "")


def refuse(stand: Stand, *nodes: str, gpus: int = 1) -> None:
    """Ask for these nodes as the scheduler does; all of them are refused."""
    assert b'"NodeNames":[]' in stand.extender.filter(names_body([*nodes], pod(gpus=gpus)))


async def test_a_sick_node_that_was_refused_is_marked_when_it_is_well(stand: Stand) -> None:
    await stand.add_node("n1", GpuLost="True")
    await stand.sees("n1", "Sick")
    refuse(stand, "n1")
    await stand.condition("n1", "GpuLost", "False")
    assert datetime.fromisoformat(await until(lambda: mark(stand, "n1"))).utcoffset() == timedelta()


async def test_a_node_that_nobody_asked_for_is_not_marked(stand: Stand) -> None:
    for name in ("asked", "spared"):
        await stand.add_node(name, GpuLost="True")
        await stand.sees(name, "Sick")
    refuse(stand, "asked")
    for name in ("spared", "asked"):
        await stand.condition(name, "GpuLost", "False")
    await until(lambda: mark(stand, "asked"))
    assert await mark(stand, "spared") == ""


async def test_each_refusal_is_told_once_and_a_later_one_again(stand: Stand) -> None:
    await stand.add_node("n1", GpuLost="True")
    marks = []
    for _ in range(2):
        await stand.sees("n1", "Sick")
        refuse(stand, "n1")
        refuse(stand, "n1")
        await stand.condition("n1", "GpuLost", "False")
        await until(lambda: _differs(stand, marks))
        marks.append(await mark(stand, "n1"))
        await stand.condition("n1", "GpuLost", "True")
    await stand.sees("n1", "Sick")
    await stand.condition("n1", "GpuLost", "False")
    await stand.sees("n1", "Fit")
    await stand.add_node("last", GpuLost="True")
    await stand.sees("last", "Sick")
    refuse(stand, "last")
    await stand.condition("last", "GpuLost", "False")
    await until(lambda: mark(stand, "last"))
    assert await mark(stand, "n1") == marks[-1], "well again, and asked by nobody since"


async def _differs(stand: Stand, marks: list[str]) -> bool:
    return await mark(stand, "n1") not in ["", *marks]


async def test_a_full_node_that_was_refused_is_marked_when_a_pod_gives_its_gpus_back(stand: Stand) -> None:
    await stand.add_node("n1", GpuLost="False")
    await stand.bind("a", "n1", 8)
    await stand.sees("n1", "NoFreeGpus")
    refuse(stand, "n1")
    await stand.finish("a")
    await until(lambda: mark(stand, "n1"))


async def test_a_policy_that_goes_wakes_the_pods_that_its_nodes_were_refused_to(stand: Stand) -> None:
    await stand.policy("idle", "GpuIdle")
    await stand.add_node("n1", GpuLost="False", GpuIdle="True")
    await stand.sees("n1", "Sick")
    refuse(stand, "n1")
    await stand.drop_policy("idle")
    await until(lambda: mark(stand, "n1"))


async def test_a_node_that_goes_is_forgotten_and_one_that_was_never_there_is_not_kept(stand: Stand) -> None:
    await stand.add_node("n1", GpuLost="True")
    await stand.sees("n1", "Sick")
    refuse(stand, "n1")
    await stand.client.delete(NODES, "n1")
    await stand.sees("n1", "UnknownNode")
    assert stand.extender._waker._refused == set()


async def test_a_mark_that_the_api_server_does_not_take_is_tried_again(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    patch, failures = stand.client.patch, [Unavailable(503, "ServiceUnavailable", "away")]

    async def once(*args: object, **kwargs: object) -> object:
        if args[0] is NODE and args[1] == "n1" and failures:
            raise failures.pop()
        return await patch(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(stand.client, "patch", once)
    await stand.add_node("n1", GpuLost="True")
    await stand.sees("n1", "Sick")
    refuse(stand, "n1")
    before = REGISTRY.get_sample_value("remediator_extender_requeues_total") or 0
    await stand.condition("n1", "GpuLost", "False")
    await until(lambda: mark(stand, "n1"))
    assert failures == []
    assert REGISTRY.get_sample_value("remediator_extender_requeues_total") == before + 1


EIGHT = ((GPU, 8),)
SCHEDULABLE_AGAIN_AT = [
    (NodeState(VerdictReason.SICK, EIGHT), NodeState(VerdictReason.FIT, EIGHT), True),
    (NodeState(VerdictReason.CLAIMED, EIGHT), NodeState(VerdictReason.REPAIRED, EIGHT), True),
    (NodeState(VerdictReason.CLAIMED, EIGHT), NodeState(VerdictReason.QUARANTINED, EIGHT), False),
    (NodeState(VerdictReason.FIT, EIGHT), NodeState(VerdictReason.SICK, EIGHT), False),
    (NodeState(VerdictReason.FIT, EIGHT, EIGHT), NodeState(VerdictReason.FIT, EIGHT, ((GPU, 7),)), True),
    (NodeState(VerdictReason.FIT, EIGHT, ((GPU, 7),)), NodeState(VerdictReason.FIT, EIGHT, EIGHT), False),
    (NodeState(VerdictReason.FIT, ((GPU, 4),)), NodeState(VerdictReason.FIT, EIGHT), True),
    (NodeState(VerdictReason.SICK, EIGHT, EIGHT), NodeState(VerdictReason.SICK, EIGHT), False),
    (NodeState(VerdictReason.HEALTH_UNKNOWN, EIGHT), NodeState(VerdictReason.FIT, EIGHT), False),
]


@pytest.mark.parametrize(("old", "new", "so"), SCHEDULABLE_AGAIN_AT)
def test_a_node_is_schedulable_again_when_a_pod_that_was_refused_may_be_let_through(
    old: NodeState, new: NodeState, so: bool
) -> None:
    assert schedulable_again(old, new) is so
