"""The taints that a cluster itself keeps on Nodes: new ones take no Pods, and conditions are shown as taints."""

from collections.abc import Callable

from remediator_sim.apiserver.cluster import Cluster
from remediator_sim.apiserver.status import Obj
from remediator_sim.apiserver.store import Entry

NOT_READY = "node.kubernetes.io/not-ready"


def begin(obj: Obj) -> None:
    """What every Node begins with: it takes no Pods until it is seen Ready."""
    spec = obj.setdefault("spec", {})
    obj.setdefault("status", {})
    spec["taints"] = _with(spec.get("taints") or [], NOT_READY)


Holds = Callable[[Obj, dict[str, str]], bool]  # by the Node, and the status of each of its Conditions


def _condition(type_: str, status: str) -> Holds:
    return lambda node, conditions: conditions.get(type_) == status


def _conditions(node: Obj) -> dict[str, str]:
    return {
        condition.get("type", ""): condition.get("status", "")
        for condition in (node.get("status") or {}).get("conditions") or []
    }


# Which taint says what of a Node. The eviction of Pods from Nodes long gone is not played here.
_SHOWN: dict[str, Holds] = {
    NOT_READY: _condition("Ready", "False"),
    "node.kubernetes.io/unreachable": _condition("Ready", "Unknown"),
    "node.kubernetes.io/memory-pressure": _condition("MemoryPressure", "True"),
    "node.kubernetes.io/disk-pressure": _condition("DiskPressure", "True"),
    "node.kubernetes.io/pid-pressure": _condition("PIDPressure", "True"),
    "node.kubernetes.io/unschedulable": lambda node, conditions: bool(node["spec"].get("unschedulable")),
}


def follow(cluster: Cluster, old: Entry | None, new: Entry | None) -> None:
    """Bring the taints of a Node up to its conditions; one that never said whether it is Ready stays as it is."""
    if new is None:
        return
    node, conditions = new.obj, _conditions(new.obj)
    before = node["spec"].get("taints") or []
    taints = before
    for key, holds in _SHOWN.items():
        if holds(node, conditions):
            taints = _with(taints, key)
        elif "Ready" in conditions or key != NOT_READY:
            taints = [taint for taint in taints if (taint.get("key"), taint.get("effect")) != (key, "NoSchedule")]
    if taints != before:
        obj = new.copy()
        obj["spec"]["taints"] = taints
        cluster.put("nodes", obj)


def _with(taints: list[Obj], key: str) -> list[Obj]:
    if any((taint.get("key"), taint.get("effect")) == (key, "NoSchedule") for taint in taints):
        return taints
    return [*taints, {"key": key, "effect": "NoSchedule"}]
