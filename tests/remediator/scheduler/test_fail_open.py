"""Health only scores where it would refuse too much of the cluster, or where everything is paused."""

import json
from typing import Any

import pytest

from remediator.core.case import Phase
from remediator.metrics import REGISTRY
from remediator.scheduler.explain import explain
from remediator.scheduler.fail_open import OpenReason, Tally, open_reason
from remediator.scheduler.reasons import HEALTH, VerdictReason
from remediator.scheduler.row import NodeState
from remediator.scheduler.score import TIER
from remediator.scheduler.verdict import Shape, verdict
from tests.builders import a_case, a_node, a_policy, a_sick_node, at
from tests.harness.kinds import EVENTS, NODES
from tests.harness.scheduler import GPU, SchedulerHarness, names_body
from tests.harness.waiting import until

PAUSED, MANY = OpenReason.PAUSED, OpenReason.TOO_MANY
SCORED = "scheduler: UnhealthyOnlyScored, let through"


@pytest.mark.parametrize(
    ("before", "gpu_nodes", "unhealthy", "paused", "after"),
    [
        (None, 5, 5, False, None),
        (None, 6, 6, False, MANY),
        (None, 30, 6, False, None),
        (None, 29, 6, False, MANY),
        (None, 5000, 1000, False, None),
        (None, 5000, 1001, False, MANY),
        (MANY, 5000, 751, False, MANY),
        (MANY, 5000, 750, False, None),
        (MANY, 10, 4, False, MANY),
        (MANY, 10, 3, False, None),
        (None, 0, 0, False, None),
        (None, 100, 0, True, PAUSED),
        (PAUSED, 100, 18, False, None),
        (MANY, 100, 90, True, PAUSED),
        (PAUSED, 100, 90, False, MANY),
    ],
)
def test_health_only_scores_above_a_fifth_and_five_and_refuses_again_at_fifteen_percent_or_three(
    before: OpenReason | None, gpu_nodes: int, unhealthy: int, paused: bool, after: OpenReason | None
) -> None:
    assert open_reason(before, Tally(gpu_nodes, unhealthy), paused) is after


@pytest.mark.parametrize("reason", VerdictReason)
def test_only_a_refusal_for_health_is_lifted(reason: VerdictReason) -> None:
    free, full = (NodeState(reason, ((GPU, 8),), ((GPU, used),)) for used in (4, 8))
    found = verdict(free, Shape(((GPU, 1),)), only_scores=True)
    assert found is (VerdictReason.ONLY_SCORED if reason in HEALTH else reason)
    if reason in HEALTH:
        assert verdict(full, Shape(((GPU, 1),)), only_scores=True) is VerdictReason.NO_FREE_GPUS


def left(harness: SchedulerHarness, names: list[str]) -> list[str]:
    """The nodes that the scheduler may use."""
    found: list[str] = json.loads(harness.extender.filter(names_body(names)))["NodeNames"]
    return found


def scores(harness: SchedulerHarness, names: list[str]) -> dict[str, int]:
    found = json.loads(harness.extender.prioritize(names_body(names)))
    return {entry["Host"]: entry["Score"] for entry in found}


def gauge(reason: OpenReason) -> float:
    return REGISTRY.get_sample_value("remediator_extender_only_scores", {"reason": reason.value}) or 0.0


async def told(harness: SchedulerHarness) -> dict[str, str]:
    """The Events on our namespace: their messages by reason."""
    events: list[dict[str, Any]] = await harness.client.list_all(EVENTS)
    return {one["reason"]: one["message"] for one in events if one["involvedObject"]["kind"] == "Namespace"}


NAMES = [f"n{number:02}" for number in range(20)]


async def fleet(harness: SchedulerHarness, sick: int) -> None:
    """20 nodes of eight GPUs, of which so many are sick."""
    for number, name in enumerate(NAMES):
        await harness.add_node(name, GpuLost="True" if number < sick else "False")
    await until(lambda: [harness.reason(name) for name in NAMES[sick:]] == ["Fit"] * (20 - sick))


async def test_five_sick_nodes_of_twenty_are_refused_and_six_only_scored_last(harness: SchedulerHarness) -> None:
    await fleet(harness, 5)
    assert left(harness, NAMES) == NAMES[5:]
    await harness.condition("n05", "GpuLost", "True")
    await until(lambda: left(harness, NAMES) == NAMES)
    points = scores(harness, NAMES)
    assert max(points[name] for name in NAMES[:6]) < min(points[name] for name in NAMES[6:])
    assert (harness.reason("n00"), gauge(MANY), gauge(PAUSED)) == ("UnhealthyOnlyScored", 1.0, 0.0)
    for number in (0, 1):
        await harness.condition(f"n{number:02}", "GpuLost", "False")
    await until(lambda: harness.reason("n00") == "Fit" and harness.reason("n01") == "Fit")
    assert left(harness, NAMES) == NAMES, "4 of 20 are more than 15 % and more than 3"
    await harness.condition("n02", "GpuLost", "False")
    await until(lambda: left(harness, NAMES) == [*NAMES[:3], *NAMES[6:]])
    assert gauge(MANY) == 0.0


async def test_nodes_that_are_claimed_or_quarantined_are_not_counted_and_never_let_in(
    harness: SchedulerHarness,
) -> None:
    await fleet(harness, 0)
    for name in NAMES[:4]:
        await harness.case(name, phase="Escalated")
    for name in NAMES[4:8]:
        await harness.case(name, phase="Draining")
    await until(lambda: left(harness, NAMES) == NAMES[8:])
    for name in NAMES[8:13]:
        await harness.condition(name, "GpuLost", "True")
    await until(lambda: left(harness, NAMES) == NAMES[13:])
    await harness.condition("n13", "GpuLost", "True")
    await until(lambda: left(harness, NAMES) == NAMES[8:])


async def test_while_everything_is_paused_health_only_scores_and_claims_stand(harness: SchedulerHarness) -> None:
    await harness.add_node("sick", GpuLost="True")
    await harness.add_node("well", GpuLost="False")
    await harness.add_node("held", GpuLost="True")
    await harness.case("held", phase="Draining")
    names = ["sick", "well", "held"]
    await until(lambda: left(harness, names) == ["well"])
    await harness.pause()
    await until(lambda: left(harness, names) == ["sick", "well"])
    assert gauge(PAUSED) == 1.0
    points = scores(harness, names)
    assert points["well"] - points["sick"] == (TIER[VerdictReason.FIT] - TIER[VerdictReason.ONLY_SCORED]) * 1_000_000
    await harness.pause(None)
    await until(lambda: left(harness, names) == ["well"])


async def test_what_a_policy_in_dry_run_finds_is_let_through_last(harness: SchedulerHarness) -> None:
    await harness.add_node("sick", GpuLost="True")
    await harness.add_node("well", GpuLost="False")
    await until(lambda: left(harness, ["sick", "well"]) == ["well"])
    await harness.mode("gpu-lost", "DryRun")
    await until(lambda: left(harness, ["sick", "well"]) == ["sick", "well"])
    assert harness.reason("sick") == "UnhealthyOnlyScored"
    points = scores(harness, ["sick", "well"])
    assert points["well"] - points["sick"] == (TIER[VerdictReason.FIT] - TIER[VerdictReason.ONLY_SCORED]) * 1_000_000


async def test_each_change_is_told_once_by_an_event_and_refused_nodes_are_marked(harness: SchedulerHarness) -> None:
    await fleet(harness, 5)
    assert len(left(harness, NAMES)) == 15
    await harness.condition("n05", "GpuLost", "True")

    async def announced() -> bool:
        return "ExtenderOnlyScoresTooManyUnhealthy" in await told(harness)

    await until(announced)
    message = (await told(harness))["ExtenderOnlyScoresTooManyUnhealthy"]
    assert "health only scores, since it would refuse 6 of 20 GPU nodes: more than 20 % and more than 5" in message

    async def marked() -> bool:
        nodes = await harness.client.list_all(NODES)
        found = [node["metadata"]["name"] for node in nodes if node["metadata"].get("annotations")]
        return sorted(found) == NAMES[:5]

    await until(marked)


@pytest.mark.parametrize(
    ("sick", "paused", "expected"),
    [
        (1, False, "scheduler: Unhealthy, refused to Pods; health refuses 1 of 10 GPU nodes"),
        (
            6,
            False,
            f"{SCORED}; health only scores, since it would refuse 6 of 10 GPU nodes: more than 20 % and more than 5",
        ),
        (1, True, f"{SCORED}; health only scores, since all new work is paused; it would refuse 1 of 10 GPU nodes"),
    ],
)
def test_explain_says_whether_health_refuses_now(sick: int, paused: bool, expected: str) -> None:
    gpus = ((GPU, 8),)
    nodes = [a_sick_node(f"gpu-{number}", gpus=gpus) for number in range(sick)]
    nodes += [a_node(f"gpu-{number}", gpus=gpus) for number in range(sick, 10)]
    cases = [a_case(node="gpu-0", phase=Phase.HELD)]
    assert explain(nodes[0], nodes, cases, [a_policy()], paused, at(0)).startswith(expected)
