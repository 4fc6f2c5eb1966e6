"""Delete: preconditions, finalizers, and Pods that wait for their kubelet."""

from datetime import timedelta
from typing import Any

from remediator.kube.wire import times
from remediator_sim.apiserver import namespaces, pods, status
from remediator_sim.apiserver.cluster import Cluster
from remediator_sim.apiserver.options import Options
from remediator_sim.apiserver.status import Obj
from remediator_sim.apiserver.store import Entry
from remediator_sim.apiserver.writes import Target, ended


def delete(cluster: Cluster, target: Target, asked: Any, options: Options) -> Obj:
    """Delete one object; `asked` is a DeleteOptions object or None. Raises 404 and 409.

    The answer is a Status where the object is gone, and the marked object where something still holds it.
    """
    resource, wanted = target.resource, asked if isinstance(asked, dict) else {}
    entry = cluster.get(resource, target.namespace, target.name)
    _check_preconditions(target, entry, wanted.get("preconditions") or {})
    dry_run = options.dry_run or wanted.get("dryRun") == ["All"]
    asked_grace = wanted.get("gracePeriodSeconds", options.grace)
    marked = _marked(cluster, resource.storage, entry, asked_grace, counts=resource.generation)
    if marked is None:
        return resource.view(entry.obj)
    uid = entry.obj["metadata"]["uid"]
    if ended(marked) and not (resource.storage == "namespaces" and not dry_run):
        gone = marked if dry_run else cluster.remove(resource.storage, _unmarked(marked, entry)).obj
        if resource.returns_deleted:
            return resource.view(gone)
        return status.success(resource.group, resource.plural, target.name, uid)
    if dry_run:
        return resource.view(marked)
    stored = cluster.put(resource.storage, marked)
    if resource.storage == "namespaces":
        namespaces.empty(cluster, target.name)
    return resource.view(stored.obj)


def _unmarked(marked: Obj, entry: Entry) -> Obj:
    """What is removed at once never carried a mark that somebody could have seen; Pods show theirs."""
    return marked if entry.obj["metadata"].get("deletionTimestamp") or marked["kind"] == "Pod" else entry.copy()


def _check_preconditions(target: Target, entry: Entry, wanted: Obj) -> None:
    resource, meta = target.resource, entry.obj["metadata"]
    uid, version = wanted.get("uid"), wanted.get("resourceVersion")
    why = ""
    if uid is not None and uid != meta["uid"]:
        why = (
            f"the UID in the precondition ({uid}) does not match the UID in record ({meta['uid']}). "
            "The object might have been deleted and then recreated"
        )
    elif version is not None and version != meta["resourceVersion"]:
        why = (
            f"the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record "
            f"({meta['resourceVersion']}). The object might have been modified"
        )
    if why:
        raise status.conflict(resource.group, resource.kind, target.name, why)


def _marked(cluster: Cluster, storage: str, entry: Entry, asked: int | None, *, counts: bool) -> Obj | None:
    """The object with its deletion mark, or None where the mark that it has already stands."""
    obj = entry.copy()
    meta, seconds = obj["metadata"], pods.grace(obj, asked) if storage == "pods" else 0
    now = cluster.now()
    if meta.get("deletionTimestamp"):
        left = meta.get("deletionGracePeriodSeconds") or 0
        if seconds >= left:
            # Nothing waits any more where the period is over and only finalizers hold it.
            return None
        started = times.parse(meta["deletionTimestamp"]) - timedelta(seconds=left)
        meta["deletionTimestamp"] = times.stamp(started + timedelta(seconds=seconds))
    else:
        meta["deletionTimestamp"] = times.stamp(now + timedelta(seconds=seconds))
        if counts:
            meta["generation"] = meta.get("generation", 0) + 1
    meta["deletionGracePeriodSeconds"] = seconds
    return obj
