"""Pods of those who write Conditions: only whether one is Ready, and for which node it speaks."""

from remediator.core import reporters
from remediator.kube.api.builtin import PodCondition, PodSpec
from remediator.kube.api.common import ON_EACH_NODE, Base, OwnerReference, controller_kind
from remediator.kube.wire.client import Kind


class ReporterPodMeta(Base, frozen=True, kw_only=True):
    """Whose Pod it is."""

    resource_version: str = ""
    deletion_timestamp: str | None = None
    owner_references: tuple[OwnerReference, ...] = ()


class ReporterPodStatus(Base, frozen=True, kw_only=True):
    """Whether it is Ready."""

    conditions: tuple[PodCondition, ...] = ()


class ReporterPod(Base, frozen=True, kw_only=True):
    """A Pod."""

    metadata: ReporterPodMeta = ReporterPodMeta()
    spec: PodSpec = PodSpec()
    status: ReporterPodStatus = ReporterPodStatus()


POD: Kind[ReporterPod] = Kind("", "v1", "pods", "Pod", ReporterPod, namespaced=True)


def reporter_pod(wire: ReporterPod) -> reporters.ReporterPod:
    """A Pod of a reporter. One that is to go does not count as Ready: its kubelet may be gone."""
    ready = any(entry.type == "Ready" and entry.status == "True" for entry in wire.status.conditions)
    tied = controller_kind(wire.metadata.owner_references) in ON_EACH_NODE
    ends = wire.metadata.deletion_timestamp is not None
    return reporters.ReporterPod(wire.spec.node_name, not tied, ready and not ends, wire.metadata.resource_version)
