"""Pods as far as the work goes that ends with them: of which job, how many GPUs, and since when."""

from datetime import datetime
from typing import Any

from remediator.core import blast_radius, names
from remediator.core.job import job_of
from remediator.core.user_pod import UserPod
from remediator.kube.api import gpu_pods
from remediator.kube.api.common import Base, ObjectMeta, controller_kind
from remediator.kube.api.decode.times import moment, moment_of_node
from remediator.kube.wire.client import Kind

CHECKPOINT, SAVED = "remediator.dev/checkpoint", "remediator.dev/checkpoint-done"  # nodelib/k8s/handshake.py


class WorkingPodSpec(gpu_pods.GpuPodSpec, frozen=True, kw_only=True):
    """Where a Pod runs, what it asks for, and with whom."""

    resource_claims: tuple[dict[str, Any], ...] | None = None


class WorkingPodStatus(Base, frozen=True, kw_only=True):
    """How far it is."""

    phase: str = "Pending"
    start_time: datetime | None = None


class WorkingPod(Base, frozen=True, kw_only=True):
    """A Pod."""

    metadata: ObjectMeta
    spec: WorkingPodSpec = WorkingPodSpec()
    status: WorkingPodStatus = WorkingPodStatus()


POD: Kind[WorkingPod] = Kind("", "v1", "pods", "Pod", WorkingPod, namespaced=True)


def working_pod(wire: WorkingPod) -> blast_radius.WorkingPod:
    """A Pod, and the job that it is of."""
    meta, spec = wire.metadata, wire.spec
    owner = controller_kind(meta.owner_references)
    ended, deletion = wire.status.phase in ("Succeeded", "Failed"), moment(meta.deletion_timestamp)
    group = spec.scheduling_group.pod_group_name if spec.scheduling_group else None
    saves = meta.annotations.get(CHECKPOINT, "0") != "0"
    return blast_radius.WorkingPod(
        UserPod(meta.name, meta.namespace, meta.labels, owner, names.MIRROR in meta.annotations, ended, deletion),
        meta.uid,
        spec.node_name or "",
        job_of(meta.namespace, meta.name, meta.labels, meta.annotations, group or ""),
        gpus(spec),
        moment(wire.status.start_time),
        saves,
        moment_of_node(meta.annotations.get(SAVED)),
    )


def gpus(spec: WorkingPodSpec) -> int | None:
    """How many GPUs a Pod holds; None where nobody can count them: only a claim of DRA says which devices it got."""
    try:
        gpus = sum(count for _, count in gpu_pods.asked(gpu_pods.GpuPod(spec=spec)))
    except ValueError:
        return None
    return None if spec.resource_claims and not gpus else gpus
