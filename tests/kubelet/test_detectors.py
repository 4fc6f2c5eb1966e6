"""node-problem-detector runs on real nodes as its DaemonSet is shipped, and writes what the detectors find."""

import json
from typing import Any

import pytest

from remediator.core import names
from remediator.kube.wire.client import Client
from remediator_sim.plain import NODES, PODS
from tests.harness.kinds import DAEMON_SETS
from tests.harness.waiting import until
from tests.kubelet.cluster import NAMES, Cluster
from tests.kubelet.images.dockerfile import ROOT

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(240)]
DETECTOR = "node-problem-detector"
KUBELET = {"Ready", "MemoryPressure", "DiskPressure", "PIDPressure"}


def wanted(cluster: Cluster) -> set[str]:
    """The Conditions of all detectors that the DaemonSet is given."""
    (config,) = [one for one in cluster.shipped() if one["kind"] == "ConfigMap" and DETECTOR in one["metadata"]["name"]]
    monitors = [json.loads(text) for text in config["data"].values()]
    assert len(monitors) == len(list((ROOT / "deploy" / "npd").glob("*.json")))
    return {condition["type"] for monitor in monitors for condition in monitor["conditions"]}


async def conditions(client: Client, node: str) -> dict[str, dict[str, Any]]:
    """A node's Conditions that are not its kubelet's, by type."""
    found = (await client.get(NODES, node))["status"]["conditions"]
    return {one["type"]: one for one in found if one["type"] not in KUBELET}


@pytest.mark.parametrize("node", NAMES)
async def test_every_detector_says_what_it_finds_on_a_real_node(cluster: Cluster, admin: Client, node: str) -> None:
    types = wanted(cluster)

    async def all_said() -> bool:
        return set(await conditions(admin, node)) >= types

    await until(all_said, 120)
    found = {kind: one for kind, one in (await conditions(admin, node)).items() if kind in types}
    assert {one["status"] for one in found.values()} <= {"True", "False", "Unknown"}
    assert [kind for kind, one in found.items() if not (one.get("reason") and one.get("message"))] == []
    owners = {one["manager"] for one in (await admin.get(NODES, node))["metadata"]["managedFields"]}
    assert DETECTOR in owners


async def test_it_runs_on_every_node_and_does_not_end(cluster: Cluster, admin: Client) -> None:
    async def ready() -> bool:
        found = await admin.get(DAEMON_SETS, DETECTOR, namespace=names.SYSTEM_NAMESPACE)
        return bool(found["status"].get("numberReady") == len(NAMES))

    await until(ready, 120)
    labels = f"app.kubernetes.io/component={DETECTOR}"
    pods = await admin.list_all(PODS, namespace=names.SYSTEM_NAMESPACE, labels=labels)
    assert {pod["spec"]["nodeName"] for pod in pods} == set(NAMES)
    containers = [one for pod in pods for one in pod["status"]["containerStatuses"]]
    assert [one["restartCount"] for one in containers] == [0] * len(NAMES)
