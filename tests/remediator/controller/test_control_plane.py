"""A node that runs etcd or kube-apiserver is never disturbed, also where nobody has labelled it."""

import pytest

from remediator.kube.api.builtin import POD
from tests.harness.controller import running, until
from tests.harness.kinds import NAMESPACES

MIRROR = {"kubernetes.io/config.mirror": "0123456789abcdef"}


async def static_pod(harness, namespace="kube-system", annotations=MIRROR, tier="control-plane"):
    """What a kubelet shows of /etc/kubernetes/manifests/etcd.yaml, as kubeadm writes that."""
    if namespace != "kube-system":
        await harness.client.create(NAMESPACES, {"metadata": {"name": namespace}})
    labels = {"component": "etcd", "tier": tier}
    metadata = {"name": "etcd-gpu-1", "namespace": namespace, "labels": labels, "annotations": annotations}
    spec = {"nodeName": "gpu-1", "containers": [{"name": "etcd", "image": "etcd"}]}
    await harness.client.create(POD, {"metadata": metadata, "spec": spec}, namespace=namespace)


async def test_a_node_that_runs_a_static_pod_of_the_control_plane_is_held(harness):
    await static_pod(harness)
    await harness.policy()
    await harness.node("gpu-1", "True")
    await harness.node("gpu-2", "True")
    async with running(harness):
        await until(lambda: harness.ended("gpu-2", "Recovered"))
        await until(lambda: harness.reasons("gpu-1") == ["ControlPlane"])
        assert (harness.taints("gpu-1"), [ran for ran in harness.ran if "gpu-1" in ran]) == ([], [])


@pytest.mark.parametrize("odd", [{"namespace": "tenant"}, {"annotations": {}}, {"tier": "web"}])
async def test_a_pod_that_only_looks_like_it_holds_nothing(harness, odd):
    await static_pod(harness, **odd)
    await harness.policy()
    await harness.node("gpu-1", "True")
    async with running(harness):
        await until(lambda: "gpu-1" in harness.claims())
