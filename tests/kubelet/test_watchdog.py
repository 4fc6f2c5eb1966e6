"""The watchdog in its image, with its rights, on a real node whose kubelet and runtime hang."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from remediator.controller import pods
from remediator.core import names
from remediator.core.case import Case
from remediator.core.operation import Operation
from remediator.kube import api
from remediator.kube.api import decode
from remediator.kube.wire.client import Client
from remediator_sim.plain import PODS
from tests.harness.kinds import DAEMON_SETS
from tests.harness.waiting import until
from tests.kubelet.cluster import DEPLOY, NAMES, TARGET, Cluster
from tests.kubelet.test_operations import CASE_UID, OPERATIONS, held

__all__ = ["held"]  # a fixture
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(240)]
SPACE = names.OPERATIONS_NAMESPACE
# A kubelet that hangs answers no healthz; and this one is not started anew.
PARAMETERS = {"reboot-by-watchdog": {"waitSeconds": "600"}}
QUICK = {"settleSeconds": "1", "healthzPort": "0"}
WORDS = {
    "restart-kubelet": "restarted kubelet, which was active; it is active",
    # The first service of a runtime: the systemctl of the node has every unit.
    "restart-runtime": "restarted rke2-agent, which was active; it is active",
}


@pytest.fixture
async def watchdog(cluster: Cluster, admin: Client) -> None:
    """Its DaemonSet is Ready on both nodes, as it is shipped."""
    cluster.kubectl("apply", "-k", str(DEPLOY / "watchdog"))

    async def ready() -> bool:
        found = await admin.get(DAEMON_SETS, "remediator-watchdog", namespace=names.SYSTEM_NAMESPACE)
        return bool(found.get("status", {}).get("numberReady") == len(NAMES))

    await until(ready, 120)


async def order(controller: Client, node: dict[str, Any], name: str) -> str:
    """Make an operation and its order, as the controller does; the name of the order."""
    (template,) = [
        decode.template(each) for each in await controller.list_all(api.TEMPLATE) if each.metadata.name == name
    ]
    spec = {"nodeName": TARGET, "nodeUID": node["metadata"]["uid"], "caseUID": CASE_UID, "templateName": name}
    body = {"apiVersion": api.API_VERSION, "kind": "NodeOperation", "metadata": {"name": f"op-{name}"}, "spec": spec}
    uid = (await controller.create(OPERATIONS, body))["metadata"]["uid"]
    now, boot = datetime.now(UTC), node["status"]["nodeInfo"]["bootID"]
    case = Case(f"{TARGET}-case", CASE_UID, TARGET, node["metadata"]["uid"], "", None, now)
    operation = Operation(f"op-{name}", uid, TARGET, case.node_uid, CASE_UID, name, now, intent_boot_id=boot)
    pod = pods.pod(
        template,
        pods.pod_name(operation),
        case,
        operation,
        json.dumps({"caseUID": CASE_UID, **PARAMETERS.get(name, QUICK)}),
    )
    await controller.create(PODS, pod, namespace=SPACE)
    return pods.pod_name(operation)


async def ended(controller: Client, name: str) -> tuple[str, dict[str, Any]]:
    """The phase of an order that is over, and how its container is said to have ended."""

    async def over() -> dict[str, Any] | None:
        found = await controller.get(PODS, name, namespace=SPACE)
        return found if found["status"].get("phase") in ("Succeeded", "Failed") else None

    status = (await until(over, 120))["status"]
    return status["phase"], status["containerStatuses"][0]["state"]["terminated"]


@pytest.mark.usefixtures("watchdog")
async def test_kubelet_and_runtime_hang_and_their_restart_is_ordered_done_and_answered(
    cluster: Cluster, controller: Client, held: dict[str, Any]
) -> None:
    node = cluster.nodes[TARGET]
    with node.hanging() as states:
        for name, words in WORDS.items():
            phase, end = await ended(controller, await order(controller, held, name))
            assert (phase, end["exitCode"], end["message"]) == ("Succeeded", 0, words)
        assert states() == ["T", "T"]
    restarts = [line for line in node.asked() if line.startswith("restart ")]
    assert restarts[-2:] == ["restart kubelet.service", "restart rke2-agent.service"]
    cluster.ready(TARGET)


@pytest.mark.usefixtures("watchdog")
async def test_a_reboot_is_asked_for_once_and_not_again_in_the_next_boot(
    cluster: Cluster, controller: Client, held: dict[str, Any]
) -> None:
    """What has become of it the watchdog of the next boot does not know; the controller does, by the boot id."""
    node = cluster.nodes[TARGET]
    before = len(node.asked())  # other tests have this node, too
    with node.hanging():
        made = await order(controller, held, "reboot-by-watchdog")
        await until(lambda: "reboot" in node.asked()[before:], 60)
    node.reboot()
    phase, end = await ended(controller, made)
    assert (phase, end["exitCode"]) == ("Failed", 143)
    assert "nobody knows how the operation ended" in end["message"]
    assert node.asked()[before:].count("reboot") == 1
    cluster.ready(TARGET)
