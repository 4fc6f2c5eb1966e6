"""Our kinds as types: what the API server stores, the texts of `kubectl explain`, and the validation rules.

Fields at their default are left out of the JSON. Where a merge patch must clear them, `patch.whole` writes null.
"""

from typing import Any

from remediator.kube.api.blast_radius import BlastRadius, JobAtStake, MaxBlastRadius
from remediator.kube.api.budget import (
    Claim,
    GroupStatus,
    NodeDisruptionBudget,
    NodeDisruptionBudgetSpec,
    NodeDisruptionBudgetStatus,
)
from remediator.kube.api.budget_breaker import BudgetBreaker, FailureLimit
from remediator.kube.api.common import (
    API_VERSION,
    GROUP,
    VERSION,
    Condition,
    LabelSelector,
    ObjectMeta,
    OwnerReference,
    Requirement,
)
from remediator.kube.api.confirm import Confirm
from remediator.kube.api.drain import Drain, DrainRule, PodSelector
from remediator.kube.api.durations import AT_MOST, seconds, too_long
from remediator.kube.api.failure_breaker import AttemptRecord, FailureBreaker
from remediator.kube.api.gates import Urgency, Window
from remediator.kube.api.gpu_ledger import CardMemory, GpuLedger, GpuLedgerSpec, GpuReservation
from remediator.kube.api.idle_policy import IdlePolicy, IdlePolicySpec, IdleSignal
from remediator.kube.api.new_criterion import NewCriterion
from remediator.kube.api.node_inventory import (
    Boots,
    GpuResult,
    IdleTestResult,
    NodeInventory,
    NodeInventorySpec,
    NodeInventoryStatus,
)
from remediator.kube.api.operation import (
    BlockedPod,
    DrainStatus,
    NodeOperation,
    NodeOperationSpec,
    NodeOperationStatus,
)
from remediator.kube.api.policy import (
    IDLE_TEST_PROBE,
    IDLE_TEST_WINDOW,
    Admit,
    Attempts,
    Correlation,
    IdleTest,
    RemediationPolicy,
    RemediationPolicySpec,
    RemediationPolicyStatus,
    Rung,
    Verify,
)
from remediator.kube.api.remediation import (
    Attempt,
    Blocker,
    Diagnostics,
    Intent,
    KeepOut,
    Manual,
    NewNode,
    NodeRemediation,
    NodeRemediationSpec,
    NodeRemediationStatus,
    PastCase,
    TimelineEntry,
    Trigger,
)
from remediator.kube.api.template import (
    NodeOperationTemplate,
    NodeOperationTemplateSpec,
    Success,
)
from remediator.kube.api.ticket import (
    ChatThread,
    IssueDestination,
    IssueReference,
    ReportedCause,
    Ticket,
    TicketAlert,
    TicketAlerts,
    TicketChat,
    TicketKeep,
    TicketSpec,
    TicketStatus,
    TicketSubject,
)
from remediator.kube.api.ticket_route import IssueMatch, TicketRoute, TicketRouteSpec, TicketRouteStatus
from remediator.kube.api.when import ConditionMatch, EventMatch, ReportedBy, When
from remediator.kube.wire.client import Kind

POLICY = Kind(GROUP, VERSION, "remediationpolicies", "RemediationPolicy", RemediationPolicy)
CASE = Kind(GROUP, VERSION, "noderemediations", "NodeRemediation", NodeRemediation)
OPERATION = Kind(GROUP, VERSION, "nodeoperations", "NodeOperation", NodeOperation)
TEMPLATE = Kind(GROUP, VERSION, "nodeoperationtemplates", "NodeOperationTemplate", NodeOperationTemplate)
BUDGET = Kind(GROUP, VERSION, "nodedisruptionbudgets", "NodeDisruptionBudget", NodeDisruptionBudget)
TICKET = Kind(GROUP, VERSION, "tickets", "Ticket", Ticket)
GPU_LEDGER = Kind(GROUP, VERSION, "gpuledgers", "GpuLedger", GpuLedger)
IDLE_POLICY = Kind(GROUP, VERSION, "idlepolicies", "IdlePolicy", IdlePolicy)
INVENTORY = Kind(GROUP, VERSION, "nodeinventories", "NodeInventory", NodeInventory)
TICKET_ROUTE = Kind(GROUP, VERSION, "ticketroutes", "TicketRoute", TicketRoute, namespaced=True)
KINDS: tuple[Kind[Any], ...] = (
    *(POLICY, CASE, OPERATION, TEMPLATE, BUDGET, TICKET, GPU_LEDGER, IDLE_POLICY, INVENTORY),
    TICKET_ROUTE,
)

__all__ = [
    "API_VERSION",
    "AT_MOST",
    "BUDGET",
    "CASE",
    "GPU_LEDGER",
    "GROUP",
    "IDLE_POLICY",
    "IDLE_TEST_PROBE",
    "IDLE_TEST_WINDOW",
    "INVENTORY",
    "KINDS",
    "OPERATION",
    "POLICY",
    "TEMPLATE",
    "TICKET",
    "TICKET_ROUTE",
    "VERSION",
    "Admit",
    "Attempt",
    "AttemptRecord",
    "Attempts",
    "BlastRadius",
    "BlockedPod",
    "Blocker",
    "Boots",
    "BudgetBreaker",
    "CardMemory",
    "ChatThread",
    "Claim",
    "Condition",
    "ConditionMatch",
    "Confirm",
    "Correlation",
    "Diagnostics",
    "Drain",
    "DrainRule",
    "DrainStatus",
    "EventMatch",
    "FailureBreaker",
    "FailureLimit",
    "GpuLedger",
    "GpuLedgerSpec",
    "GpuReservation",
    "GpuResult",
    "GroupStatus",
    "IdlePolicy",
    "IdlePolicySpec",
    "IdleSignal",
    "IdleTest",
    "IdleTestResult",
    "Intent",
    "IssueDestination",
    "IssueMatch",
    "IssueReference",
    "JobAtStake",
    "KeepOut",
    "LabelSelector",
    "Manual",
    "MaxBlastRadius",
    "NewCriterion",
    "NewNode",
    "NodeDisruptionBudget",
    "NodeDisruptionBudgetSpec",
    "NodeDisruptionBudgetStatus",
    "NodeInventory",
    "NodeInventorySpec",
    "NodeInventoryStatus",
    "NodeOperation",
    "NodeOperationSpec",
    "NodeOperationStatus",
    "NodeOperationTemplate",
    "NodeOperationTemplateSpec",
    "NodeRemediation",
    "NodeRemediationSpec",
    "NodeRemediationStatus",
    "ObjectMeta",
    "OwnerReference",
    "PastCase",
    "PodSelector",
    "RemediationPolicy",
    "RemediationPolicySpec",
    "RemediationPolicyStatus",
    "ReportedBy",
    "ReportedCause",
    "Requirement",
    "Rung",
    "Success",
    "Ticket",
    "TicketAlert",
    "TicketAlerts",
    "TicketChat",
    "TicketKeep",
    "TicketRoute",
    "TicketRouteSpec",
    "TicketRouteStatus",
    "TicketSpec",
    "TicketStatus",
    "TicketSubject",
    "TimelineEntry",
    "Trigger",
    "Urgency",
    "Verify",
    "When",
    "Window",
    "seconds",
    "too_long",
]
