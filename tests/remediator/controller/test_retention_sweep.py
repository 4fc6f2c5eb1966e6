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


async def _ended_case(harness: ControllerHarness, name: str, days_ago: int) -> None:
    """A case that ended so long ago, and the operation that it ran."""
    await harness.make(CASES, name, nodeName="gpu-1", nodeUID="uid-1", policyName="gpu-lost")
    ended = (SYSTEM.now() - timedelta(days=days_ago)).strftime("%Y-%m-%dT%H:%M:%SZ")
    status = {"status": {"phase": Phase.RECOVERED.value, "endedAt": ended}}
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
