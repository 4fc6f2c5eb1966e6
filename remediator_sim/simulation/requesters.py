"""Other controllers that ask for repairs by objects of their own kinds: how each makes, ends and waits for one.

The objects are those of docs/requests.md: NodeHealthCheck and MachineHealthCheck make a NodeRepair, NVSentinel an
ExternalRemediationRequest, which it hands over once it has released the node.
"""

from collections.abc import Callable
from typing import NamedTuple

from remediator.kube.wire.client import Kind
from remediator_sim.manifests import Document, documents
from remediator_sim.plain import Object, condition_status

SOURCES = ("node-repairs", "nvsentinel")  # as the setting names them
SPACE = "default"
REPAIRS: Kind[Object] = Kind("requests.remediator.dev", "v1alpha1", "noderepairs", "NodeRepair", dict, namespaced=True)
EXTERNAL: Kind[Object] = Kind(
    "nvsentinel.dgxc.nvidia.com", "v1", "externalremediationrequests", "ExternalRemediationRequest", dict
)
MACHINES: Kind[Object] = Kind("cluster.x-k8s.io", "v1beta1", "machines", "Machine", dict, namespaced=True)
HELD_BY_NVSENTINEL = "nvsentinel.nvidia.com/external-remediation-cleanup"
TIMED_OUT = "remediation.medik8s.io/nhc-timed-out"
RELEASED, COMPLETE = "NVSentinelOwnershipReleased", "ExternalRemediationComplete"


def definition(kind: Kind[Object]) -> Document:
    """A kind of others, of which any field is taken."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": kind.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": anything}}
    called = {"kind": kind.name, "plural": kind.plural, "singular": kind.name.lower(), "listKind": f"{kind.name}List"}
    spec = {
        "group": kind.group,
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "names": called,
        "versions": [version | {"subresources": {"status": {}}}],
    }
    head = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    return head | {"metadata": {"name": f"{kind.plural}.{kind.group}"}, "spec": spec}


def definitions() -> list[Document]:
    """The kinds that a cluster with these controllers has."""
    return [*documents(("deploy/requests/noderepairs.yaml",)), definition(EXTERNAL), definition(MACHINES)]


class Requester(NamedTuple):
    """One such controller: the kind of its object, how it is made for a node, and which condition says its end."""

    kind: Kind[Object]
    make: Callable[[str, str, str], Object]
    end: str


def _repair(name: str, node: str, operation: str) -> Object:
    """That of NodeHealthCheck, which generates names where it uses several templates of one kind."""
    owner = {"apiVersion": "remediation.medik8s.io/v1alpha1", "kind": "NodeHealthCheck", "name": "workers", "uid": "1"}
    meta = {"name": name, "ownerReferences": [owner], "annotations": {"remediation.medik8s.io/node-name": node}}
    return {"metadata": meta, "spec": {"operation": operation}}


def _of_machine(name: str, node: str, operation: str) -> Object:
    """That of MachineHealthCheck, named after the machine, which alone knows its node."""
    owner = {"apiVersion": MACHINES.api_version, "kind": MACHINES.name, "name": name, "uid": "2"}
    return {"metadata": {"name": name, "ownerReferences": [owner]}, "spec": {"operation": operation}}


def _external(name: str, node: str, operation: str) -> Object:
    event = {"nodeName": node, "checkName": "SysLogsXIDError", "recommendedAction": "CUSTOM"}
    event["customRecommendedAction"] = operation.upper().replace("-", "_")
    return {"metadata": {"name": name, "finalizers": [HELD_BY_NVSENTINEL]}, "spec": {"healthEvent": event}}


REQUESTERS = {
    "NodeHealthCheck": Requester(REPAIRS, _repair, "Succeeded"),
    "MachineHealthCheck": Requester(REPAIRS, _of_machine, "Succeeded"),
    "NVSentinel": Requester(EXTERNAL, _external, COMPLETE),
}


def answered(requester: Requester, request: Object) -> bool:
    """Whether an object says how its repair has ended."""
    return condition_status(request, requester.end) in ("True", "False")
