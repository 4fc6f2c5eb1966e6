"""The sweep deletes what is no longer kept: old ended cases, and their operations with them."""

from datetime import timedelta

from remediator.clock import SYSTEM
from remediator.controller.explain import snapshot
from remediator.controller.perform import Performer
from remediator.controller.retention import Retention
from remediator.core.case import Phase
from remediator.kube.wire.transport import MERGE_PATCH
from tests.harness.kinds import CASES
from tests.harness.kinds import OPERATIONS as NODE_OPERATIONS
from tests.remediator.controller.lab import Lab


async def _ended_case(lab: Lab, name: str, days_ago: int) -> None:
    """A case that ended so long ago, and the operation that it ran."""
    await lab.make(CASES, name, nodeName="gpu-1", nodeUID="uid-1", policyName="gpu-lost")
    ended = (SYSTEM.now() - timedelta(days=days_ago)).strftime("%Y-%m-%dT%H:%M:%SZ")
    status = {"status": {"phase": Phase.RECOVERED.value, "endedAt": ended}}
    case = await lab.client.patch(CASES, name, status, subresource="status", content_type=MERGE_PATCH)
    uid = case["metadata"]["uid"]
    await lab.make(NODE_OPERATIONS, f"{name}-1", nodeName="gpu-1", nodeUID="uid-1", caseUID=uid, templateName="reboot")


def _names(lab: Lab, kind) -> list[str]:
    return sorted(one["metadata"]["name"] for one in lab.all(kind))


async def _sweep(lab: Lab, leads: bool = True) -> None:
    cache = await snapshot(lab.client, lab.namespaces, SYSTEM)
    await Retention(cache, Performer(lab.client, cache, lambda: leads)).run(SYSTEM.now())


async def test_a_case_that_ended_91_days_ago_goes_with_its_operation_and_one_of_89_stays(lab: Lab) -> None:
    await _ended_case(lab, "old", 91)
    await _ended_case(lab, "young", 89)
    await _sweep(lab)
    assert (_names(lab, CASES), _names(lab, NODE_OPERATIONS)) == (["young"], ["young-1"])


async def test_a_replica_that_does_not_lead_deletes_nothing(lab: Lab) -> None:
    await _ended_case(lab, "old", 91)
    await _sweep(lab, leads=False)
    assert _names(lab, CASES) == ["old"]
