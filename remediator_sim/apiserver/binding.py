"""The binding subresource: a scheduler puts a Pod on a node."""

from remediator_sim.apiserver import status
from remediator_sim.apiserver.cluster import Cluster
from remediator_sim.apiserver.status import Obj
from remediator_sim.apiserver.writes import Target

PRECONDITIONS = ("uid", "resourceVersion")


def bind(cluster: Cluster, target: Target, body: Obj) -> Obj:
    """Set the node of a Pod that has none, and the annotations that the Binding has, in one write.

    Raises 404, and 409 where it has a node, is being deleted, or is not of the uid or version that the Binding names.
    """
    pod = cluster.get(target.resource, target.namespace, target.name).copy()
    node, meta = (body.get("target") or {}).get("name"), body.get("metadata") or {}
    if not node:
        raise status.invalid("", "Binding", target.name, [status.required("target.name")])
    for field in PRECONDITIONS:
        if meta.get(field) and meta[field] != pod["metadata"][field]:
            why = f"Precondition failed: {field} in precondition: {meta[field]}, in object: {pod['metadata'][field]}"
            raise status.conflict("", "pods", target.name, why)
    if pod["spec"].get("nodeName") or pod["metadata"].get("deletionTimestamp"):
        why = f'pod {target.name} is already assigned to node "{pod["spec"].get("nodeName", "")}"'
        raise status.conflict("", "pods/binding", target.name, why)
    pod["spec"]["nodeName"] = node
    if meta.get("annotations"):
        pod["metadata"]["annotations"] = {**(pod["metadata"].get("annotations") or {}), **meta["annotations"]}
    scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": cluster.stamp()}
    others = [condition for condition in pod["status"].get("conditions") or [] if condition["type"] != "PodScheduled"]
    pod["status"]["conditions"] = [*others, scheduled]
    cluster.put(target.resource.storage, pod)
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
