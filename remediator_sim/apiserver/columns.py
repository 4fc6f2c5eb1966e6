"""The columns of tables: what each shows of an object, for built-in kinds and for custom ones."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from remediator_sim.apiserver import ages, pods
from remediator_sim.apiserver.jsonpath import compile_path
from remediator_sim.apiserver.resources import Resource
from remediator_sim.apiserver.status import Obj


class Column(NamedTuple):
    """One column. Priority 0 is always shown, 1 only in wide output. `cell` is given the object and the time."""

    name: str
    cell: Callable[[Obj, datetime], Any]
    type: str = "string"
    priority: int = 0
    format: str = ""
    description: str = ""

    def definition(self) -> Obj:
        """The column as a Table announces it."""
        fields = {"name": self.name, "type": self.type, "format": self.format, "description": self.description}
        return {**fields, "priority": self.priority}


def _name(obj: Obj, now: datetime) -> Any:
    return obj["metadata"].get("name", "")


def _age(obj: Obj, now: datetime) -> Any:
    return ages.age(obj["metadata"].get("creationTimestamp") or "", now)


NAME = Column("Name", _name, format="name")
AGE = Column("Age", _age)


def _text(*path: str, absent: str = "<none>") -> Callable[[Obj, datetime], Any]:
    def cell(obj: Obj, now: datetime) -> Any:
        part_value: Any = obj
        for part in path:
            part_value = part_value.get(part) if isinstance(part_value, dict) else None
        return absent if part_value is None or part_value == "" else str(part_value)

    return cell


def _node_status(node: Obj, now: datetime) -> str:
    conditions = (node.get("status") or {}).get("conditions") or []
    ready = next((condition.get("status") for condition in conditions if condition.get("type") == "Ready"), None)
    word = {"True": "Ready", None: "Unknown"}.get(ready, "NotReady")
    return word + (",SchedulingDisabled" if (node.get("spec") or {}).get("unschedulable") else "")


def _node_roles(node: Obj, now: datetime) -> str:
    prefix = "node-role.kubernetes.io/"
    roles = [key.removeprefix(prefix) for key in node["metadata"].get("labels") or {} if key.startswith(prefix)]
    return ",".join(sorted(roles)) or "<none>"


def _address(type_: str) -> Callable[[Obj, datetime], str]:
    def cell(node: Obj, now: datetime) -> str:
        addresses = (node.get("status") or {}).get("addresses") or []
        return next((address["address"] for address in addresses if address.get("type") == type_), "<none>")

    return cell


def _containers(pod: Obj) -> list[Obj]:
    return (pod.get("status") or {}).get("containerStatuses") or []


def _pod_ready(pod: Obj, now: datetime) -> str:
    ready = sum(bool(container.get("ready")) for container in _containers(pod))
    return f"{ready}/{len((pod.get('spec') or {}).get('containers') or [])}"


def _pod_status(pod: Obj, now: datetime) -> str:
    status = pod.get("status") or {}
    if pod["metadata"].get("deletionTimestamp") and status.get("phase") not in pods.FINISHED:
        return "Terminating"
    for container in reversed(_containers(pod)):
        state = container.get("state") or {}
        reason = (state.get("waiting") or {}).get("reason") or (state.get("terminated") or {}).get("reason")
        if reason:
            return str(reason)
    return str(status.get("reason") or status.get("phase") or "Unknown")


def _pod_restarts(pod: Obj, now: datetime) -> str:
    return str(sum(container.get("restartCount") or 0 for container in _containers(pod)))


def _event_seen(event: Obj, now: datetime) -> str:
    series = event.get("series") or {}
    seen = series.get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime")
    return ages.age(seen or event["metadata"].get("creationTimestamp") or "", now)


def _event_object(event: Obj, now: datetime) -> str:
    about = event.get("involvedObject") or event.get("regarding") or {}
    return f"{str(about.get('kind', '')).lower()}/{about.get('name', '')}"


def _count(field: str) -> Callable[[Obj, datetime], Any]:
    return lambda obj, now: len(obj.get(field) or {})


def _replicas(obj: Obj, now: datetime) -> str:
    return f"{(obj.get('status') or {}).get('readyReplicas', 0)}/{(obj.get('spec') or {}).get('replicas', 1)}"


_WIDE = 1
_INFO = ("status", "nodeInfo")
BUILTIN: dict[str, tuple[Column, ...]] = {
    "nodes": (
        NAME,
        Column("Status", _node_status),
        Column("Roles", _node_roles),
        AGE,
        Column("Version", _text(*_INFO, "kubeletVersion", absent="")),
        Column("Internal-IP", _address("InternalIP"), priority=_WIDE),
        Column("External-IP", _address("ExternalIP"), priority=_WIDE),
        Column("OS-Image", _text(*_INFO, "osImage", absent="<unknown>"), priority=_WIDE),
        Column("Kernel-Version", _text(*_INFO, "kernelVersion", absent="<unknown>"), priority=_WIDE),
        Column("Container-Runtime", _text(*_INFO, "containerRuntimeVersion", absent="<unknown>"), priority=_WIDE),
    ),
    "pods": (
        NAME,
        Column("Ready", _pod_ready),
        Column("Status", _pod_status),
        Column("Restarts", _pod_restarts),
        AGE,
        Column("IP", _text("status", "podIP"), priority=_WIDE),
        Column("Node", _text("spec", "nodeName"), priority=_WIDE),
        Column("Nominated Node", _text("status", "nominatedNodeName"), priority=_WIDE),
        Column("Readiness Gates", lambda pod, now: "<none>", priority=_WIDE),
    ),
    "namespaces": (NAME, Column("Status", _text("status", "phase")), AGE),
    "events": (
        Column("Last Seen", _event_seen),
        Column("Type", _text("type", absent="")),
        Column("Reason", _text("reason", absent="")),
        Column("Object", _event_object),
        Column("Message", lambda event, now: str(event.get("message") or event.get("note") or "").strip()),
        Column("Name", _name, priority=_WIDE, format="name"),
    ),
    "leases": (NAME, Column("Holder", _text("spec", "holderIdentity", absent="")), AGE),
    "poddisruptionbudgets": (
        NAME,
        Column("Min Available", _text("spec", "minAvailable", absent="N/A")),
        Column("Max Unavailable", _text("spec", "maxUnavailable", absent="N/A")),
        Column(
            "Allowed Disruptions", lambda pdb, now: (pdb.get("status") or {}).get("disruptionsAllowed", 0), "integer"
        ),
        AGE,
    ),
    "configmaps": (NAME, Column("Data", _count("data"), "integer"), AGE),
    "secrets": (NAME, Column("Type", _text("type")), Column("Data", _count("data"), "integer"), AGE),
    "deployments": (NAME, Column("Ready", _replicas), AGE),
    "statefulsets": (NAME, Column("Ready", _replicas), AGE),
    "priorityclasses": (NAME, Column("Value", lambda obj, now: obj.get("value", 0), "integer"), AGE),
    "customresourcedefinitions": (
        NAME,
        Column("Created At", lambda obj, now: obj["metadata"].get("creationTimestamp", ""), "date"),
    ),
}


def custom(raw: Obj) -> Column:
    """The column that an additionalPrinterColumns entry describes. Raises ValueError for its jsonPath."""
    find, type_ = compile_path(raw["jsonPath"]), raw.get("type", "string")

    def cell(obj: Obj, now: datetime) -> Any:
        part_value = find(obj)
        return _shown(part_value[0], type_, now) if part_value else None

    priority, described = raw.get("priority", 0), raw.get("description", "")
    return Column(raw["name"], cell, type_, priority, raw.get("format", ""), described)


_PLAIN: dict[str, Any] = {"integer": int, "number": (int, float), "boolean": bool}


def _shown(value: Any, type_: str, now: datetime) -> Any:
    if value is None:
        return None
    if type_ == "date":
        return ages.age(value, now) if isinstance(value, str) else "<unknown>"
    if type_ == "string":
        return value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return value if isinstance(value, _PLAIN.get(type_, object)) else None


def of(resource: Resource) -> tuple[Column, ...]:
    """The columns of a kind."""
    if resource.custom:
        described = tuple(custom(raw) for raw in resource.columns)
        return (NAME, *described) if described else (NAME, AGE)
    return BUILTIN.get(resource.plural, (NAME, AGE))
