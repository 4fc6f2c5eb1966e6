"""A node that runs etcd or kube-apiserver is never disturbed, also where nobody has labelled it."""

import pytest

from remediator.kube.api.builtin import POD
from remediator_sim.apiserver.store import Entry
from tests.harness.controller import running, until
from tests.harness.kinds import NAMESPACES, NODES

pytestmark = pytest.mark.sampled("control plane")

MIRROR = {"kubernetes.io/config.mirror": "0123456789abcdef"}


async def static_pod(
    harness, namespace="kube-system", annotations=MIRROR, tier="control-plane", component="etcd", node="gpu-1"
):
    """What a kubelet shows of /etc/kubernetes/manifests/etcd.yaml, as kubeadm writes that."""
    if namespace != "kube-system":
        await harness.client.create(NAMESPACES, {"metadata": {"name": namespace}})
    labels = {"component": component, "tier": tier}
    metadata = {"name": f"{component}-{node}", "namespace": namespace, "labels": labels, "annotations": annotations}
    spec = {"nodeName": node, "containers": [{"name": component, "image": component}]}
    await harness.client.create(POD, {"metadata": metadata, "spec": spec}, namespace=namespace)


@pytest.mark.parametrize("component", ["etcd", "kube-apiserver", "cloud-controller-manager"])
async def test_a_node_that_runs_a_static_pod_of_the_control_plane_is_held(harness, component):
    await static_pod(harness, component=component)
    await harness.policy()
    await harness.node("gpu-1", "True")
    await harness.node("gpu-2", "True")
    async with running(harness):
        await until(lambda: harness.ended("gpu-2", "Recovered"))
        await until(lambda: harness.reasons("gpu-1") == ["ControlPlane"])
        message = harness.cases("gpu-1")[0]["status"]["blockedBy"][0]["message"]
        assert message.startswith(f"gpu-1 runs a static Pod of the control plane ({component}-gpu-1);")
        assert (harness.taints("gpu-1"), [ran for ran in harness.ran if "gpu-1" in ran]) == ([], [])


async def test_a_node_of_the_control_plane_by_label_and_by_pod_is_held_once(harness):
    await static_pod(harness)
    await harness.policy()
    await harness.node("gpu-1", "True")
    await harness.change(NODES, "gpu-1", metadata={"labels": {"node-role.kubernetes.io/control-plane": ""}})
    async with running(harness):
        await until(lambda: harness.reasons("gpu-1") == ["ControlPlane"])


# RKE2 runs kube-proxy as a static Pod with the tier of the control plane on every worker.
@pytest.mark.parametrize(
    "odd", [{"namespace": "tenant"}, {"annotations": {}}, {"tier": "web"}, {"component": "kube-proxy"}]
)
async def test_a_pod_that_only_looks_like_it_holds_nothing(harness, odd):
    await static_pod(harness, **odd)
    await harness.policy()
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: "gpu-1" in harness.claims())


@pytest.mark.parametrize("odd", [{"phase": 5}, {"containerStatuses": "none"}])
async def test_a_static_pod_of_which_only_the_node_can_be_read_holds_it(harness, odd):
    await static_pod(harness)
    entries = harness.server.cluster.store.collection("pods").entries
    for key, entry in entries.items():
        entries[key] = Entry({**entry.obj, "status": odd}, entry.rv)
    await harness.policy()
    await harness.node("gpu-1", "True")
    async with running(harness) as controller:
        await until(lambda: harness.reasons("gpu-1") == ["ControlPlane"])
        assert controller.cache.control_plane.unreadable() == 1
