"""The few core kinds we read, as far as we read them; every other field is skipped while decoding."""

from datetime import datetime
from typing import Any

import msgspec

from remediator.kube import api
from remediator.kube.api.common import ObjectMeta
from remediator.kube.wire.client import Kind


class Wire(msgspec.Struct, rename="camel", frozen=True, kw_only=True, omit_defaults=True):
    """Every type below: camelCase, unknown fields skipped."""


class Head(Wire, frozen=True, kw_only=True):
    """Who an object of any kind is."""

    metadata: ObjectMeta


class WireCondition(Wire, frozen=True, kw_only=True):
    """One entry of a Node's status.conditions."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None
    last_heartbeat_time: datetime | None = None


class WireTaint(Wire, frozen=True, kw_only=True):
    """One taint."""

    key: str
    effect: str
    value: str = ""
    time_added: str = ""


class NodeSpec(Wire, frozen=True, kw_only=True):
    """What we read of a Node's spec."""

    taints: tuple[WireTaint, ...] = ()
    unschedulable: bool = False


class NodeInfo(Wire, frozen=True, kw_only=True):
    """What we read of status.nodeInfo."""

    boot_id: str = msgspec.field(name="bootID", default="")


class NodeStatus(Wire, frozen=True, kw_only=True):
    """What we read of a Node's status."""

    conditions: tuple[WireCondition, ...] = ()
    node_info: NodeInfo = NodeInfo()


class Node(Wire, frozen=True, kw_only=True):
    """A Node."""

    metadata: ObjectMeta
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class Terminated(Wire, frozen=True, kw_only=True):
    """How a container ended."""

    exit_code: int = -1
    reason: str = ""
    message: str = ""


class ContainerState(Wire, frozen=True, kw_only=True):
    """Only the end interests us."""

    terminated: Terminated | None = None


class ContainerStatus(Wire, frozen=True, kw_only=True):
    """One container."""

    name: str = ""
    state: ContainerState = ContainerState()


class PodCondition(Wire, frozen=True, kw_only=True):
    """One entry of a Pod's status.conditions."""

    type: str
    status: str
    message: str = ""


class PodStatus(Wire, frozen=True, kw_only=True):
    """What we read of a Pod's status."""

    phase: str = "Pending"
    reason: str = ""
    message: str = ""
    container_statuses: tuple[ContainerStatus, ...] = ()
    conditions: tuple[PodCondition, ...] = ()


class PodSpec(Wire, frozen=True, kw_only=True):
    """What we read of a Pod's spec."""

    node_name: str = ""


class Pod(Wire, frozen=True, kw_only=True):
    """A Pod."""

    metadata: ObjectMeta
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class Namespace(Wire, frozen=True, kw_only=True):
    """A Namespace."""

    metadata: ObjectMeta


NODE = Kind("", "v1", "nodes", "Node", Node)
POD = Kind("", "v1", "pods", "Pod", Pod, namespaced=True)
NAMESPACE = Kind("", "v1", "namespaces", "Namespace", Namespace)
EVENT: Kind[Any] = Kind("", "v1", "events", "Event", dict, namespaced=True)
# Cases that cannot be read (a newer version wrote them) are still there.
CASE_HEAD = Kind(api.CASE.group, api.CASE.version, api.CASE.plural, api.CASE.name, Head)
