"""Our six kinds as types: what the API server stores, the texts of `kubectl explain`, and the validation rules.

Fields at their default are left out of the JSON. Where a merge patch must clear them, `patch.whole` writes null.
"""

from typing import Any

from remediator.kube.api.budget import (
    Claim,
    GroupStatus,
    NodeDisruptionBudget,
    NodeDisruptionBudgetSpec,
    NodeDisruptionBudgetStatus,
)
from remediator.kube.api.common import (
    API_VERSION,
    GROUP,
    VERSION,
    Condition,
    LabelSelector,
    ObjectMeta,
    OwnerReference,
    Requirement,
    seconds,
)
from remediator.kube.api.operation import (
    BlockedPod,
    DrainStatus,
    NodeOperation,
    NodeOperationSpec,
    NodeOperationStatus,
)
from remediator.kube.api.policy import (
    AttemptRecord,
    Attempts,
    ConditionMatch,
    Correlation,
    FailureBreaker,
    RemediationPolicy,
    RemediationPolicySpec,
    RemediationPolicyStatus,
    Rung,
    Verify,
    When,
)
from remediator.kube.api.remediation import (
    Attempt,
    Blocker,
    Diagnostics,
    Intent,
    NodeRemediation,
    NodeRemediationSpec,
    NodeRemediationStatus,
    TimelineEntry,
    Trigger,
)
from remediator.kube.api.template import (
    Drain,
    NodeOperationTemplate,
    NodeOperationTemplateSpec,
    Success,
)
from remediator.kube.api.ticket import (
    Issue,
    ReportedCause,
    Ticket,
    TicketAlert,
    TicketAlerts,
    TicketSpec,
    TicketStatus,
    TicketSubject,
)
from remediator.kube.wire.client import Kind

POLICY = Kind(GROUP, VERSION, "remediationpolicies", "RemediationPolicy", RemediationPolicy)
CASE = Kind(GROUP, VERSION, "noderemediations", "NodeRemediation", NodeRemediation)
OPERATION = Kind(GROUP, VERSION, "nodeoperations", "NodeOperation", NodeOperation)
TEMPLATE = Kind(GROUP, VERSION, "nodeoperationtemplates", "NodeOperationTemplate", NodeOperationTemplate)
BUDGET = Kind(GROUP, VERSION, "nodedisruptionbudgets", "NodeDisruptionBudget", NodeDisruptionBudget)
TICKET = Kind(GROUP, VERSION, "tickets", "Ticket", Ticket)
KINDS: tuple[Kind[Any], ...] = (POLICY, CASE, OPERATION, TEMPLATE, BUDGET, TICKET)

__all__ = [
    "API_VERSION",
    "BUDGET",
    "CASE",
    "GROUP",
    "KINDS",
    "OPERATION",
    "POLICY",
    "TEMPLATE",
    "TICKET",
    "VERSION",
    "Attempt",
    "AttemptRecord",
    "Attempts",
    "BlockedPod",
    "Blocker",
    "Claim",
    "Condition",
    "ConditionMatch",
    "Correlation",
    "Diagnostics",
    "Drain",
    "DrainStatus",
    "FailureBreaker",
    "GroupStatus",
    "Intent",
    "Issue",
    "LabelSelector",
    "NodeDisruptionBudget",
    "NodeDisruptionBudgetSpec",
    "NodeDisruptionBudgetStatus",
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
    "RemediationPolicy",
    "RemediationPolicySpec",
    "RemediationPolicyStatus",
    "ReportedCause",
    "Requirement",
    "Rung",
    "Success",
    "Ticket",
    "TicketAlert",
    "TicketAlerts",
    "TicketSpec",
    "TicketStatus",
    "TicketSubject",
    "TimelineEntry",
    "Trigger",
    "Verify",
    "When",
    "seconds",
]
