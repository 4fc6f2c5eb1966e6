"""What admission adds to or refuses of new Pods: priority, service account, tolerations of lost nodes."""

from collections.abc import Callable

from remediator_sim.apiserver import status
from remediator_sim.apiserver.cluster import Cluster
from remediator_sim.apiserver.status import Obj


def _admit_pod(cluster: Cluster, pod: Obj) -> None:
    spec, name = pod.get("spec"), pod["metadata"].get("name", "")
    if not isinstance(spec, dict):
        return
    if chosen := spec.get("priorityClassName"):
        found = cluster.find("priorityclasses.scheduling.k8s.io", "", chosen)
        if found is None:
            raise status.forbidden("", "pods", name, f"no PriorityClass with name {chosen} was found")
        spec["priority"] = found.obj.get("value", 0)
        spec["preemptionPolicy"] = found.obj.get("preemptionPolicy") or "PreemptLowerPriority"
    account, namespace = spec.get("serviceAccountName", "default"), pod["metadata"]["namespace"]
    if cluster.find("serviceaccounts", namespace, account) is None:
        why = f'error looking up service account {namespace}/{account}: serviceaccount "{account}" not found'
        raise status.forbidden("", "pods", name, why)
    spec["serviceAccount"] = account
    _tolerate(spec)


def _tolerate(spec: Obj) -> None:
    """Let a Pod stay five minutes on a node that is lost, unless it says otherwise itself."""
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        given = spec.get("tolerations") or []
        if not any(one.get("key", key) == key and one.get("effect", "NoExecute") == "NoExecute" for one in given):
            added = {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
            spec["tolerations"] = [*given, added]


ADMIT: dict[str, Callable[[Cluster, Obj], None]] = {"pods": _admit_pod}
