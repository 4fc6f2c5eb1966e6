"""PodDisruptionBudgets: their status, kept up to date at every write that it depends on, and which cover a Pod."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from remediator.kube.wire import times
from remediator_sim.apiserver import pods, selectors
from remediator_sim.apiserver.cluster import Cluster
from remediator_sim.apiserver.status import Obj
from remediator_sim.apiserver.store import Entry

STORAGE = "poddisruptionbudgets.policy"
_EVICTED_FOR = timedelta(minutes=2)  # an eviction whose delete was never seen counts this long
_OWNERS = {
    "ReplicaSet": "replicasets.apps",
    "Deployment": "deployments.apps",
    "StatefulSet": "statefulsets.apps",
}


def over(cluster: Cluster, pod: Obj) -> list[Entry]:
    """The budgets that select a Pod."""
    labels = pod["metadata"].get("labels") or {}
    entries = cluster.store.collection(STORAGE).scan(pod["metadata"]["namespace"])
    return [entry for entry in entries if _selects(entry.obj, labels)]


def _selects(budget: Obj, labels: dict[str, str]) -> bool:
    chosen = budget["spec"].get("selector")
    return chosen is not None and selectors.matches(chosen, labels)


def follow_pod(cluster: Cluster, old: Entry | None, new: Entry | None) -> None:
    """Count anew the budgets over a Pod where something that they count has changed."""
    if _counted(old) == _counted(new):
        return
    affected = {
        entry.obj["metadata"]["name"]: entry for state in (old, new) if state for entry in over(cluster, state.obj)
    }
    for entry in affected.values():
        count(cluster, entry)


def _counted(entry: Entry | None) -> Any:
    if entry is None:
        return None
    meta = entry.obj["metadata"]
    facts = (meta.get("labels"), meta.get("deletionTimestamp") is not None, meta.get("ownerReferences"))
    return (*facts, pods.ready(entry.obj), (entry.obj.get("status") or {}).get("phase"))


def follow_budget(cluster: Cluster, old: Entry | None, new: Entry | None) -> None:
    """Count a new or edited budget."""
    if new is not None and (old is None or old.obj["spec"] != new.obj["spec"]):
        count(cluster, new)


def follow_owner(cluster: Cluster, old: Entry | None, new: Entry | None) -> None:
    """Count the budgets of a namespace anew where the size of a workload has changed."""
    state = new or old
    if state is None or (old and new and old.obj.get("spec") == new.obj.get("spec")):
        return
    for entry in list(cluster.store.collection(STORAGE).scan(state.obj["metadata"]["namespace"])):
        count(cluster, entry)


def count(cluster: Cluster, entry: Entry) -> None:
    """Write the status of a budget where it is not what is counted now."""
    obj = entry.copy()
    meta, spec = obj["metadata"], obj["spec"]
    members = list(_members(cluster, obj))
    evicted = _evicted(cluster, obj, members)
    healthy = sum(
        pods.ready(pod) and not pod["metadata"].get("deletionTimestamp") and pod["metadata"]["name"] not in evicted
        for pod in members
    )
    expected, desired = _wanted(cluster, spec, members)
    allowed = max(healthy - desired, 0) if expected > 0 else 0
    status = {
        **(obj.get("status") or {}),
        "observedGeneration": meta.get("generation", 1),
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": expected,
        "disruptionsAllowed": allowed,
        "disruptedPods": evicted,
        "conditions": [_condition(cluster, obj, allowed)],
    }
    if not evicted:
        del status["disruptedPods"]
    if status != obj.get("status"):
        cluster.put(STORAGE, {**obj, "status": status})


def _condition(cluster: Cluster, obj: Obj, allowed: int) -> Obj:
    value, reason = ("True", "SufficientPods") if allowed > 0 else ("False", "InsufficientPods")
    before: Obj = next(iter((obj.get("status") or {}).get("conditions") or []), {})
    since = before.get("lastTransitionTime") if before.get("status") == value else None
    return {
        "type": "DisruptionAllowed",
        "status": value,
        "reason": reason,
        "message": "",
        "lastTransitionTime": since or cluster.stamp(),
        "observedGeneration": obj["metadata"].get("generation", 1),
    }


def _members(cluster: Cluster, budget: Obj) -> Iterator[Obj]:
    for entry in cluster.store.collection("pods").scan(budget["metadata"]["namespace"]):
        phase = (entry.obj.get("status") or {}).get("phase")
        if phase not in pods.FINISHED and _selects(budget, entry.obj["metadata"].get("labels") or {}):
            yield entry.obj


def _evicted(cluster: Cluster, budget: Obj, members: list[Obj]) -> dict[str, str]:
    """The Pods whose eviction was granted and is not seen yet."""
    still = {pod["metadata"]["name"] for pod in members if not pod["metadata"].get("deletionTimestamp")}
    disrupted_pods = (budget.get("status") or {}).get("disruptedPods") or {}
    now = cluster.now()
    return {name: at for name, at in disrupted_pods.items() if name in still and times.parse(at) + _EVICTED_FOR > now}


def _wanted(cluster: Cluster, spec: Obj, members: list[Obj]) -> tuple[int, int]:
    """(Pods expected, Pods that must stay healthy). Percentages and maxUnavailable count by the owners' size."""
    most, least = spec.get("maxUnavailable"), spec.get("minAvailable")
    if most is not None:
        expected = _scale(cluster, members)
        return expected, max(expected - _share(most, expected), 0)
    if isinstance(least, str):
        expected = _scale(cluster, members)
        return expected, _share(least, expected)
    return len(members), 1 if least is None else int(least)


def _share(value: Any, whole: int) -> int:
    """An int as it is, a percentage of the whole rounded up."""
    if isinstance(value, str) and value.endswith("%"):
        return -(-int(value[:-1]) * whole // 100)
    return int(value)


def _scale(cluster: Cluster, members: list[Obj]) -> int:
    """How many Pods the workloads behind these Pods want; a Pod without one counts nothing."""
    owners = [owner for pod in members if (owner := _workload(cluster, pod)) is not None]
    return sum({owner["metadata"]["uid"]: int(owner["spec"].get("replicas", 1)) for owner in owners}.values())


def _workload(cluster: Cluster, pod: Obj) -> Obj | None:
    """The uppermost owner that is stored and has a size."""
    at, obj = pod, None
    while (owner := _controller(at)) is not None and owner["kind"] in _OWNERS:
        entry = cluster.find(_OWNERS[owner["kind"]], pod["metadata"]["namespace"], owner["name"])
        if entry is None:
            break
        at = obj = entry.obj
    return obj


def _controller(obj: Obj) -> Obj | None:
    owners = obj["metadata"].get("ownerReferences") or []
    return next((owner for owner in owners if owner.get("controller")), None)
