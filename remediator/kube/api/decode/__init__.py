"""Kubernetes' JSON → our nouns, reading side: one function for each kind that we watch."""

from remediator.kube.api.decode.cases import operation, remediation_case, whole_case
from remediator.kube.api.decode.gpu_ledgers import gpu_ledger
from remediator.kube.api.decode.idle_policies import idle_policy
from remediator.kube.api.decode.node_inventories import node_inventory
from remediator.kube.api.decode.nodes import leaving, node, operation_pod, paused, user_pod
from remediator.kube.api.decode.policies import disruption_budget, remediation_policy, template, window
from remediator.kube.api.decode.ticket_routes import ticket_route
from remediator.kube.api.decode.tickets import ticket

__all__ = [
    "disruption_budget",
    "gpu_ledger",
    "idle_policy",
    "leaving",
    "node",
    "node_inventory",
    "operation",
    "operation_pod",
    "paused",
    "remediation_case",
    "remediation_policy",
    "template",
    "ticket",
    "ticket_route",
    "user_pod",
    "whole_case",
    "window",
]
