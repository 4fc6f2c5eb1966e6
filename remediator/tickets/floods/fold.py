"""Which alerts many nodes have, so that one issue tells of all of them. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from remediator.core.alerts import LONGEST_NAME
from remediator.core.policy import Severity
from remediator.core.ticket import About, Alert, CauseState, Subject, Ticket
from remediator.tickets.floods.limits import FloodLimits
from remediator.tickets.reconcile.causes import SHARED

SHOWN = 64  # nodes that an issue names


@dataclass(frozen=True, slots=True)
class NodeAlert:
    """One alert that fires on one node."""

    node: str
    alert: Alert


@dataclass(frozen=True, slots=True)
class Spread:
    """An alert on many nodes: how many, the most severe of them, and the first of them by name."""

    nodes: int
    severity: Severity
    route: str
    shown: tuple[NodeAlert, ...]


def shared_subject(alert: Alert) -> Subject:
    """What the one issue is about that tells of this alert on many nodes."""
    return Subject(About.ALERT, alert=alert.name, cluster=dict(alert.labels).get("cluster", "")[:LONGEST_NAME])


def is_told(ticket: Ticket, alert: Alert) -> bool:
    """Whether the node's own issue tells of this alert already, be it that a user has closed or deleted it since."""
    return any(cause.key == f"alert:{alert.name}" and cause.state is not CauseState.OVER for cause in ticket.reported)


def firing(ticket: Ticket) -> Iterator[Alert]:
    """The alerts that fire on a node; of what is no node, none."""
    return (alert for alert in ticket.alerts if alert.firing and ticket.subject.about is About.NODE)


def untold(tickets: Iterable[Ticket], subject: Subject) -> tuple[NodeAlert, ...]:
    """Where the alert of this subject fires and no issue of the node tells of it; by node, one for each."""
    alerts = {
        ticket.subject.node: NodeAlert(ticket.subject.node, alert)
        for ticket in tickets
        for alert in firing(ticket)
        if shared_subject(alert) == subject and not is_told(ticket, alert)
    }
    return tuple(alerts[node] for node in sorted(alerts))


def is_shared(nodes: Iterable[NodeAlert], shared: Ticket | None, limits: FloodLimits) -> bool:
    """Whether these are told in one issue: because one tells of them already, or because so many began together.

    It rests on when each was received, so it stays so however long GitHub cannot be reached.
    """
    if shared and any(cause.key == SHARED and cause.state is not CauseState.OVER for cause in shared.reported):
        return True
    received = sorted(_received(node_alert.alert) for node_alert in nodes)
    last = limits.fold_nodes - 1
    return any(received[at + last] - received[at] <= limits.fold_within for at in range(len(received) - last))


def _received(alert: Alert) -> datetime:
    return alert.received or alert.starts


def spread(nodes: tuple[NodeAlert, ...]) -> Spread | None:
    """What an issue says of an alert on these nodes; None of none."""
    if not nodes:
        return None
    severest = min((node_alert.alert.severity for node_alert in nodes), key=lambda severity: severity.rank)
    route = next((node_alert.alert.route for node_alert in nodes if node_alert.alert.route), "")
    return Spread(len(nodes), severest, route, nodes[:SHOWN])
