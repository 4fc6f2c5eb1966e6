"""Other systems that empty, upgrade or remove a node, each known by the sign that it leaves on the node. Pure.

Two that drain one node undo what the other does: while a sign is there, nothing of ours starts on the node.
"""

from enum import StrEnum
from typing import NamedTuple

from remediator.core.node import Node, Status


class SignOf(StrEnum):
    """Where a sign is."""

    TAINT = "taint"
    LABEL = "label"
    CONDITION = "Condition"


class MaintenanceSign(NamedTuple):
    """One sign. `values`: those of a label that count; of a taint any does, of a Condition the status True."""

    who: str
    does: str
    where: SignOf
    key: str
    values: frozenset[str] = frozenset()


# The states of NVIDIA's upgrade library in which it works on the node. In upgrade-required it waits for its turn.
UPGRADING = frozenset(
    f"{step}-required"
    for step in (
        "cordon",
        "wait-for-jobs",
        "pod-deletion",
        "drain",
        "node-maintenance",
        "post-maintenance",
        "pod-restart",
        "validation",
        "uncordon",
    )
)
DRIVER_UPGRADE = "nvidia.com/gpu-driver-upgrade-state"  # how far the GPU operator is with a node
ONGOING = frozenset({"ONGOING"})
_AWS = "aws-node-termination-handler"
SIGNS = (
    MaintenanceSign("cluster-autoscaler", "removes", SignOf.TAINT, "ToBeDeletedByClusterAutoscaler"),
    MaintenanceSign("Karpenter", "removes", SignOf.TAINT, "karpenter.sh/disrupted"),
    MaintenanceSign("Karpenter", "removes", SignOf.TAINT, "karpenter.sh/disruption"),
    MaintenanceSign("GPU Operator", "upgrades the driver of", SignOf.LABEL, DRIVER_UPGRADE, UPGRADING),
    MaintenanceSign(
        "Network Operator", "upgrades the driver of", SignOf.LABEL, "nvidia.com/ofed-driver-upgrade-state", UPGRADING
    ),
    MaintenanceSign("medik8s NodeMaintenance", "drains", SignOf.TAINT, "medik8s.io/drain"),
    MaintenanceSign("medik8s", "repairs", SignOf.TAINT, "remediation.medik8s.io/fence-agents-remediation"),
    MaintenanceSign("medik8s", "repairs", SignOf.TAINT, "remediation.medik8s.io/self-node-remediation"),
    MaintenanceSign("node-operation-controller", "repairs", SignOf.TAINT, "nodeops.k8s.preferred.jp/operating"),
    MaintenanceSign("AKS", "repairs", SignOf.TAINT, "remediator.aks.microsoft.com/unschedulable"),
    MaintenanceSign("GKE", "stops", SignOf.TAINT, "cloud.google.com/impending-node-termination"),
    MaintenanceSign("GKE", "maintains", SignOf.LABEL, "cloud.google.com/active-node-maintenance", ONGOING),
    MaintenanceSign("AWS Node Termination Handler", "empties", SignOf.TAINT, f"{_AWS}/spot-itn"),
    MaintenanceSign("AWS Node Termination Handler", "empties", SignOf.TAINT, f"{_AWS}/scheduled-maintenance"),
    MaintenanceSign("AWS Node Termination Handler", "empties", SignOf.TAINT, f"{_AWS}/asg-lifecycle-termination"),
    MaintenanceSign("AWS Node Termination Handler", "empties", SignOf.TAINT, f"{_AWS}/rebalance-recommendation"),
    MaintenanceSign("another system", "drains", SignOf.CONDITION, "DrainInProgress"),
    MaintenanceSign("another system", "maintains", SignOf.CONDITION, "MaintenanceInProgress"),
)
_OF_TAINT, _OF_LABEL, _OF_CONDITION = (
    {sign.key: sign for sign in SIGNS if sign.where is where}
    for where in (SignOf.TAINT, SignOf.LABEL, SignOf.CONDITION)
)


def maintained(node: Node) -> str:
    """Who else works on the node, and by which sign that is known; "" where nobody does.

    >>> maintained(Node("gpu-1", "u", {"cloud.google.com/active-node-maintenance": "ONGOING"}, {}))
    'GKE maintains gpu-1 (label cloud.google.com/active-node-maintenance)'
    """
    signs = _signs(node)
    if not signs:  # as nearly always
        return ""
    return "; ".join(f"{sign.who} {sign.does} {node.name} ({sign.where} {sign.key})" for sign in signs)


def _signs(node: Node) -> list[MaintenanceSign]:
    signs = [_OF_TAINT[taint.key] for taint in node.taints if taint.key in _OF_TAINT]
    signs += [sign for key, sign in _OF_LABEL.items() if node.labels.get(key) in sign.values]
    conditions = [(sign, node.conditions.get(key)) for key, sign in _OF_CONDITION.items()]
    return signs + [sign for sign, condition in conditions if condition is not None and condition.status is Status.TRUE]
