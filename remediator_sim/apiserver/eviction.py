"""The eviction subresource: a delete that asks the Pod's budget first."""

from remediator_sim.apiserver import budgets, deletes, pods, status
from remediator_sim.apiserver.cluster import Cluster
from remediator_sim.apiserver.options import Options
from remediator_sim.apiserver.status import Failure, Obj
from remediator_sim.apiserver.store import Entry
from remediator_sim.apiserver.writes import Target

_FREE = (*pods.FINISHED, "Pending")  # phases in which a Pod does no work that a budget could protect


def evict(cluster: Cluster, target: Target, body: Obj, options: Options) -> Obj:
    """Delete a Pod where its budget allows that. Raises 404, 409, 429 (budget) and 500 (two budgets)."""
    name = (body.get("metadata") or {}).get("name") or target.name
    if name != target.name:
        raise status.bad_request("name in URL does not match name in Eviction object: " + name)
    pod = cluster.get(target.resource, target.namespace, target.name)
    asked = body.get("deleteOptions") or {}
    dry_run = options.dry_run or asked.get("dryRun") == ["All"]
    free = pod.obj["status"].get("phase") in _FREE or pod.obj["metadata"].get("deletionTimestamp")
    if not free:
        _ask(cluster, pod, dry_run=dry_run)
    deletes.delete(cluster, target, asked, options)
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


def _ask(cluster: Cluster, pod: Entry, *, dry_run: bool) -> None:
    """Take the eviction out of the budget, or raise."""
    found = budgets.over(cluster, pod.obj)
    if len(found) > 1:
        why = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        raise Failure(500, "InternalError", why)
    if not found or _goes_unhealthy(found[0].obj, pod.obj):
        return
    budget = found[0].copy()
    _check(budget)
    if not dry_run:
        state = budget["status"]
        state["disruptionsAllowed"] -= 1
        state.setdefault("disruptedPods", {})[pod.obj["metadata"]["name"]] = cluster.stamp()
        cluster.put(budgets.STORAGE, budget)


def _goes_unhealthy(budget: Obj, pod: Obj) -> bool:
    """Whether a Pod that is not ready may go without asking the budget."""
    if pods.ready(pod):
        return False
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    state = budget.get("status") or {}
    return bool(state.get("currentHealthy", 0) >= state.get("desiredHealthy", 0) > 0)


def _check(budget: Obj) -> None:
    state, name = budget.get("status") or {}, budget["metadata"]["name"]
    if state.get("observedGeneration", 0) < budget["metadata"].get("generation", 1):
        why = f"The disruption budget {name} is still being processed by the server."
        raise _too_many(why, why, after=10)
    if state.get("disruptionsAllowed", 0) <= 0:
        needs, has = state.get("desiredHealthy", 0), state.get("currentHealthy", 0)
        cause = f"The disruption budget {name} needs {needs} healthy pods and has {has} currently"
        raise _too_many("Cannot evict pod as it would violate the pod's disruption budget.", cause)


def _too_many(message: str, cause: str, after: int = 0) -> Failure:
    return Failure(
        429, "TooManyRequests", message, {"causes": [{"reason": "DisruptionBudget", "message": cause}]}, after
    )
