"""What the API promises, read from plain JSON objects.

Nothing here is shared with the code that is judged: its words and its arithmetic are written down a second time.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from hashlib import sha256
from typing import Any

Obj = dict[str, Any]

NODES, PODS, NAMESPACES = "nodes", "pods", "namespaces"
CASES = "noderemediations.remediator.dev"
OPERATIONS = "nodeoperations.remediator.dev"
BUDGETS = "nodedisruptionbudgets.remediator.dev"
POLICIES = "remediationpolicies.remediator.dev"
TEMPLATES = "nodeoperationtemplates.remediator.dev"
TICKETS = "tickets.remediator.dev"
INVENTORIES = "nodeinventories.remediator.dev"  # of interest where idle nodes are tested
KINDS = (NODES, PODS, NAMESPACES, CASES, OPERATIONS, BUDGETS, POLICIES, TEMPLATES, TICKETS)
# Kinds of other controllers that ask for repairs, which only some clusters have.
NODE_REPAIRS = "noderepairs.requests.remediator.dev"
NVSENTINEL_REQUESTS = "externalremediationrequests.nvsentinel.dgxc.nvidia.com"
REQUESTS = (NODE_REPAIRS, NVSENTINEL_REQUESTS)
LEASES, LEASE_SPACE = "leases.coordination.k8s.io", "medik8s-leases"  # of interest where nodes have Leases of medik8s
OUR_HOLDER = "remediator/"  # then comes the name of the case
TAKEN_OUT = ("TakenOut", "TakeOutOverdue")  # reasons of cases whose user has the node
TIMED_OUT = "remediation.medik8s.io/nhc-timed-out"

SYSTEM, OURS = "remediator-system", "remediator-operations"
CASE_TAINT, DEGRADED_TAINT = "remediator.dev/case", "remediator.dev/degraded"
CORDON_REASON = "nodeset.slinky.slurm.net/node-cordon-reason"
SCALE_DOWN_DISABLED_BY = "remediator.dev/scale-down-disabled-by"
CORDONED_BY, FINALIZER = "remediator.dev/cordoned-by", "remediator.dev/release"
BREAKER_CLOSED_AT = "remediator.dev/breaker-closed-at"
PLACE = "example.com/api-pods"  # nodes that may take Pods with rights in the API, where the settings choose by it
ADMITTED = "remediator.dev/admitted"  # TAINT=MACHINE of each gate of new nodes
PAUSED, EXCLUDE = "remediator.dev/paused", "remediator.dev/exclude"
TEMPLATE, CASE_UID, OPERATION_UID = (f"remediator.dev/{word}" for word in ("operation", "case-uid", "operation-uid"))
IDLE_TEST = "remediator.dev/idle-test"  # label of a Pod that tests an idle node; annotation: POLICY/NODE/BOOT
NEIGHBOUR_OF = "remediator.dev/neighbour-of"  # label of one that is only the other end of what an operation measures
MIRROR = "kubernetes.io/config.mirror"
ROLES = frozenset(f"node-role.kubernetes.io/{role}" for role in ("control-plane", "master", "etcd", "controlplane"))
COMPONENTS = frozenset(
    ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "cloud-controller-manager")
)
# Signs of other systems that work on a node, see safety.md: keys of taints, labels with the values that count, and
# types of Conditions.
_AWS = ("spot-itn", "scheduled-maintenance", "asg-lifecycle-termination", "rebalance-recommendation")
SIGN_TAINTS = frozenset(
    (
        "ToBeDeletedByClusterAutoscaler",
        "karpenter.sh/disrupted",
        "karpenter.sh/disruption",
        "medik8s.io/drain",
        "remediation.medik8s.io/fence-agents-remediation",
        "remediation.medik8s.io/self-node-remediation",
        "nodeops.k8s.preferred.jp/operating",
        "remediator.aks.microsoft.com/unschedulable",
        "cloud.google.com/impending-node-termination",
        *(f"aws-node-termination-handler/{word}" for word in _AWS),
    )
)
_UPGRADES = ("cordon", "wait-for-jobs", "pod-deletion", "drain", "node-maintenance", "post-maintenance")
_UPGRADING = frozenset(f"{word}-required" for word in (*_UPGRADES, "pod-restart", "validation", "uncordon"))
SIGN_LABELS = {
    "nvidia.com/gpu-driver-upgrade-state": _UPGRADING,
    "nvidia.com/ofed-driver-upgrade-state": _UPGRADING,
    "cloud.google.com/active-node-maintenance": frozenset({"ONGOING"}),
}
SIGN_CONDITIONS = frozenset({"DrainInProgress", "MaintenanceInProgress"})
LOOKS, DRAINS = "collect-diagnostics", "drain"
# Fields of a template's drain: what may be lost, and from when annotations that keep a Pod count no more.
DECLARES = ("deleteBarePods", "deleteEmptyDirData", "overrideAnnotationsAfter")
STALE, AHEAD, FAR = timedelta(minutes=15), timedelta(minutes=5), timedelta(days=1)
# Conditions that are new in this release, and the annotation by which a user lets a policy act on them at once.
NEW = frozenset(
    {
        *("ChassisFault", "FilesystemDamage", "GpuMemoryWorn", "IdleTestFailed", "KernelFault", "NetworkPathSlow"),
        *("NodeDrift", "NvlinkDomainFault", "NvmlHung", "PodNetworkUnavailable", "PodsStuckTerminating"),
        *("RebootLoop", "RemoteMountFault", "SystemOom", "TaskHung"),
    }
)
TRUSTED = "remediator.dev/trusted-criteria"
OF_TESTS = frozenset({"IdleTestFailed"})  # which the controller writes of what it has tried, whatever detectors say
OF_KUBELETS = frozenset({"Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"})


def is_try(attempt: Obj) -> bool:
    """Whether an attempt is meant to cure: it neither completes another one nor only proves health."""
    return not (attempt.get("follows") or attempt.get("probe"))


def asked_for(case: Obj) -> Obj:
    """What of a user's operation a case carries out; an empty map where a policy has opened it."""
    asked: Obj = part(case, "spec", "manual")
    return asked


def gate(case: Obj | None) -> Obj:
    """At which gate its node, which is new, waits for it; an empty map for any other case."""
    at: Obj = part(case, "spec", "newNode")
    return at


def machine(node: Obj | None) -> str:
    """One word for its board with what is installed on it, as `remediator.dev/admitted` says it."""
    info = part(node, "status", "nodeInfo")
    return sha256(f"{info.get('systemUUID', '')}\0{info.get('machineID', '')}".encode()).hexdigest()[:16]


def admitted(node: Obj | None) -> dict[str, str]:
    """The machine that came through each gate last, by the taint of the gate."""
    entries = part(node, "metadata", "annotations").get(ADMITTED, "").split(",")
    return dict(entry.split("=", 1) for entry in entries if "=" in entry)


def of_new_node(policy: Obj) -> Obj:
    """What a policy says of the case of a new node: nothing of what spares work, for none is there."""
    spares = ("requireSpareGPUs", "maxBlastRadius", "windows", "approval", "confirm", "urgency", "correlation")
    spec = {word: value for word, value in policy["spec"].items() if word not in spares}
    spec["verify"] = part(policy, "spec", "verify") | {"probe": part(policy, "spec", "admit").get("probe")}
    return policy | {"spec": spec}


def lacks(node: Obj | None, case: Obj) -> list[str]:
    """The resources of which the node shows less than it was known to have when the case was opened; and "devices"
    where it counts fewer than are kept of it, and has not done so for a day before the case.
    """
    before, now = part(case, "spec", "trigger", "devices"), part(node, "status", "capacity")
    resources = {key: most for key, most in before.items() if not key.endswith(".count")}
    few = [key for key, most in resources.items() if int(now.get(key, 0)) < most]
    counted = condition(node, "DevicesMissing")
    if counted is None or counted["status"] != "True":
        return few
    new = moment(case["metadata"]["creationTimestamp"]) - moment(counted["lastTransitionTime"]) < timedelta(hours=24)
    return [*few, "devices"] if new else few


def name(obj: Obj) -> str:
    """metadata.name."""
    return str(obj["metadata"]["name"])


def uid(obj: Obj) -> str:
    """metadata.uid."""
    return str(obj["metadata"].get("uid", ""))


def part(obj: Obj | None, *path: str) -> Any:
    """What stands at this path, an empty map where nothing does."""
    for key in path:
        if not obj:
            return {}
        obj = obj.get(key)
    return {} if obj is None else obj


@lru_cache(4096)
def moment(text: str) -> datetime:
    """A time as the API writes it; an absent one is long ago."""
    return datetime.fromisoformat(text) if text else datetime(1970, 1, 1, tzinfo=UTC)


@lru_cache(256)
def duration(text: str) -> timedelta:
    """A duration such as 1h30m."""
    units = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
    parts = re.findall(r"(\d+)(ms|s|m|h|d)", text)
    return timedelta(seconds=sum(int(count) * units[unit] for count, unit in parts))


def selects(selector: Mapping[str, Any], node: Obj) -> bool:
    """Whether a label selector matches the node; an empty one matches all."""
    labels = part(node, "metadata", "labels")
    equal = all(labels.get(key) == value for key, value in (selector.get("matchLabels") or {}).items())
    return equal and all(_meets(row, labels.get(row["key"])) for row in selector.get("matchExpressions") or ())


def _meets(row: Mapping[str, Any], value: str | None) -> bool:
    """Kubernetes' four operators; NotIn holds where the label is absent."""
    listed = value is not None and value in (row.get("values") or ())
    answers = {"In": listed, "NotIn": not listed, "Exists": value is not None, "DoesNotExist": value is None}
    return answers[row["operator"]]


# --- nodes -----------------------------------------------------------------------------------------------------------


def taints(node: Obj | None) -> list[Obj]:
    """The node's taints."""
    return list(part(node, "spec", "taints") or ())


def held_by(node: Obj | None) -> str:
    """The uid of the case whose taint the node carries, "" for none."""
    return next((str(taint.get("value", "")) for taint in taints(node) if taint["key"] == CASE_TAINT), "")


def condition(node: Obj | None, kind: str) -> Obj | None:
    """One Condition of the node."""
    for entry in part(node, "status", "conditions") or ():
        if entry["type"] == kind:
            found: Obj = entry
            return found
    return None


def says(node: Obj | None, kind: str) -> str:
    """The status of one Condition, "" where there is none."""
    return str((condition(node, kind) or {}).get("status", ""))


def down(node: Obj) -> bool:
    """Whether the node takes no work, whoever is to blame."""
    return says(node, "Ready") != "True" or bool(part(node, "spec").get("unschedulable"))


def of_control_plane(node: Obj | None) -> bool:
    """Whether a label says that the node is part of the control plane."""
    return not ROLES.isdisjoint(part(node, "metadata", "labels"))


def maintained(node: Obj | None) -> bool:
    """Whether a sign says that another system works on the node."""
    labels = part(node, "metadata", "labels")
    tainted = any(taint["key"] in SIGN_TAINTS for taint in taints(node))
    shown = part(node, "status", "conditions") or ()
    says = any(entry["type"] in SIGN_CONDITIONS and entry.get("status") == "True" for entry in shown)
    return tainted or says or any(labels.get(key) in values for key, values in SIGN_LABELS.items())


def leased(lease: str) -> str:
    """The node of a Lease of medik8s by its key, "" for any other Lease."""
    space, _, name = lease.partition("/")
    return name.removeprefix("node-") if space == LEASE_SPACE and name.startswith("node-") else ""


def kept_out(node: Obj) -> bool:
    """Whether a rung keeps the node out of service for a person."""
    return "remediator.dev/kept-cordoned" in part(node, "metadata", "annotations")


def kept_down(node: Obj) -> bool:
    """Whether a rung has cordoned the node for a person, and nobody has uncordoned it since."""
    ours = CORDONED_BY in part(node, "metadata", "annotations")
    return kept_out(node) and bool(part(node, "spec").get("unschedulable")) and not ours


# --- our kinds -------------------------------------------------------------------------------------------------------


def told(case: Obj | None) -> bool:
    """Whether a person was told that something holds the case for long."""
    return any(block.get("reported") for block in part(case, "status").get("blockedBy") or ())


CHOSEN = frozenset(
    ("DryRun", "PolicyPaused", "Paused", "HeldByUser", "OptedOut", "CordonedByUser", "Cooldown", "OutsideWindow")
)
IDLE = "WaitingForIdle"  # told after a day only


def held(case: Obj | None) -> bool:
    """Whether the case says that it is held, and by nothing that a user has chosen."""
    reasons = {block["reason"] for block in part(case, "status").get("blockedBy") or ()}
    return bool(reasons - {IDLE}) and reasons.isdisjoint(CHOSEN)


def queued(case: Obj | None) -> bool:
    """Whether a case that has taken no node says that it waits for budgets alone."""
    status = part(case, "status")
    reasons = {block["reason"] for block in status.get("blockedBy") or ()}
    return reasons == {"BudgetSpent"} and not status.get("startedAt") and not ended(case)


def goes_on(case: Obj | None) -> bool:
    """Whether the case holds its node, nothing holds it, and no person has it."""
    status = part(case, "status")
    waits = ended(case) or phase(case) == "Escalated" or bool(status.get("blockedBy"))
    return bool(status.get("startedAt")) and not waits


def gates(case: Obj | None) -> list[str]:
    """Until when a case says that it waits for a window, or for its node to be idle: "" where it names no time."""
    blocks = part(case, "status").get("blockedBy") or ()
    return [block.get("until") or "" for block in blocks if block["reason"] in (IDLE, "OutsideWindow")]


def gated(case: Obj | None, at: datetime) -> bool:
    """Whether a case says that it still waits for one of these, and until when, if it is known, is not over."""
    return any(not until or moment(until) > at for until in gates(case))


def unapproved(case: Obj | None, policy: Obj | None) -> bool:
    """Whether a person has to approve a case and has not."""
    return part(policy, "spec").get("approval") == "Required" and part(case, "spec").get("approved") is not True


def attempts(case: Obj | None) -> list[Obj]:
    """The attempts of a case, oldest first."""
    return list(part(case, "status", "attempts") or ())


def kept_until(case: Obj | None) -> str:
    """Until when a user keeps the node of a case; "" where nobody does."""
    return str(part(case, "spec", "keepOut").get("until") or "")


def is_out(case: Obj | None) -> bool:
    """Whether the case says that its user has the node."""
    return phase(case) == "Escalated" and not ended(case) and part(case, "status").get("reason") in TAKEN_OUT


def was_out(case: Obj | None) -> bool:
    """Whether its story tells that its user has, or had, the node: their time may also be over before it takes one."""
    reasons = {entry.get("reason") for entry in part(case, "status").get("timeline") or ()}
    return not reasons.isdisjoint(TAKEN_OUT) and bool(part(case, "status").get("startedAt"))


def deleted(obj: Obj | None) -> bool:
    """Whether its deletion was asked for."""
    return bool(part(obj, "metadata").get("deletionTimestamp"))


def phase(obj: Obj | None) -> str:
    """status.phase."""
    return str(part(obj, "status").get("phase", ""))


def pod_ended(pod: Obj | None) -> bool:
    """Whether all containers of a Pod have ended for good."""
    return phase(pod) in ("Succeeded", "Failed")


def ended(case: Obj | None) -> bool:
    """Whether the case has said that it is over."""
    return bool(part(case, "status").get("endedAt"))


def finished(operation: Obj | None) -> bool:
    """Whether the operation has said that it is over."""
    return bool(part(operation, "status").get("finishedAt"))


def boot(node: Obj | None) -> str:
    """The boot of which a node tells."""
    return str(part(node, "status", "nodeInfo").get("bootID", ""))


def clock(at: datetime) -> str:
    """A time of the day for a person."""
    return at.strftime("%H:%M:%S")
