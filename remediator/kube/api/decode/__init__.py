"""Kubernetes' JSON → our nouns, reading side: one function for each kind that we watch."""

from remediator.kube.api.decode.cases import operation, remediation_case
from remediator.kube.api.decode.nodes import node, operation_pod, paused
from remediator.kube.api.decode.policies import disruption_budget, remediation_policy, template
from remediator.kube.api.decode.tickets import ticket

__all__ = [
    "disruption_budget",
    "node",
    "operation",
    "operation_pod",
    "paused",
    "remediation_case",
    "remediation_policy",
    "template",
    "ticket",
]
