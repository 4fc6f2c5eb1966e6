"""A case waits while no node can take its Pods with rights in the API, also in its middle, and no attempt is lost."""

from dataclasses import replace

import pytest

from remediator.controller.cache import ClusterCache
from remediator.controller.case_view import to_start
from remediator.core.case import Phase
from remediator.core.case_table import Tried
from remediator.core.ladder import Next
from remediator.core.places import ApiNodes
from remediator.core.pod import Pod, PodPhase
from remediator.core.reasons import REMEDY, Reason
from remediator.core.selector import parse
from tests.builders import a_case, a_node, a_policy
from tests.harness.controller import ELSEWHERE, RUNS, Answer, running, until
from tests.harness.kinds import NODES
from tests.harness.replica import empty_cache

pytestmark = pytest.mark.sampled("api pods")

NO_NODE = "NoNodeForApiPods"
CHOSEN = "a-role=infra"


async def ready(harness, status: str) -> None:
    """Let the one node that can take such Pods be Ready, or not."""
    await harness.condition(ELSEWHERE, status, "Ready")


async def attempts(harness) -> list[tuple[str, str]]:
    found = harness.cases("gpu-1")[0]["status"].get("attempts") or ()
    return [(one.get("outcome", ""), one.get("reason", "")) for one in found]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        pytest.param({"spec": {"unschedulable": True}}, "there is none", id="it is cordoned"),
        pytest.param(
            {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}},
            "such nodes repel it with a:NoSchedule",
            id="a taint",
        ),
        pytest.param({"metadata": {"labels": {"nvidia.com/gpu.present": "true"}}}, "there is none", id="it has GPUs"),
    ],
)
async def test_a_case_is_held_before_its_claim_until_a_node_fits(harness, change, why) -> None:
    await harness.node("gpu-1", "True")
    await harness.policy()
    await harness.change(NODES, ELSEWHERE, **change)
    async with running(harness):
        await until(lambda: harness.reasons("gpu-1") == [NO_NODE])
        assert (harness.taints("gpu-1"), harness.ran, harness.phase("gpu-1")) == ([], [], "Held")
        (block,) = harness.cases("gpu-1")[0]["status"]["blockedBy"]
        assert block["message"] == (
            "a Pod of reboot needs a node other than gpu-1 that is Ready, schedulable and matches "
            f"'!nvidia.com/gpu.present,!remediator.dev/gpu.present': {why}; {REMEDY[Reason.NO_NODE_FOR_API_PODS]}"
        )
        undone = {
            "metadata": {"labels": dict.fromkeys(("nvidia.com/gpu.present", "remediator.dev/gpu.present"))},
            "spec": {"unschedulable": None, "taints": None},
        }
        await harness.change(NODES, ELSEWHERE, **undone)
        await harness.change(NODES, "gpu-1", metadata={"annotations": {"looked": "at"}})
        await until(lambda: harness.ended("gpu-1", "Recovered"), 40)


async def test_an_operation_that_cannot_drain_any_more_ends_without_an_attempt_and_is_tried_again(harness) -> None:
    await harness.node("gpu-1", "True")
    await harness.policy(ladder=[{"operation": "reboot", "attempts": 1}])

    async def lose(harness, node):
        await ready(harness, "False")

    harness.answer("collect-diagnostics", Answer(does=lose))
    async with running(harness):
        await until(lambda: harness.reasons("gpu-1") == [NO_NODE])
        assert harness.taints("gpu-1") == ["remediator.dev/case"]
        assert "reboot gpu-1" not in harness.ran
        await ready(harness, "True")
        await until(lambda: harness.ended("gpu-1", "Recovered"))
    told = await attempts(harness)
    assert told[-1] == ("Succeeded", "Done")
    assert {reason for outcome, reason in told[:-1]} <= {NO_NODE}


async def test_a_drain_that_runs_goes_on_where_no_other_could_begin(harness) -> None:
    await harness.node("gpu-1", "True")
    await harness.policy()
    harness.answer("drain", RUNS)
    async with running(harness):
        await until(lambda: "drain gpu-1" in harness.ran)
        await ready(harness, "False")
        await harness.quiet()
        assert await attempts(harness) == [("", "")]
        await harness.finish("drain")
        await until(lambda: harness.ended("gpu-1", "Recovered"))


async def test_what_completes_an_operation_waits_for_a_node_too(harness) -> None:
    await harness.node("gpu-1", "True")
    await harness.template("restart", runOn="Elsewhere")
    await harness.template("reset", after=["restart"])

    async def lose(harness, node):
        await harness.condition(node, "False")
        await ready(harness, "False")

    harness.answer("reset", Answer(does=lose))
    harness.answer("restart", Answer())
    await harness.policy(ladder=[{"operation": "reset"}])
    async with running(harness):
        await until(lambda: harness.reasons("gpu-1") == [NO_NODE])
        assert "restart gpu-1" not in harness.ran
        await ready(harness, "True")
        await until(lambda: harness.ended("gpu-1", "Recovered"), 40)
        assert "restart gpu-1" in harness.ran


async def test_pods_with_rights_in_the_api_are_made_for_the_nodes_of_the_settings(harness) -> None:
    await harness.node("gpu-1", "True")
    await harness.policy()
    await harness.change(NODES, ELSEWHERE, metadata={"labels": {"a-role": "infra"}})
    harness.answer("drain", RUNS)
    async with running(harness, api_pods_node_selector=CHOSEN):
        await until(lambda: "drain gpu-1" in harness.ran)
    (drain,) = harness.pods("drain")
    required = drain["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    (term,) = required["nodeSelectorTerms"]
    assert term["matchExpressions"] == [{"key": "a-role", "operator": "In", "values": ["infra"]}]


def test_counts_follow_nodes_and_are_those_of_a_new_count() -> None:
    cache: ClusterCache = empty_cache()
    gpu = {"nvidia.com/gpu.present": "true"}
    steps = [
        a_node("a"),
        a_node("b", labels=gpu),
        a_node("c"),
        a_node("a", unschedulable=True),
        a_node("b"),
        a_node("c", ready="False"),
        a_node("a"),
    ]
    told = []
    for version, node in enumerate(steps, 1):
        cache.nodes.note(node.name, replace(node, version=str(version)))
        told.append(sum((cache.places.now.free or {}).values()))
    assert told == [1, 1, 2, 1, 2, 1, 2]


def test_the_default_chooses_nodes_without_gpus() -> None:
    assert ApiNodes().selector == parse("!nvidia.com/gpu.present,!remediator.dev/gpu.present")


@pytest.mark.parametrize(
    ("claimed", "tried", "following", "expected"),
    [
        (True, Tried.NONE, Next(0, 1), "reboot"),
        (True, Tried.FAILED, Next(1, 2), "power-cycle"),
        (True, Tried.OPEN, Next(1, 2), None),
        (True, Tried.SUCCEEDED, Next(1, 2), None),
        (True, Tried.FAILED, Reason.LADDER_EXHAUSTED, None),
        (False, Tried.NONE, Next(0, 1), None),
    ],
)
def test_a_case_that_holds_its_node_is_stopped_by_the_lack_of_a_node_only_for_what_it_starts_next(
    claimed, tried, following, expected
) -> None:
    """Stopped, it waits; else it would be escalated when the time for proof is over, with nothing tried."""
    policy = a_policy(ladder=(("reboot", 1), ("power-cycle", 1)))
    assert to_start(policy, a_case(phase=Phase.DRAINING if claimed else Phase.NEW), tried, following) == expected


@pytest.mark.parametrize(
    ("phase", "node", "expected"),
    [(PodPhase.PENDING, "", True), (PodPhase.PENDING, "infra-1", False), (PodPhase.RUNNING, "infra-1", False)],
)
def test_a_pod_that_no_scheduler_has_placed_still_needs_a_node(phase, node, expected) -> None:
    assert Pod("drain", "remediator-operations", "u", node, phase).unplaced is expected


async def test_two_nodes_that_are_each_others_only_place_are_repaired_one_after_the_other(harness) -> None:
    """Both fall ill at once, and the budget has room for both."""
    await harness.budget("both", 2)
    await harness.policy()
    for node in ("gpu-1", "gpu-2"):
        await harness.node(node, "True", api="here")
    async with running(harness, api_pods_node_selector="remediator.dev/api"):
        await until(lambda: [*harness.reasons("gpu-1"), *harness.reasons("gpu-2")] == [NO_NODE])
        await until(lambda: all(harness.ended(node, "Recovered") for node in ("gpu-1", "gpu-2")), 60)
