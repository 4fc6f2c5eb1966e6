"""Tickets as we read them."""

from datetime import UTC

from remediator.core.ticket import EARLIEST, Alert, IssueRef, ReportedCause, Subject, Ticket, TicketCondition
from remediator.kube import api


def ticket(wire: api.Ticket) -> Ticket:
    """A Ticket."""
    meta, status = wire.metadata, wire.status
    return Ticket(
        name=meta.name,
        uid=meta.uid,
        subject=_subject(wire.spec.subject),
        alerts=tuple(_alert(alert) for alert in wire.spec.alerts),
        created=meta.creation_timestamp or EARLIEST,
        version=meta.resource_version,
        phase=status.phase,
        issue=IssueRef(status.issue.repository, status.issue.number, status.issue.url) if status.issue else None,
        previous=status.previous_url,
        opened=status.opened_at,
        creating=status.creating_since,
        creating_in=status.creating_in,
        closed=status.closed_at,
        closed_by=status.closed_by,
        closing_commented=status.closing_commented,
        written_hash=status.last_write_hash,
        written=status.last_write_at,
        severity=status.severity,
        reported=tuple(ReportedCause(cause.key, cause.state, cause.since) for cause in status.causes),
        conditions=tuple(_condition(condition) for condition in status.conditions),
    )


def _subject(wire: api.TicketSubject) -> Subject:
    return Subject(
        about=wire.kind,
        node=wire.node_name,
        policy=wire.policy_name,
        condition=wire.condition,
        message=wire.message,
        alert=wire.alert_name,
        cluster=wire.cluster,
    )


def _alert(wire: api.TicketAlert) -> Alert:
    return Alert(
        fingerprint=wire.fingerprint,
        name=wire.name,
        starts=wire.starts_at.astimezone(UTC),
        ended=wire.ends_at.astimezone(UTC) if wire.ends_at else None,
        severity=wire.severity,
        summary=wire.summary,
        runbook=wire.runbook,
        route=wire.route,
        labels=tuple(sorted(wire.labels.items())),
    )


def _condition(wire: api.Condition) -> TicketCondition:
    return TicketCondition(wire.type, wire.status, wire.reason, wire.message, wire.last_transition_time or EARLIEST)
