"""The columns of `kubectl get` for each of our kinds."""

from typing import Any, NamedTuple

from remediator.kube import api
from remediator.kube.wire.client import Kind


class Column(NamedTuple):
    """One column of `kubectl get`; `wide` ones show with `-o wide`."""

    name: str
    path: str
    type: str = "string"
    wide: bool = False


_READY = Column("READY", '.status.conditions[?(@.type=="Ready")].status')
_WHY = Column("WHY", '.status.conditions[?(@.type=="Ready")].reason')
_AGE = Column("AGE", ".metadata.creationTimestamp", "date")
_MESSAGE = Column("MESSAGE", ".status.message", wide=True)

SHORT = {
    api.POLICY: "rp",
    api.CASE: "nr",
    api.OPERATION: "nop",
    api.TEMPLATE: "nopt",
    api.BUDGET: "ndb",
    api.TICKET: "tkt",
    api.GPU_LEDGER: "gl",
    api.IDLE_POLICY: "ip",
    api.INVENTORY: "ninv",
    api.TICKET_ROUTE: "tktr",
}
COLUMNS: dict[Kind[Any], tuple[Column, ...]] = {
    api.POLICY: (
        Column("MODE", ".spec.mode"),
        Column("SEVERITY", ".spec.severity"),
        Column("NODES", ".status.selectedNodes", "integer"),
        _READY,
        _WHY,
        Column("BREAKER OPEN", ".status.breaker.openedAt", "date"),
        _AGE,
    ),
    api.CASE: (
        Column("NODE", ".spec.nodeName"),
        Column("POLICY", ".spec.policyName"),
        Column("PHASE", ".status.phase"),
        Column("RUNG", ".status.rung", "integer"),
        Column("OPERATION", ".status.attempts[-1:].template"),
        Column("BLOCKED", ".status.blockedBy[0].reason"),
        _AGE,
        Column("REASON", ".status.reason", wide=True),
        Column("HEALTHY SINCE", ".status.healthySince", "date", wide=True),
        _MESSAGE,
    ),
    api.OPERATION: (
        Column("NODE", ".spec.nodeName"),
        Column("TEMPLATE", ".spec.templateName"),
        Column("PHASE", ".status.phase"),
        Column("LEFT", ".status.drain.left", "integer"),
        _AGE,
        Column("EVICTED", ".status.drain.evicted", "integer", wide=True),
        Column("BLOCKER", ".status.drain.blocked[0].pod", wide=True),
        _MESSAGE,
    ),
    api.TEMPLATE: (
        Column("RUN-ON", ".spec.runOn"),
        Column("STRATEGY", ".spec.drain.strategy"),
        Column("TIMEOUT", ".spec.timeout"),
        _AGE,
    ),
    api.BUDGET: (
        Column("MAX", ".spec.maxUnavailable"),
        Column("MIN", ".spec.minAvailable"),
        Column("TOTAL", ".status.total", "integer"),
        Column("UNAVAILABLE", ".status.unavailable", "integer"),
        Column("ALLOWED", ".status.allowed", "integer"),
        Column("QUARANTINED", ".status.quarantined", "integer"),
        Column("GROUPS FULL", ".status.groupsFull", "integer"),
        Column("UNGROUPED", ".status.ungrouped", "integer"),
        Column("BREAKER OPEN", ".status.breaker.openedAt", "date"),
        _AGE,
    ),
    api.TICKET: (
        Column("ABOUT", ".spec.subject.kind"),
        Column("NODE", ".spec.subject.nodeName"),
        Column("PHASE", ".status.phase"),
        Column("ISSUE", ".status.issue.number", "integer"),
        Column("SYNCED", '.status.conditions[?(@.type=="Synced")].status'),
        _AGE,
        Column("REPOSITORY", ".status.issue.repository", wide=True),
        Column("CLOSED-BY", ".status.closedBy", wide=True),
    ),
    api.GPU_LEDGER: (
        Column("CARDS", ".spec.cards[*].memory"),
        Column("PODS", ".spec.reservations[*].name"),
        _AGE,
    ),
    api.IDLE_POLICY: (
        Column("MODE", ".spec.mode"),
        Column("NAMESPACES", ".spec.namespaces"),
        Column("IDLE FOR", ".spec.idleFor"),
        Column("GRACE", ".spec.grace"),
        Column("ACTIONS", ".spec.actions"),
        _AGE,
    ),
    api.INVENTORY: (
        Column("HAD", ".status.counts"),
        Column("SINCE", ".status.since", "date"),
        _AGE,
        Column("EXPECTED", ".spec.expected", wide=True),
    ),
    api.TICKET_ROUTE: (
        Column("REPOSITORY", ".spec.repository"),
        _READY,
        _WHY,
        Column("ISSUES", ".status.issues", "integer"),
        _AGE,
    ),
}
