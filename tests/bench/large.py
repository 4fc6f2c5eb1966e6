"""A large cluster in the embedded server: nodes in racks, the shipped policies, one budget per rack, years of cases."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from remediator.core import names
from remediator.kube import api
from remediator.kube.wire.client import Kind
from remediator_sim import manifests
from remediator_sim.apiserver import EmbeddedServer
from tests.bench import features
from tests.harness.cluster import with_kinds
from tests.harness.kinds import NAMESPACES, NODES, Object, plain

RACK = "topology.example/rack"
NODES_IN_RACK = 8
CONDITIONS = 27
GPU = "nvidia.com/gpu"
# Of the shipped policies those whose only entry is one condition that a detector sets.
LABELS = {
    "nvidia.com/gpu.present": "true",
    "remediator.dev/gpu.present": "true",
    "node.kubernetes.io/instance-type": "gpu-8",
}
APART = timedelta(minutes=20)  # between two onsets of one fault: no common cause


class Size(NamedTuple):
    """How many objects there are; budgets are one per rack, or `grouped`: one for all racks.

    Of ended cases there are two `operations` each, or none.
    """

    nodes: int
    ended: int
    waiting: int
    grouped: bool = False
    operations: bool = True

    @property
    def racks(self) -> int:
        """How many racks the nodes fill."""
        return -(-self.nodes // NODES_IN_RACK)


def size(nodes: int, grouped: bool = False) -> Size:
    """What a cluster of so many nodes has, in proportion: 20,000 ended and 750 waiting cases at 5,000 nodes."""
    return Size(nodes, 4 * nodes, 15 * nodes // 100, grouped)


def name(index: int) -> str:
    """The name of a node."""
    return f"gpu-{index:06d}"


def server(size: Size) -> EmbeddedServer:
    """A server that holds all of it; nothing is validated, so that it is there in seconds."""
    embedded = EmbeddedServer(like=with_kinds())
    cluster = embedded.cluster
    for kind, body in objects(size, datetime.now(UTC).replace(microsecond=0)):
        cluster.put(f"{kind.plural}.{kind.group}" if kind.group else kind.plural, body)
    cluster.store.compact()
    return embedded


def objects(size: Size, now: datetime) -> Iterator[tuple[Kind[Any], Object]]:
    """Everything that the server holds."""
    for space in (names.SYSTEM_NAMESPACE, names.OPERATIONS_NAMESPACE, "default"):
        yield NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space, "uid": space}}
    for document in (*manifests.documents(("operations", "deploy/policies")), *features.policies()):
        kind = plain(api.TEMPLATE if document["kind"] == api.TEMPLATE.name else api.POLICY)
        if document["kind"] == kind.name:
            yield kind, enforced(document)
    yield from ((plain(api.BUDGET), budget) for budget in _budgets(size))
    shown = faults()
    waits = _waits(size)
    for index in range(size.nodes):
        fault = shown[waits[index] % len(shown)] if index in waits else None
        since = now - timedelta(hours=1) - APART * (waits[index] // len(shown)) if index in waits else now
        yield NODES, node(index, now, fault, since)
        if fault is not None:
            yield plain(api.CASE), _case(index, 0, fault, since)
    for index in range(size.ended):
        began = now - timedelta(days=60) * (size.ended - index) / size.ended - timedelta(minutes=30)
        case, *operations = _ended(index % size.nodes, index, shown[index % len(shown)], began)
        yield from (case, *operations) if size.operations else (case,)


def _waits(size: Size) -> dict[int, int]:
    """The number of the case that waits, by the index of its node."""
    return {index * size.nodes // size.waiting: index for index in range(size.waiting)}


def sound(size: Size) -> list[int]:
    """The indices of the nodes without a fault that no user has cordoned."""
    waits = _waits(size)
    return [index for index in range(size.nodes) if index % NODES_IN_RACK and index not in waits]


def enforced(document: Object) -> Object:
    """A policy as an API server has it, and in Enforce; or a template."""
    meta = document["metadata"] | {"uid": f"uid-{document['metadata']['name']}", "generation": 1}
    changed = document | {"metadata": meta}
    if document["kind"] == api.POLICY.name:
        changed["spec"] = document["spec"] | {"mode": "Enforce"}
    return changed


def faults() -> list[tuple[str, str]]:
    """Policy and condition of the shipped policies that act on one condition of a detector."""
    found = []
    for policy in manifests.documents(("deploy/policies",)):
        entries, spec = policy["spec"]["when"], policy["spec"]
        if len(entries) == 1 and "status" not in entries[0] and spec.get("urgency", {}).get("mode") != "Never":
            found.append((policy["metadata"]["name"], entries[0]["condition"]))
    return found


def conditions() -> list[str]:
    """The types of a node's conditions: those of the shipped policies, and more that nobody asks about."""
    entries = (entry for policy in manifests.documents(("deploy/policies",)) for entry in policy["spec"]["when"])
    asked = [entry["condition"] for entry in entries]
    kinds = dict.fromkeys(["Ready", "DetectorStale", *asked, *(f"Other{n}" for n in range(CONDITIONS))])
    return list(kinds)[:CONDITIONS]


KINDS = conditions()


def node(index: int, now: datetime, fault: tuple[str, str] | None = None, since: datetime | None = None) -> Object:
    """One node; of each rack the first is cordoned by a user, so that its budget is full."""
    beat = stamp(now + timedelta(minutes=4))
    said = []
    for kind in KINDS:
        sick = fault is not None and kind == fault[1]
        turned = stamp(since if sick and since else now - timedelta(days=30))
        status = "True" if sick or kind == "Ready" else "False"
        times = {"lastHeartbeatTime": beat, "lastTransitionTime": turned}
        reason = f"{kind}Found" if sick else f"No{kind}"
        said.append({"type": kind, "status": status, "reason": reason, "message": f"{kind} of this node"} | times)
    labels = LABELS | {RACK: f"rack-{index // NODES_IN_RACK:05d}", "kubernetes.io/hostname": name(index)}
    room = {"cpu": "96", "memory": "1Ti", "pods": "110", GPU: "8"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name(index), "uid": f"uid-{name(index)}", "labels": labels},
        "spec": {"unschedulable": True} if index % NODES_IN_RACK == NODES_IN_RACK - 1 else {},
        "status": {
            "conditions": said,
            "allocatable": room,
            "capacity": room,
            "nodeInfo": {"bootID": f"boot-{index:06d}"},
        },
    }


def _budgets(size: Size) -> Iterator[Object]:
    head = {"apiVersion": api.BUDGET.api_version, "kind": api.BUDGET.name}
    if size.grouped:
        spec = {"selector": {"matchLabels": LABELS}, "groupBy": RACK, "maxUnavailable": 1}
        yield head | {"metadata": {"name": "racks", "uid": "uid-racks", "generation": 1}, "spec": spec}
        return
    for rack in range(size.racks):
        value = f"rack-{rack:05d}"
        spec = {"selector": {"matchLabels": {RACK: value}}, "maxUnavailable": 1}
        yield head | {"metadata": {"name": value, "uid": f"uid-{value}", "generation": 1}, "spec": spec}


def _case(index: int, number: int, fault: tuple[str, str], began: datetime) -> Object:
    policy, condition = fault
    called, uid = names.name(name(index), policy, str(number), stamp(began)), f"case-{index}-{number}"
    trigger = {"condition": condition, "status": "True", "reason": f"{condition}Found", "since": stamp(began)}
    return {
        "apiVersion": api.CASE.api_version,
        "kind": api.CASE.name,
        "metadata": {
            "name": called,
            "uid": uid,
            "creationTimestamp": stamp(began + timedelta(minutes=2)),
            "finalizers": [names.CASE_FINALIZER],
        },
        "spec": {
            "nodeName": name(index),
            "nodeUID": f"uid-{name(index)}",
            "policyName": policy,
            "trigger": trigger | {"message": f"{condition} of this node"},
        },
    }


def _ended(index: int, number: int, fault: tuple[str, str], began: datetime) -> Iterator[tuple[Kind[Any], Object]]:
    """A case that one reboot has cured, with its two operations."""
    case = _case(index, number + 1, fault, began)
    del case["metadata"]["finalizers"]
    steps = ("Claimed", "Diagnosing", "Diagnosed", "Started", "Draining", "Operating", "Succeeded", "Recovered")
    times = [stamp(began + timedelta(minutes=2 + minute)) for minute in range(len(steps))]
    timeline = [
        {"at": at, "reason": step, "message": f"{step}, as it is told"} for at, step in zip(times, steps, strict=True)
    ]
    operation = names.name(name(index), "reboot", str(number))
    attempt = {"operation": operation, "template": "reboot", "rung": 1, "attempt": 1, "outcome": "Succeeded"}
    case["status"] = {
        "phase": "Recovered",
        "reason": "Recovered",
        "rung": 1,
        "attempts": [attempt | {"startedAt": times[3], "finishedAt": times[6], "intent": {"bootID": "b"}}],
        "evidence": {"kernel": ["NVRM: Xid 79, GPU has fallen off the bus. " * 3] * 4},
        "diagnostics": {"outcome": "Succeeded"},
        "startedAt": times[0],
        "endedAt": times[-1],
        "timeline": timeline,
    }
    yield plain(api.CASE), case
    for template in ("collect-diagnostics", "reboot"):
        yield plain(api.OPERATION), _operation(case, template, operation, times)


def _operation(case: Object, template: str, attempt: str, times: list[str]) -> Object:
    called = attempt if template == "reboot" else attempt.replace("reboot", "diagnose")
    spec = case["spec"]
    return {
        "apiVersion": api.OPERATION.api_version,
        "kind": api.OPERATION.name,
        "metadata": {"name": called, "uid": f"uid-{called}", "creationTimestamp": times[3]},
        "spec": {
            "nodeName": spec["nodeName"],
            "nodeUID": spec["nodeUID"],
            "caseUID": case["metadata"]["uid"],
            "attempt": 1,
            "templateName": template,
        },
        "status": {"phase": "Succeeded", "startedAt": times[3], "finishedAt": times[6], "message": "done"},
    }


def stamp(at: datetime) -> str:
    """A time as Kubernetes writes it."""
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")
