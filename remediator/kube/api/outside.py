"""Objects by which other controllers ask for a repair, as their published contracts have them.

A source is what a setting lets in: `node-repairs` are ours, made of a template by medik8s NodeHealthCheck (named after
the node) and by MachineHealthCheck of Cluster API (named after the machine, which owns it); `nvsentinel` are those of
NVSentinel for repairs that it cannot do itself.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from remediator.core import names, outside_request
from remediator.core.node import Status
from remediator.core.outside_request import NVSENTINEL, Answered, Machine, OutsideRequest, since
from remediator.kube.api.common import Base, Condition, ObjectMeta, OwnerReference
from remediator.kube.api.encode.objects import body, second
from remediator.kube.api.patch import Body, MergePatch, MetaPatch
from remediator.kube.wire.client import Kind

_CAPI = "cluster.x-k8s.io/"
_NODE_NAME = "remediation.medik8s.io/node-name"  # where several templates of one kind are used, names are generated
_TIMED_OUT = "remediation.medik8s.io/nhc-timed-out"
_RELEASED, _COMPLETE = "NVSentinelOwnershipReleased", "ExternalRemediationComplete"
_PROCESSING, _SUCCEEDED = "Processing", "Succeeded"
_OURS = "Remediator"  # how our reasons begin


class _Status(Base, frozen=True, kw_only=True):
    conditions: tuple[Condition, ...] | None = None


class RepairSpec(Base, frozen=True, kw_only=True):
    """What a NodeRepairTemplate says of each."""

    operation: str = ""


class NodeRepair(Base, frozen=True, kw_only=True):
    """One node to be repaired."""

    metadata: ObjectMeta
    spec: RepairSpec = RepairSpec()
    status: _Status = _Status()


class HealthEvent(Base, frozen=True, kw_only=True):
    """What NVSentinel has found."""

    node_name: str = ""
    check_name: str = ""
    custom_recommended_action: str = ""


class _ErrSpec(Base, frozen=True, kw_only=True):
    health_event: HealthEvent = HealthEvent()


class ExternalRemediationRequest(Base, frozen=True, kw_only=True):
    """One node that NVSentinel hands to another system."""

    metadata: ObjectMeta
    spec: _ErrSpec = _ErrSpec()
    status: _Status = _Status()


class _NodeRef(Base, frozen=True, kw_only=True):
    name: str = ""


class _MachineStatus(Base, frozen=True, kw_only=True):
    node_ref: _NodeRef = _NodeRef()


class WireMachine(Base, frozen=True, kw_only=True):
    """A machine of Cluster API, as far as it knows its node."""

    metadata: ObjectMeta
    status: _MachineStatus = _MachineStatus()


def machine_kind(machine: Machine) -> Kind[WireMachine]:
    """In the version that the owner reference names."""
    group, _, version = machine.api_version.partition("/")
    return Kind(group, version, "machines", "Machine", WireMachine, namespaced=True)


def _repair(wire: NodeRepair) -> OutsideRequest:
    meta = wire.metadata
    machine = next((each for each in meta.owner_references if _is_machine(each)), None)
    owner = next(iter(meta.owner_references), OwnerReference(kind="nobody"))
    medik8s = meta.annotations.get(_NODE_NAME, "")
    return OutsideRequest(
        source="node-repairs",
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        version=meta.resource_version,
        node=medik8s or ("" if machine else meta.name),
        template=wire.spec.operation,
        requester=f"{owner.kind} {owner.name}".strip(),
        machine=Machine(machine.api_version, machine.name) if machine and not medik8s else None,
        deleting=meta.deletion_timestamp is not None,
        timed_out=_TIMED_OUT in meta.annotations,
        finalizers=meta.finalizers,
        answered=_answered(wire.status, _SUCCEEDED),
    )


def _is_machine(owner: OwnerReference) -> bool:
    return owner.kind == "Machine" and owner.api_version.startswith(_CAPI)


def _external(wire: ExternalRemediationRequest) -> OutsideRequest:
    meta, event = wire.metadata, wire.spec.health_event
    return OutsideRequest(
        source="nvsentinel",
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        version=meta.resource_version,
        node=event.node_name,
        template=event.custom_recommended_action.lower().replace("_", "-"),
        requester=f"{NVSENTINEL} {event.check_name or meta.name}",
        deleting=meta.deletion_timestamp is not None,
        released=any(each.type == _RELEASED and each.status is Status.TRUE for each in wire.status.conditions or ()),
        only_known=True,
        finalizers=meta.finalizers,
        answered=_answered(wire.status, _COMPLETE),
    )


def _answered(status: _Status, type: str) -> Answered:
    """What this condition says. Its Unknown is ours only with a reason of ours."""
    condition = next((each for each in status.conditions or () if each.type == type), None)
    if condition is None:
        return Answered.NOTHING
    if condition.status is not Status.UNKNOWN:
        return Answered.ENDED
    return Answered.UNDER_WAY if condition.reason.startswith(_OURS) else Answered.NOTHING


class OutsideKind(NamedTuple):
    """One row: whose objects, how one is read, and which of its conditions say that we work and how it has ended."""

    name: str
    kind: Kind[Any]
    read: Callable[[Any], OutsideRequest]
    processing: str  # "": it has no such condition
    ended: str


SOURCES: Mapping[str, OutsideKind] = {
    source.name: source
    for source in (
        OutsideKind(
            "node-repairs",
            Kind("requests.remediator.dev", "v1alpha1", "noderepairs", "NodeRepair", NodeRepair, namespaced=True),
            _repair,
            _PROCESSING,
            _SUCCEEDED,
        ),
        OutsideKind(
            "nvsentinel",
            Kind(
                "nvsentinel.dgxc.nvidia.com",
                "v1",
                "externalremediationrequests",
                "ExternalRemediationRequest",
                ExternalRemediationRequest,
            ),
            _external,
            "",
            _COMPLETE,
        ),
    )
}


def finalizers(request: OutsideRequest, *, held: bool) -> Body:
    """A merge patch with or without our finalizer, refused if the object has moved since we read it."""
    others = tuple(each for each in request.finalizers if each != names.POD_FINALIZER)
    wanted = (*others, names.POD_FINALIZER) if held else others
    return {"metadata": {"resourceVersion": request.version, "finalizers": list(wanted)}}


def conditions(source: OutsideKind, status: str, reason: str, message: str) -> tuple[outside_request.Condition, ...]:
    """The conditions that say it: `status` Unknown while it goes on, True or False at its end."""
    words = f"{_OURS}{reason}", message[:4096]
    processing = outside_request.Condition(source.processing, "True" if status == "Unknown" else "False", *words)
    return (*((processing,) if source.processing else ()), outside_request.Condition(source.ended, status, *words))


def status(wire: Any, wanted: tuple[outside_request.Condition, ...], now: datetime) -> Body | None:
    """A merge patch of all conditions, those of others as they are; None where it would change nothing."""
    before: tuple[Condition, ...] = wire.status.conditions or ()
    ours = {each.type: each for each in wanted}
    after = [
        *(each for each in before if each.type not in ours),
        *(_condition(each, next((old for old in before if old.type == each.type), None), now) for each in wanted),
    ]
    if {each.type: each for each in after} == {each.type: each for each in before}:
        return None
    version = wire.metadata.resource_version
    return body(MergePatch(metadata=MetaPatch(resource_version=version), status=_Status(conditions=tuple(after))))


def _condition(each: outside_request.Condition, old: Condition | None, now: datetime) -> Condition:
    changed = since(old.last_transition_time if old else None, str(old.status) if old else "", each, second(now))
    return Condition(
        type=each.type,
        status=Status(each.status),
        reason=each.reason,
        message=each.message,
        last_transition_time=changed,
        observed_generation=old.observed_generation if old else 0,
    )
