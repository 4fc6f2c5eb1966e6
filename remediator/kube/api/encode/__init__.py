"""Our nouns → Kubernetes' JSON, writing side: what we create and what we patch. Pure."""

from remediator.kube.api.encode.cases import (
    asked_operation,
    case_status,
    manual_case,
    new_case,
    new_operation,
    operation_status,
    requested_operation,
    timeline_entry,
)
from remediator.kube.api.encode.commands import decided, hold_ended, obeyed
from remediator.kube.api.encode.drains import drain_parameters
from remediator.kube.api.encode.gpu_ledgers import binding, fence, gpu_ledger, new_gpu_ledger
from remediator.kube.api.encode.idle_tests import idle_test_pod, neighbour_pod
from remediator.kube.api.encode.janitor import SCALED, SUSPENDED, idle_marks, janitor_event, notified
from remediator.kube.api.encode.node_inventories import forgotten_inventory, inventory_status, new_inventory
from remediator.kube.api.encode.nodes import (
    event,
    namespace_event,
    node_condition,
    node_event,
    node_labels,
    node_marks,
    policy_event,
)
from remediator.kube.api.encode.objects import annotations, name_of, with_finalizer, without_finalizer
from remediator.kube.api.encode.pods import pod, secret_of
from remediator.kube.api.encode.policies import (
    default_budget,
    ledger,
    policy_breaker,
    policy_criteria,
    policy_ready,
    policy_selected,
)
from remediator.kube.api.encode.ticket_routes import route_status
from remediator.kube.api.encode.tickets import new_ticket, ticket_chat, ticket_status, with_alerts, with_keeps
from remediator.kube.api.patch import Body

__all__ = [
    "SCALED",
    "SUSPENDED",
    "Body",
    "annotations",
    "asked_operation",
    "binding",
    "case_status",
    "decided",
    "default_budget",
    "drain_parameters",
    "event",
    "fence",
    "forgotten_inventory",
    "gpu_ledger",
    "hold_ended",
    "idle_marks",
    "idle_test_pod",
    "inventory_status",
    "janitor_event",
    "ledger",
    "manual_case",
    "name_of",
    "namespace_event",
    "neighbour_pod",
    "new_case",
    "new_gpu_ledger",
    "new_inventory",
    "new_operation",
    "new_ticket",
    "node_condition",
    "node_event",
    "node_labels",
    "node_marks",
    "notified",
    "obeyed",
    "operation_status",
    "pod",
    "policy_breaker",
    "policy_criteria",
    "policy_event",
    "policy_ready",
    "policy_selected",
    "requested_operation",
    "route_status",
    "secret_of",
    "ticket_chat",
    "ticket_status",
    "timeline_entry",
    "with_alerts",
    "with_finalizer",
    "with_keeps",
    "without_finalizer",
]
