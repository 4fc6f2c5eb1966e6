"""Names and marks that we give to objects. They are deterministic: creating an object twice gives "already exists"."""

import hashlib
from dataclasses import dataclass
from functools import lru_cache

GROUP = "remediator.dev"
CASE_TAINT = f"{GROUP}/case"
DEGRADED_TAINT = f"{GROUP}/degraded"
HANDLED = f"{GROUP}/handled"  # the onsets that have had their case, by the name that a case for each has
CORDONED_BY = f"{GROUP}/cordoned-by"
CORDON_REASON = "nodeset.slinky.slurm.net/node-cordon-reason"  # Slinky tells Slurm why the node is drained
KEPT_CORDONED = f"{GROUP}/kept-cordoned"  # the case whose operation cordon took the node out for a person
IN_SERVICE = f"{GROUP}/in-service"  # the case whose operation isolated a GPU alone and took the cordon off
SCALE_DOWN_DISABLED = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
SCALE_DOWN_DISABLED_BY = f"{GROUP}/scale-down-disabled-by"
SCHEDULABLE_AGAIN_AT = f"{GROUP}/schedulable-again-at"  # when a node that was refused to Pods last became less so
ADMITTED = f"{GROUP}/admitted"  # by which gates of new nodes the machine has come, as TAINT=MACHINE, comma-separated
DRAIN_REQUESTED = f"{GROUP}/drain-requested"  # since when another system is asked to drain the node
WITHDRAWN = f"{GROUP}/claim-withdrawn"  # which claim was taken back before its mark, and the node's version then
# A taint (key, value, effect): the node is off, and its volumes may go elsewhere.
OUT_OF_SERVICE = ("node.kubernetes.io/out-of-service", "nodeshutdown", "NoExecute")
OUT_OF_SERVICE_BOOT = f"{GROUP}/out-of-service-boot"  # that taint is ours: the boot whose power an operation took away
EXCLUDE = f"{GROUP}/exclude"
PAUSED = f"{GROUP}/paused"
LEAVING = "uninstall"  # value of it: nodes are given back before Remediator is taken away
# Annotations of a Pod: what its GPUs must be, and should be; and both in the form of a node affinity.
GPU, GPU_PREFERRED, GPU_AFFINITY = f"{GROUP}/gpu", f"{GROUP}/gpu-preferred", f"{GROUP}/gpu-affinity"
# Annotation of a Pod, and its one value: only nodes whose detectors have shown lately that they are well.
REQUIRE_HEALTH, PROVEN = f"{GROUP}/require-health", "proven"
# Labels of nodes by which Pods of a gang keep together, unless set otherwise: from the narrowest domain to the widest.
DOMAINS = ("nvidia.com/gpu.clique", "topology.kubernetes.io/rack", "topology.kubernetes.io/zone")
# Labels of nodes by which those are one group that should run with the same versions, unless set otherwise.
GROUP_LABELS = (
    "nvidia.com/gpu.product",
    "node.kubernetes.io/instance-type",
    "karpenter.sh/nodepool",
    "eks.amazonaws.com/nodegroup",
    "cloud.google.com/gke-nodepool",
    "kubernetes.azure.com/agentpool",
)
GANG_SIZE = f"{GROUP}/gang-size"  # annotation of a Pod: how many Pods its gang has
GPU_CARDS = f"{GROUP}/gpu-cards"  # annotation of a Pod: on how many GPUs its memory lies, in equal parts
GPU_MEMORY = f"{GROUP}/gpu-memory"  # annotation of a node: the memory of each of its GPUs, by index
BIND_FENCE = f"{GROUP}/bind-fence"  # annotation of a Pod: the reservation that was taken back; no bind of before counts
GPU_PRESENT = f"{GROUP}/gpu.present"  # label of a node that should have GPUs: "true", by which policies select it
GPU_MPS = f"{GROUP}/gpu.mps"  # label of a node: whether its GPUs are shared by MPS, as its administrator says
ASKS_MPS = f"{GROUP}/gpu-mps"  # annotation of a Pod: "true" where it needs a node that offers MPS
GPU_NVLINK = f"{GROUP}/gpu.nvlink"  # label of a node: whether NVLink joins its GPUs, as its administrator says
GPU_ECC = f"{GROUP}/gpu.ecc"  # label of a node: whether ECC is on, as its administrator says
BREAKER_CLOSED_AT = f"{GROUP}/breaker-closed-at"  # of a policy: a user has looked at what was in vain
TRUSTED_CRITERIA = f"{GROUP}/trusted-criteria"  # of a policy: new criteria on which it may act, with commas between
LEASE = "remediator"  # of who leads
SETTINGS = f"{GROUP}/settings"  # of the Lease: how the leader was started, as far as a command of a user needs it
ABSENCES = f"{GROUP}/absences"  # of the Lease: when nobody could act
DELETED_STARTS = f"{GROUP}/deleted-starts"  # of the Lease: what cases had started that somebody has deleted since
# Annotations of a case: until when a comment or a user holds it; which commands of comments it has obeyed, newest last.
HOLD_UNTIL, OBEYED = f"{GROUP}/hold-until", f"{GROUP}/obeyed-comments"
HOLD_REASON = f"{GROUP}/hold-reason"  # annotation of a case: why a user holds it, in their words
CARD = f"{GROUP}/card"  # annotation of a Ticket: the number of its issue, and where on the board we put it last
HINT = f"{GROUP}/comment-hint"  # annotation of a Ticket: the id of the newest comment that GitHub has told us of
COMMENTER = "github:"  # before the login of whoever decides about a case by a comment
CASE_FINALIZER = f"{GROUP}/release"
POD_FINALIZER = f"{GROUP}/outcome"
OPERATION_LABEL = f"{GROUP}/operation"
BUNDLE_SECRET = f"{GROUP}/bundle-url"  # the type of the Secrets that the controller makes
CASE_UID_LABEL = f"{GROUP}/case-uid"
OPERATION_UID_LABEL = f"{GROUP}/operation-uid"
# Label of an operation, and of its case, that an object of another controller asks for: of which kind, as the settings
# name it. Only the controller sets it.
ASKED_BY_LABEL = f"{GROUP}/asked-by"
# Of a Pod that is the order of a node's watchdog: which node, as `watchdog` has it; and the scheduler that it names.
# There is none of that name: such a Pod is never placed.
WATCHDOG_LABEL, WATCHDOG_SCHEDULER = f"{GROUP}/watchdog", "remediator-watchdog"
# Annotations that kube-janitor's users know: how long an object may live, and until when.
JANITOR_TTL, JANITOR_EXPIRES = "janitor/ttl", "janitor/expires"
# For which deadline its owner was told last, and when.
JANITOR_NOTIFIED, JANITOR_NOTIFIED_AT = "janitor/notified", "janitor/notified-at"
# Whose GPUs are idle: by which IdlePolicy its owner was told, when, and until when it may stay; and how many replicas
# it had before it was scaled to 0.
IDLE_POLICY, IDLE_NOTIFIED_AT = f"{GROUP}/idle-policy", f"{GROUP}/idle-notified-at"
IDLE_UNTIL, IDLE_REPLICAS = f"{GROUP}/idle-until", f"{GROUP}/idle-replicas"
KEEP_UNTIL = f"{GROUP}/keep-until"  # of an object or a namespace: until when the janitor takes nothing of it
KEEP_SET_BY = f"{GROUP}/keep-set-by"  # beside it: who has asked for this time by a comment
ABOUT = f"{GROUP}/about"  # label of a Ticket about the work of one owner, so that the janitor finds these alone
MIRROR = "kubernetes.io/config.mirror"  # annotation of what a kubelet shows of a file of its own node

SYSTEM_NAMESPACE = "remediator-system"  # of the shipped manifests; the settings say which it is
OPERATIONS_NAMESPACE = "remediator-operations"
SERVING_SECRET = "remediator-serving"  # of the controller: its authority and what extender and webhook serve with
# The configuration, and in it the webhook, by which the API server asks us about the evictions of drains.
EVICTIONS, EVICTION_WEBHOOK = "remediator-evictions", f"evictions.{GROUP}"
UNJUDGED = "nobody judged this eviction: "  # how the message of a drain begins where the webhook gave no answer
CONTROLLER_LABELS = "app.kubernetes.io/name=remediator,app.kubernetes.io/component=controller"
# What kubeadm and RKE2 label the static Pods with that the control plane runs as, and where those are. The tier alone
# says too little: RKE2 gives it to kube-proxy on every worker, too.
CONTROL_PLANE_NAMESPACE = "kube-system"
CONTROL_PLANE_LABELS = (
    "tier=control-plane,"
    "component in (etcd,kube-apiserver,kube-controller-manager,kube-scheduler,cloud-controller-manager)"
)
# Of a Pod that tests an idle node: the label, "true"; the annotation, POLICY/NODE; and what makes it give way.
IDLE_TEST, IDLE_TEST_PRIORITY = f"{GROUP}/idle-test", "remediator-idle-test"
# Label of one that only is the other end of a measurement: the uid of the operation that measures.
NEIGHBOUR_OF = f"{GROUP}/neighbour-of"
DRAIN_TEMPLATE = "drain"
DIAGNOSTICS_TEMPLATE = "collect-diagnostics"
ISOLATE_TEMPLATE = "isolate-gpu"
DEFAULT_BUDGET = "default"
SHIPPED = (
    f"{GROUP}/shipped"  # annotation of a policy, budget or template: its spec as it was shipped when it was written
)
DEFAULTS_CONFIG = "remediator-defaults"  # the ConfigMap that says what was made of them, and what was left alone


@dataclass(frozen=True, slots=True)
class Namespaces:
    """The namespace of the controller, which holds its Leases and the pause annotation, and that of operation Pods."""

    system: str = SYSTEM_NAMESPACE
    operations: str = OPERATIONS_NAMESPACE


@lru_cache(4096)
def name(node: str, what: str, *identity: str) -> str:
    """`<node, at most 30>-<what, at most 20>-<10 hex>`; the hash over `identity` is what makes it one thing's name.

    >>> name("gpu-17", "gpu-lost", "uid", "2026-01-01T00:00:00Z")
    'gpu-17-gpu-lost-330fe2cdc7'
    """
    digest = hashlib.sha256("\0".join(identity).encode()).hexdigest()[:10]
    return f"{_cut(node, 30)}-{_cut(what, 20)}-{digest}"


def machine(system_uuid: str, machine_id: str) -> str:
    """One word for a board with what is installed on it: another board, or another installation, has another one.

    >>> machine("4c4c4544-0042", "9f3a")
    '159e2de804b4ebb3'
    """
    return hashlib.sha256(f"{system_uuid}\0{machine_id}".encode()).hexdigest()[:16]


def watchdog(node: str) -> str:
    """The value of the label by which the watchdog of a node finds its orders: a node's name may be too long for one.

    >>> watchdog("gpu-17")
    'efce7fdb8a64e0eff1d02affd7fbecfb'
    """
    return hashlib.sha256(node.encode()).hexdigest()[:32]


def _cut(text: str, most: int) -> str:
    """A piece of a DNS name: cut, and never ending in a character that may not stand before a dash."""
    return text[:most].strip("-.")
