"""Pods that nodes have rejected, or cannot start: only what a count of them needs."""

from datetime import datetime

from remediator.core.rejections import NO_REJECTION, Rejection, rejection_reason
from remediator.kube.api.builtin import ContainerStatus, PodCondition, PodSpec
from remediator.kube.api.common import ON_EACH_NODE, Base, OwnerReference, controller
from remediator.kube.api.decode.times import moment_of_node
from remediator.kube.wire.client import Kind


class RejectedPodMeta(Base, frozen=True, kw_only=True):
    """Whose Pod it is."""

    namespace: str = ""
    uid: str = ""
    creation_timestamp: str | None = None
    owner_references: tuple[OwnerReference, ...] = ()


class Placed(PodCondition, frozen=True, kw_only=True):
    """One entry of status.conditions: PodScheduled says when the Pod came to its node."""

    last_transition_time: str | None = None


class RejectedPodStatus(Base, frozen=True, kw_only=True):
    """What became of it."""

    phase: str = "Pending"
    reason: str = ""
    start_time: str | None = None
    conditions: tuple[Placed, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()


class RejectedPod(Base, frozen=True, kw_only=True):
    """A Pod."""

    metadata: RejectedPodMeta = RejectedPodMeta()
    spec: PodSpec = PodSpec()
    status: RejectedPodStatus = RejectedPodStatus()


POD: Kind[RejectedPod] = Kind("", "v1", "pods", "Pod", RejectedPod, namespaced=True)
NOT_RUNNING = "spec.nodeName!=,status.phase!=Running,status.phase!=Succeeded"


def rejection(wire: RejectedPod) -> Rejection:
    """A Pod as a rejection by its node, or NO_REJECTION. Those of DaemonSets, and static ones, have no other node."""
    owner = controller(wire.metadata.owner_references)
    reason = _reason(wire.status)
    if not reason or (owner is not None and owner.kind in ON_EACH_NODE):
        return NO_REJECTION
    namespace, uid = wire.metadata.namespace, owner.uid if owner is not None else wire.metadata.uid
    return Rejection(wire.spec.node_name, f"{namespace}/{uid}", reason, _came(wire), namespace)


def _reason(status: RejectedPodStatus) -> str:
    if status.phase == "Failed":
        return rejection_reason(status.reason, ())
    containers = (*status.init_container_statuses, *status.container_statuses)
    return rejection_reason("", (each.state.waiting.reason for each in containers if each.state.waiting))


def _came(wire: RejectedPod) -> datetime | None:
    """When it came to its node: a kubelet rejects Pods at once, and writes no time of that."""
    placed = (entry for entry in wire.status.conditions if entry.type == "PodScheduled" and entry.status == "True")
    times = (
        wire.status.start_time,
        *(entry.last_transition_time for entry in placed),
        wire.metadata.creation_timestamp,
    )
    return next((at for at in map(moment_of_node, times) if at is not None), None)
