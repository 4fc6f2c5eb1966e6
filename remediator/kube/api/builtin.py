"""The few built-in kinds that we read and write, with only the fields that we use. Decoding skips every other field."""

from datetime import datetime
from typing import Any, Self

import msgspec
from msgspec import UNSET, UnsetType

from remediator.kube import api
from remediator.kube.api.common import Base, ObjectMeta
from remediator.kube.wire.client import Kind


class Head(Base, frozen=True, kw_only=True):
    """Who an object of any kind is."""

    metadata: ObjectMeta


class PhaseText(Base, frozen=True, kw_only=True):
    """The phase of an operation, as text: one that a newer version wrote must not hide the operation."""

    phase: str = ""


class OperationWithPhase(Base, frozen=True, kw_only=True):
    """Who an operation is, and how far it has come."""

    metadata: ObjectMeta
    status: PhaseText = PhaseText()


class NodeCondition(Base, frozen=True, kw_only=True):
    """One entry of a Node's status.conditions. Its times are text: one that is odd must not hide the whole node."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None
    last_heartbeat_time: str | None = None


class Taint(Base, frozen=True, kw_only=True):
    """One taint."""

    key: str
    effect: str
    value: str = ""
    time_added: str = ""


class NodeSpec(Base, frozen=True, kw_only=True):
    """What we read of a Node's spec."""

    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False


class NodeSpecPatch(Base, frozen=True, kw_only=True):
    """What we change in a Node's spec; None takes a field away."""

    taints: tuple[Taint, ...] | UnsetType | None = UNSET
    unschedulable: bool | UnsetType | None = UNSET


class NodeInfo(Base, frozen=True, kw_only=True):
    """What we read of status.nodeInfo."""

    boot_id: str = msgspec.field(name="bootID", default="")
    container_runtime_version: str = ""
    kernel_version: str = ""
    kubelet_version: str = ""
    os_image: str = ""
    machine_id: str = msgspec.field(name="machineID", default="")
    system_uuid: str = msgspec.field(name="systemUUID", default="")


class NodeConditionsPatch(Base, frozen=True, kw_only=True):
    """What we change in a Node's status: by a strategic merge patch, the Conditions of these types."""

    conditions: tuple[NodeCondition, ...]


Quantities = dict[str, str | int]


class NodeStatus(Base, frozen=True, kw_only=True):
    """What we read of a Node's status."""

    conditions: tuple[NodeCondition, ...] = ()
    node_info: NodeInfo = NodeInfo()
    allocatable: Quantities | None = None
    capacity: Quantities | None = None


class Node(Base, frozen=True, kw_only=True):
    """A Node."""

    metadata: ObjectMeta
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class NodeAddress(Base, frozen=True, kw_only=True):
    """An address of a node: a kind, such as InternalIP, and the address."""

    type: str = ""
    address: str = ""


class NodeAddressesStatus(Base, frozen=True, kw_only=True):
    """The addresses alone."""

    addresses: tuple[NodeAddress, ...] = ()


class NodeAddresses(Base, frozen=True, kw_only=True):
    """A Node, as far as it says how to reach it: read where that is asked for, and kept for no node."""

    metadata: ObjectMeta
    status: NodeAddressesStatus = NodeAddressesStatus()


class Terminated(Base, frozen=True, kw_only=True):
    """How a container ended."""

    exit_code: int = -1
    reason: str = ""
    message: str = ""
    started_at: str | None = None


class Waiting(Base, frozen=True, kw_only=True):
    """Why a container has not started."""

    reason: str = ""
    message: str = ""


class Begun(Base, frozen=True, kw_only=True):
    """A container that runs."""


class ContainerState(Base, frozen=True, kw_only=True):
    """Only the begin and the end interest us."""

    waiting: Waiting | None = None
    running: Begun | None = None
    terminated: Terminated | None = None


class ContainerStatus(Base, frozen=True, kw_only=True):
    """One container."""

    name: str = ""
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()


class PodCondition(Base, frozen=True, kw_only=True):
    """One entry of a Pod's status.conditions."""

    type: str
    status: str
    reason: str = ""
    message: str = ""


class PodStatus(Base, frozen=True, kw_only=True):
    """What we read of a Pod's status."""

    phase: str = "Pending"
    reason: str = ""
    message: str = ""
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    conditions: tuple[PodCondition, ...] = ()


class NamedContainer(Base, frozen=True, kw_only=True):
    """One container, as it is asked for."""

    name: str = ""


class PodSpec(Base, frozen=True, kw_only=True):
    """What we read of a Pod's spec."""

    node_name: str = ""
    containers: tuple[NamedContainer, ...] = ()


class Pod(Base, frozen=True, kw_only=True):
    """A Pod."""

    metadata: ObjectMeta
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class Namespace(Base, frozen=True, kw_only=True):
    """A Namespace."""

    metadata: ObjectMeta


class ObjectReference(Base, frozen=True, kw_only=True):
    """Which object an Event is about."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""
    uid: str = ""


class EventSource(Base, frozen=True, kw_only=True):
    """Who writes an Event."""

    component: str


class Event(Base, frozen=True, kw_only=True):
    """An Event."""

    api_version: str = msgspec.field(default_factory=lambda: "v1")
    kind: str = msgspec.field(default_factory=lambda: "Event")
    metadata: ObjectMeta
    involved_object: ObjectReference
    reason: str
    message: str
    type: str
    source: EventSource
    first_timestamp: datetime
    last_timestamp: datetime
    count: int


class LeaseSpec(msgspec.Struct, rename="camel"):
    """Who holds a Lease. The times are for people to read: no decision rests on them."""

    holder_identity: str = ""  # "" is free
    lease_duration_seconds: int = 15
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int = 0


class Lease(msgspec.Struct, rename="camel"):
    """A Lease, written whole. Its metadata is carried along as it came: labels and annotations survive our writes."""

    metadata: dict[str, Any]
    spec: LeaseSpec = msgspec.field(default_factory=LeaseSpec)
    api_version: str = "coordination.k8s.io/v1"
    kind: str = "Lease"

    @classmethod
    def named(cls, name: str, namespace: str, spec: LeaseSpec) -> Self:
        """A Lease that is not there yet."""
        return cls({"name": name, "namespace": namespace}, spec)

    @property
    def version(self) -> str:
        """The resourceVersion; "" where the Lease does not exist."""
        version: str = self.metadata.get("resourceVersion", "")
        return version


class Secret(msgspec.Struct, rename="camel"):
    """A Secret, written whole. Its metadata is carried along as it came; its data is shown to nobody."""

    metadata: dict[str, Any]
    data: dict[str, bytes] = msgspec.field(default_factory=dict)
    type: str = "Opaque"
    api_version: str = "v1"
    kind: str = "Secret"

    @property
    def stored(self) -> bool:
        """Whether it was read: the API server has it."""
        return bool(self.metadata.get("resourceVersion"))

    def __repr__(self) -> str:
        """Without what it holds: a repr may stand in a log."""
        return f"Secret({self.metadata.get('name', '')!r})"


NODE = Kind("", "v1", "nodes", "Node", Node)
NODE_ADDRESSES = Kind(NODE.group, NODE.version, NODE.plural, NODE.name, NodeAddresses)
POD = Kind("", "v1", "pods", "Pod", Pod, namespaced=True)
POD_HEAD = Kind(POD.group, POD.version, POD.plural, POD.name, Head, namespaced=True)
NAMESPACE = Kind("", "v1", "namespaces", "Namespace", Namespace)
EVENT = Kind("", "v1", "events", "Event", Head, namespaced=True)
SECRET = Kind("", "v1", "secrets", "Secret", Secret, namespaced=True)
LEASE = Kind("coordination.k8s.io", "v1", "leases", "Lease", Lease, namespaced=True)
# Cases that cannot be read (a newer version wrote them) are still there.
CASE_HEAD = Kind(api.CASE.group, api.CASE.version, api.CASE.plural, api.CASE.name, Head)
OPERATION_HEAD = Kind(api.OPERATION.group, api.OPERATION.version, api.OPERATION.plural, api.OPERATION.name, Head)
OPERATION_WITH_PHASE = Kind(
    api.OPERATION.group, api.OPERATION.version, api.OPERATION.plural, api.OPERATION.name, OperationWithPhase
)


def named(name: str) -> str:
    """The field selector of the object of this name."""
    return f"metadata.name={name}"


USER_PODS = 50  # Pods of users in one page of a list: their authors may make each of them 1.5 MiB large


def on_node(node: str) -> str:
    """The field selector of the Pods that are bound to this node."""
    return f"spec.nodeName={node}"
