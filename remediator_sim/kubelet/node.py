"""What a kubelet writes about its own node: the Node at registration, its status, its Lease. Pure."""

import hashlib
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from remediator.kube.wire.times import micro_stamp, stamp
from remediator_sim.apiserver.version import KUBERNETES
from remediator_sim.stamps import transitioned

LEASE_SECONDS = 40
GPU = "nvidia.com/gpu"

# type -> (reason, message) while nothing is wrong; the status of each is "False".
PRESSURES: Mapping[str, tuple[str, str]] = {
    "MemoryPressure": ("KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    "DiskPressure": ("KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    "PIDPressure": ("KubeletHasSufficientPID", "kubelet has sufficient PID available"),
}


def address(name: str, network: int = 10) -> str:
    """An IPv4 address made from a name: the same name always has the same one."""
    a, b, c = hashlib.sha256(name.encode()).digest()[:3]
    return f"{network}.{a}.{b}.{c % 254 + 1}"


def body(name: str, boot_id: str, labels: Mapping[str, str], gpus: int, now: datetime) -> dict[str, Any]:
    """The Node as it is registered; `labels` are added to those that every kubelet sets."""
    own = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    present = {"nvidia.com/gpu.present": "true", "nvidia.com/gpu.count": str(gpus)} if gpus else {}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {**own, **present, **labels}},
        "status": status(name, boot_id, gpus, [], "", now),
    }


def status(
    name: str, boot_id: str, gpus: int, before: list[dict[str, Any]], trouble: str, now: datetime
) -> dict[str, Any]:
    """The part of a Node's status that is the kubelet's. `before` are the conditions that the Node has now; those of
    others are neither changed nor repeated. Not Ready while `trouble` says why.
    """
    size = {"cpu": "64", "memory": "512Gi", "ephemeral-storage": "1Ti", "pods": "110", GPU: str(gpus)}
    return {
        "capacity": size,
        "allocatable": size,
        "conditions": transitioned(before, _conditions(trouble, now), now),
        "addresses": [{"type": "InternalIP", "address": address(name)}, {"type": "Hostname", "address": name}],
        "nodeInfo": _info(name, boot_id),
    }


def lease(name: str, uid: str, now: datetime) -> dict[str, Any]:
    """The node's Lease in kube-node-lease, owned by the Node of this uid."""
    owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": "kube-node-lease", "ownerReferences": [owner]},
        "spec": renewal(name, now),
    }


def renewal(name: str, now: datetime) -> dict[str, Any]:
    """What a heartbeat sets in the Lease's spec."""
    return {"holderIdentity": name, "leaseDurationSeconds": LEASE_SECONDS, "renewTime": micro_stamp(now)}


def _conditions(trouble: str, now: datetime) -> list[dict[str, Any]]:
    pressures = [_condition(kind, "False", *why, now) for kind, why in PRESSURES.items()]
    if trouble:
        return [*pressures, _condition("Ready", "False", "KubeletNotReady", trouble, now)]
    return [*pressures, _condition("Ready", "True", "KubeletReady", "kubelet is posting ready status", now)]


def _condition(kind: str, value: str, reason: str, message: str, now: datetime) -> dict[str, Any]:
    return {"type": kind, "status": value, "reason": reason, "message": message, "lastHeartbeatTime": stamp(now)}


def _info(name: str, boot_id: str) -> dict[str, str]:
    machine = hashlib.sha256(name.encode()).hexdigest()[:32]
    return {
        "machineID": machine,
        "systemUUID": machine,
        "bootID": boot_id,
        "kernelVersion": "6.1.0-simulated",
        "osImage": "Simulated Linux",
        "containerRuntimeVersion": "simulated://1.0",
        "kubeletVersion": KUBERNETES,
        "kubeProxyVersion": "",
        "operatingSystem": "linux",
        "architecture": "amd64",
    }
