"""What comes and goes with a namespace: its default service account, and on deletion all that lies in it."""

from remediator_sim.apiserver import meta
from remediator_sim.apiserver.cluster import Cluster
from remediator_sim.apiserver.status import Obj
from remediator_sim.apiserver.store import Entry

INITIAL = ("default", "kube-system", "kube-public", "kube-node-lease")


def follow(cluster: Cluster, old: Entry | None, new: Entry | None) -> None:
    """Make the default service account of a new namespace."""
    if old is None and new is not None:
        details = {"name": "default", "namespace": new.obj["metadata"]["name"]}
        make(cluster, "serviceaccounts", {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": details})


def make(cluster: Cluster, storage: str, obj: Obj) -> None:
    """Store an object that the server itself owns, unless it is there."""
    details = obj["metadata"]
    if cluster.find(storage, details.get("namespace", ""), details["name"]) is None:
        details |= {"uid": meta.new_uid(cluster.chance), "creationTimestamp": cluster.stamp()}
        cluster.put(storage, obj)


def begin(cluster: Cluster) -> None:
    """The namespaces and priority classes that every cluster has."""
    for name in INITIAL:
        namespace: Obj = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        complete(namespace)
        make(cluster, "namespaces", namespace)
    for name, value in (("system-cluster-critical", 2000000000), ("system-node-critical", 2000001000)):
        version = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
        obj = {**version, "value": value, "preemptionPolicy": "PreemptLowerPriority"}
        make(cluster, "priorityclasses.scheduling.k8s.io", obj)


def complete(obj: Obj) -> None:
    """What every namespace begins with."""
    obj["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = obj["metadata"]["name"]
    obj["spec"] = {"finalizers": ["kubernetes"]}
    obj["status"] = {"phase": "Active"}


def empty(cluster: Cluster, name: str) -> None:
    """Remove what lies in a namespace and then the namespace; what has finalizers keeps it Terminating."""
    for storage, collection in list(cluster.store.collections().items()):
        for entry in list(collection.scan(name)):
            obj = entry.copy()
            if not obj["metadata"].get("finalizers"):
                cluster.remove(storage, obj)
            elif not obj["metadata"].get("deletionTimestamp"):
                obj["metadata"] |= {"deletionTimestamp": cluster.stamp(), "deletionGracePeriodSeconds": 0}
                cluster.put(storage, obj)
    finish(cluster, name)


def finish(cluster: Cluster, name: str) -> None:
    """Remove a namespace that is being deleted and holds nothing any more; otherwise show that it is Terminating."""
    entry = cluster.find("namespaces", "", name)
    if entry is None or not entry.obj["metadata"].get("deletionTimestamp"):
        return
    obj = entry.copy()
    if not any(any(collection.scan(name)) for collection in cluster.store.collections().values()):
        cluster.remove("namespaces", obj)
    elif obj["status"].get("phase") != "Terminating":
        obj["status"] = {"phase": "Terminating"}
        cluster.put("namespaces", obj)
