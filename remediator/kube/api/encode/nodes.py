"""Nodes, and the Events on them, as we write them."""

import hashlib
from collections.abc import Iterable, Mapping
from datetime import datetime

from msgspec import UNSET, UnsetType

from remediator.core.case import Case, CaseEvent
from remediator.core.node import Node, NodeCondition, Taint
from remediator.core.policy import Policy
from remediator.core.reasons import WARNINGS
from remediator.kube import api
from remediator.kube.api import builtin
from remediator.kube.api.encode.objects import body, second
from remediator.kube.api.patch import Body, MergePatch, MetaPatch
from remediator.kube.wire.times import stamp


def node_marks(
    node: Node,
    taints: Iterable[Taint],
    *,
    unschedulable: bool | UnsetType | None = UNSET,
    annotations: Mapping[str, str | None] | UnsetType = UNSET,
) -> Body:
    """A merge patch that gives the node exactly these taints, refused if the node has moved since we read it.

    `unschedulable`: None takes the field away. `annotations`: name → value, None to remove it.
    """
    listed = tuple(builtin.Taint(key=t.key, effect=t.effect, value=t.value, time_added=t.added) for t in taints)
    spec = builtin.NodeSpecPatch(taints=listed or None, unschedulable=unschedulable)
    return body(MergePatch(metadata=MetaPatch(resource_version=node.version, annotations=annotations), spec=spec))


def node_labels(node: Node, labels: Mapping[str, str | None]) -> Body:
    """A merge patch that changes these labels of a node, None to remove one, refused if it has moved since then."""
    return body(MergePatch(metadata=MetaPatch(resource_version=node.version, labels=labels)))


def event(name: str, node: Node | None, case: Case, entry: CaseEvent) -> Body:
    """An Event on the Node, where `kubectl describe node` shows it."""
    involved = builtin.ObjectReference(api_version="v1", kind="Node", name=case.node, uid=node.uid if node else "")
    level = "Warning" if entry.reason in WARNINGS else "Normal"
    return _event(name, involved, entry.reason, f"{case.name}: {entry.message}", level, entry.at)


def node_event(name: str, node: Node, reason: str, message: str, at: datetime) -> Body:
    """A warning on a Node that is of no case."""
    involved = builtin.ObjectReference(api_version="v1", kind="Node", name=node.name, uid=node.uid)
    return _event(name, involved, reason, message, "Warning", at)


def policy_event(name: str, policy: Policy, reason: str, message: str, at: datetime) -> Body:
    """A warning on a RemediationPolicy."""
    involved = builtin.ObjectReference(
        api_version=api.API_VERSION, kind=api.POLICY.name, name=policy.name, uid=policy.uid
    )
    return _event(name, involved, reason, message, "Warning", at)


def namespace_event(what: str, namespace: str, reason: str, message: str, at: datetime) -> Body:
    """An Event on a Namespace, one in an hour for `what` by its name; Events on cluster-wide kinds lie in `default`."""
    digest = hashlib.sha256(f"{what} {at:%Y-%m-%dT%H}".encode()).hexdigest()[:10]
    involved = builtin.ObjectReference(api_version="v1", kind="Namespace", name=namespace)
    return _event(f"{namespace}.{digest}", involved, reason, message, "Warning", at)


def _event(name: str, involved: builtin.ObjectReference, reason: str, message: str, level: str, at: datetime) -> Body:
    return body(
        builtin.Event(
            metadata=api.ObjectMeta(name=name, namespace="default"),
            involved_object=involved,
            reason=reason,
            message=message[:1024],
            type=level,
            source=builtin.EventSource(component="remediator"),
            first_timestamp=second(at),
            last_timestamp=second(at),
            count=1,
        )
    )


def node_condition(node: Node, condition: NodeCondition) -> Body:
    """A strategic merge patch of one Condition of the node's status: those of others are left alone.

    Refused where the node is another one of the same name.
    """
    written = builtin.NodeCondition(
        type=condition.type,
        status=condition.status.value,
        reason=condition.reason,
        message=condition.message,
        last_transition_time=stamp(condition.since),
        last_heartbeat_time=stamp(condition.heartbeat),
    )
    return body(MergePatch(metadata=MetaPatch(uid=node.uid), status=builtin.NodeConditionsPatch(conditions=(written,))))
