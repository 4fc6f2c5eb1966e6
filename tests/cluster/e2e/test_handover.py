"""What a user asks for with kubectl, and a probe before a node is given back, everything real but the machine."""

from pathlib import Path
from typing import Any

import pytest

from remediator.core import names
from tests.cluster.e2e.stage import Stage
from tests.harness.kinds import BUDGETS, OPERATIONS, POLICIES
from tests.harness.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180)]
NODE = "gpu-17"
NODES = [NODE]
RIGHTS = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: olga}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: remediator-operator}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: olga}]
"""
MANIFEST = """\
apiVersion: remediator.dev/v1alpha1
kind: NodeOperation
metadata: {{name: reboot-gpu-17}}
spec: {{nodeName: gpu-17, nodeUID: {uid}, templateName: reboot, requestedBy: olga}}
"""


async def asked(stage: Stage) -> dict[str, Any]:
    """The status of the operation that the user has made."""
    return (await stage.client.get(OPERATIONS, "reboot-gpu-17")).get("status", {})


async def finished(stage: Stage) -> dict[str, Any] | None:
    """The same, once it has ended."""
    status = await asked(stage)
    return status if status.get("finishedAt") else None


async def test_an_operator_asks_for_a_reboot_and_the_node_is_rebooted_once_and_given_back(
    stage: Stage, tmp_path: Path
) -> None:
    machine = stage.machines[NODE]
    boot, workload = machine.boot_id, stage.workloads[NODE]
    await workload.allow(0)
    rights = tmp_path / "rights.yaml"
    rights.write_text(RIGHTS)
    await stage.kubectl("create", "-f", str(rights))
    try:
        await stage.start_controller()
        uid = (await stage.node(NODE))["metadata"]["uid"]
        manifest = tmp_path / "reboot.yaml"
        manifest.write_text(MANIFEST.format(uid=uid))
        assert "created" in await stage.kubectl("--as", "olga", "create", "-f", str(manifest))
        await until(lambda: stage.case(NODE, "Draining"), 30)  # and there it stays: the workload lets no Pod go
        assert "olga asks for reboot: NodeOperation reboot-gpu-17" in await stage.explain(NODE)
        await workload.allow(len(workload.apps))
        status = await until(lambda: finished(stage), 90)
        case = await until(lambda: stage.over(NODE), 60)
    finally:
        await stage.kubectl("delete", "-f", str(rights))
    assert (status["phase"], status["reason"]) == ("Succeeded", "Done")
    assert status["caseName"] == case["metadata"]["name"]
    assert (case["spec"]["manual"]["requestedBy"], case["status"]["phase"]) == ("olga", "Recovered")
    assert [one["bootID"] for one in machine.reboots()] == [boot]
    assert not (await stage.node(NODE))["spec"].get("unschedulable")
    assert (await stage.client.get(BUDGETS, names.DEFAULT_BUDGET))["status"].get("claims", []) == []
    print(await stage.kubectl("get", "nop", "-o", "wide"))


async def test_a_node_is_given_back_after_the_probe_of_its_policy_has_succeeded(stage: Stage) -> None:
    await stage.workloads[NODE].allow(len(stage.workloads[NODE].apps))
    body = {"spec": {"verify": {"probe": names.DIAGNOSTICS_TEMPLATE}}}  # the one that only looks, on any machine
    await stage.client.patch(POLICIES, "gpu-lost", body)
    await stage.start_controller()
    stage.machines[NODE].lose_gpu()
    case = await until(lambda: stage.over(NODE), 120)
    tried = [(one["template"], one["outcome"], one.get("probe", False)) for one in case["status"]["attempts"]]
    assert tried == [("reboot", "Succeeded", False), (names.DIAGNOSTICS_TEMPLATE, "Succeeded", True)]
    assert case["status"]["phase"] == "Recovered"
    assert "collect-diagnostics has succeeded" in case["status"]["message"]
