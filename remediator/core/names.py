"""Names and marks that we give to objects. They are deterministic: creating an object twice gives "already exists"."""

import hashlib
from dataclasses import dataclass

GROUP = "remediator.dev"
CASE_TAINT = f"{GROUP}/case"
DEGRADED_TAINT = f"{GROUP}/degraded"
HANDLED = f"{GROUP}/handled"  # the onsets that have had their case, by the name that a case for each has
CORDONED_BY = f"{GROUP}/cordoned-by"
KEPT_CORDONED = f"{GROUP}/kept-cordoned"  # the case whose operation cordon took the node out for a person
SCALE_DOWN_DISABLED = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
SCALE_DOWN_DISABLED_BY = f"{GROUP}/scale-down-disabled-by"
SCHEDULABLE_AGAIN_AT = f"{GROUP}/schedulable-again-at"  # when a node that was refused to Pods last became less so
WITHDRAWN = f"{GROUP}/claim-withdrawn"  # which claim was taken back before its mark, and the node's version then
EXCLUDE = f"{GROUP}/exclude"
PAUSED = f"{GROUP}/paused"
BREAKER_CLOSED_AT = f"{GROUP}/breaker-closed-at"  # of a policy: a user has looked at what was in vain
ABSENCES = f"{GROUP}/absences"  # of the Lease: when nobody could act
DELETED_STARTS = f"{GROUP}/deleted-starts"  # of the Lease: what cases had started that somebody has deleted since
CASE_FINALIZER = f"{GROUP}/release"
POD_FINALIZER = f"{GROUP}/outcome"
OPERATION_LABEL = f"{GROUP}/operation"
CASE_UID_LABEL = f"{GROUP}/case-uid"
OPERATION_UID_LABEL = f"{GROUP}/operation-uid"
MIRROR = "kubernetes.io/config.mirror"  # annotation of what a kubelet shows of a file of its own node

SYSTEM_NAMESPACE = "remediator-system"  # of the shipped manifests; the settings say which it is
OPERATIONS_NAMESPACE = "remediator-operations"
SERVING_SECRET = "remediator-serving"  # of the controller: its authority and what extender and webhook serve with
CONTROLLER_LABELS = "app.kubernetes.io/name=remediator,app.kubernetes.io/component=controller"
# What kubeadm and RKE2 label the static Pods with that the control plane runs as, and where those are. The tier alone
# says too little: RKE2 gives it to kube-proxy on every worker, too.
CONTROL_PLANE_NAMESPACE = "kube-system"
CONTROL_PLANE_LABELS = (
    "tier=control-plane,"
    "component in (etcd,kube-apiserver,kube-controller-manager,kube-scheduler,cloud-controller-manager)"
)
DRAIN_TEMPLATE = "drain"
DIAGNOSTICS_TEMPLATE = "collect-diagnostics"
DEFAULT_BUDGET = "default"


@dataclass(frozen=True, slots=True)
class Namespaces:
    """The namespace of the controller, which holds its Leases and the pause annotation, and that of operation Pods."""

    system: str = SYSTEM_NAMESPACE
    operations: str = OPERATIONS_NAMESPACE


def name(node: str, what: str, *identity: str) -> str:
    """`<node, at most 30>-<what, at most 20>-<10 hex>`; the hash over `identity` is what makes it one thing's name.

    >>> name("gpu-17", "gpu-lost", "uid", "2026-01-01T00:00:00Z")
    'gpu-17-gpu-lost-330fe2cdc7'
    """
    digest = hashlib.sha256("\0".join(identity).encode()).hexdigest()[:10]
    return f"{_cut(node, 30)}-{_cut(what, 20)}-{digest}"


def _cut(text: str, most: int) -> str:
    """A piece of a DNS name: cut, and never ending in a character that may not stand before a dash."""
    return text[:most].strip("-.")
