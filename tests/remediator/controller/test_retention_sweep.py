"""The sweep deletes what is no longer kept: old ended cases, and their operations with them."""

from datetime import timedelta

from remediator.clock import SYSTEM
from remediator.controller.explain import snapshot
from remediator.controller.perform import Performer
from remediator.controller.retention import Retention
from remediator.core.case import Phase
from remediator.kube.wire.transport import MERGE_PATCH
from tests.harness.controller import ControllerHarness
from tests.harness.kinds import CASES
from tests.harness.kinds import OPERATIONS as NODE_OPERATIONS


async def _ended_case(
    harness: ControllerHarness, name: str, days_ago: float, policy: str = "gpu-lost", tries: int = 0
) -> None:
    """A case that ended so long ago, and the operation that it ran."""
    await harness.make(CASES, name, nodeName="gpu-1", nodeUID="uid-1", policyName=policy)
    ended = (SYSTEM.now() - timedelta(days=days_ago)).strftime("%Y-%m-%dT%H:%M:%SZ")
    attempts = [
        {
            "operation": f"{name}-{number}",
            "template": "reboot",
            "rung": 1,
            "attempt": number,
            "outcome": "Failed",
            "startedAt": ended,
            "finishedAt": ended,
        }
        for number in range(1, tries + 1)
    ]
    status = {"status": {"phase": Phase.RECOVERED.value, "endedAt": ended, "attempts": attempts}}
    case = await harness.client.patch(CASES, name, status, subresource="status", content_type=MERGE_PATCH)
    uid = case["metadata"]["uid"]
    await harness.make(
        NODE_OPERATIONS, f"{name}-1", nodeName="gpu-1", nodeUID="uid-1", caseUID=uid, templateName="reboot"
    )


def _names(harness: ControllerHarness, kind) -> list[str]:
    return sorted(one["metadata"]["name"] for one in harness.all(kind))


async def _sweep(harness: ControllerHarness, leads: bool = True) -> None:
    cache = await snapshot(harness.client, harness.namespaces, SYSTEM)
    await Retention(cache, Performer(harness.client, cache, lambda: leads)).run(SYSTEM.now())


async def test_a_case_that_ended_91_days_ago_goes_with_its_operation_and_one_of_89_stays(
    harness: ControllerHarness,
) -> None:
    await _ended_case(harness, "old", 91)
    await _ended_case(harness, "young", 89)
    await _sweep(harness)
    assert (_names(harness, CASES), _names(harness, NODE_OPERATIONS)) == (["young"], ["young-1"])


async def test_a_replica_that_does_not_lead_deletes_nothing(harness: ControllerHarness) -> None:
    await _ended_case(harness, "old", 91)
    await _sweep(harness, leads=False)
    assert _names(harness, CASES) == ["old"]


async def test_a_flapping_policy_that_only_watches_does_not_erase_the_four_reboots_of_another(
    harness: ControllerHarness,
) -> None:
    await harness.policy(attempts={"max": 4, "window": "168h"})
    await _ended_case(harness, "reboots", 2, tries=4)
    for number in range(21):
        await _ended_case(harness, f"flap-{number:02}", 1 + number / 100, "watch")
    await _sweep(harness)
    kept = _names(harness, CASES)
    assert ("reboots" in kept, len(kept)) == (True, 21), "the oldest of the 21 goes, and the reboots are still counted"


async def test_a_released_case_is_kept_for_as_long_as_the_node_shows_its_fault(harness: ControllerHarness) -> None:
    since = SYSTEM.now() - timedelta(days=100)
    await harness.node("gpu-1")
    await harness.condition("gpu-1", "True", since=since)
    uid = harness.look("gpu-1")["metadata"]["uid"]
    seen = {"condition": "GpuLost", "status": "True", "since": since.strftime("%Y-%m-%dT%H:%M:%SZ")}
    await harness.make(CASES, "released", nodeName="gpu-1", nodeUID=uid, policyName="gpu-lost", trigger=seen)
    ended = {"phase": "Escalated", "endedAt": (SYSTEM.now() - timedelta(days=91)).strftime("%Y-%m-%dT%H:%M:%SZ")}
    await harness.client.patch(CASES, "released", {"status": ended}, subresource="status", content_type=MERGE_PATCH)
    await _sweep(harness)
    assert _names(harness, CASES) == ["released"]
    await harness.condition("gpu-1", "False")
    await _sweep(harness)
    assert _names(harness, CASES) == []


async def _operation_without_case(harness: ControllerHarness, name: str, days_ago: float | None) -> None:
    """One that somebody made, and that was refused so long ago; None: it has not ended."""
    await harness.make(NODE_OPERATIONS, name, nodeName="gpu-1", nodeUID="uid-1", templateName="reboot")
    if days_ago is None:
        return
    ended = (SYSTEM.now() - timedelta(days=days_ago)).strftime("%Y-%m-%dT%H:%M:%SZ")
    status = {"status": {"phase": "Refused", "reason": "WithoutCase", "finishedAt": ended}}
    await harness.client.patch(NODE_OPERATIONS, name, status, subresource="status", content_type=MERGE_PATCH)


async def test_an_operation_without_a_case_goes_a_week_after_its_end_and_one_of_a_case_stays(
    harness: ControllerHarness,
) -> None:
    await _ended_case(harness, "case", 8)
    await _operation_without_case(harness, "refused-8-days-ago", 8)
    await _operation_without_case(harness, "refused-6-days-ago", 6)
    await _operation_without_case(harness, "goes-on", None)
    await _sweep(harness)
    assert _names(harness, NODE_OPERATIONS) == ["case-1", "goes-on", "refused-6-days-ago"]
