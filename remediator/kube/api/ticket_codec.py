"""Kubernetes' JSON ↔ Tickets, both ways: what we read, create and patch."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from remediator.core.policy import Severity
from remediator.core.ticket import (
    CAUSES,
    EARLIEST,
    About,
    Alert,
    CauseState,
    ClosedBy,
    IssueRef,
    ReportedCause,
    Subject,
    Ticket,
    TicketCondition,
    TicketPhase,
)
from remediator.kube import api
from remediator.kube.wire.times import micro_stamp, stamp

Body = dict[str, Any]


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
        phase=TicketPhase(status.phase),
        issue=IssueRef(status.issue.repository, status.issue.number, status.issue.url) if status.issue else None,
        previous=status.previous_url,
        opened=status.opened_at,
        creating=status.creating_since,
        creating_in=status.creating_in,
        closed=status.closed_at,
        closed_by=ClosedBy(status.closed_by),
        closing_commented=status.closing_commented,
        written_hash=status.last_write_hash,
        written=status.last_write_at,
        severity=Severity(status.severity) if status.severity else None,
        reported=tuple(ReportedCause(cause.key, CauseState(cause.state), cause.since) for cause in status.causes),
        conditions=tuple(_condition(wire) for wire in status.conditions),
    )


def _subject(wire: api.TicketSubject) -> Subject:
    return Subject(
        about=About(wire.kind),
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
        severity=Severity(wire.severity),
        summary=wire.summary,
        runbook=wire.runbook,
        route=wire.route,
        labels=tuple(sorted(wire.labels.items())),
    )


def _condition(wire: Any) -> TicketCondition:
    return TicketCondition(wire.type, wire.status, wire.reason, wire.message, wire.last_transition_time or EARLIEST)


def new_ticket(subject: Subject, alerts: Iterable[Alert] = ()) -> Body:
    """A Ticket under the name of its subject."""
    spec = {"subject": _subject_body(subject), "alerts": [_alert_body(alert) for alert in alerts]}
    meta = {"name": subject.name}
    return {"apiVersion": api.API_VERSION, "kind": api.TICKET.name, "metadata": meta, "spec": spec}


def _subject_body(subject: Subject) -> Body:
    body = {
        "kind": subject.about.value,
        "nodeName": subject.node,
        "policyName": subject.policy,
        "condition": subject.condition,
        "message": subject.message,
        "alertName": subject.alert,
        "cluster": subject.cluster,
    }
    return {key: value for key, value in body.items() if value}


def with_alerts(ticket: Ticket, alerts: Iterable[Alert]) -> Body:
    """A merge patch of what Alertmanager says, refused if the Ticket has moved since we read it."""
    spec = {"alerts": [_alert_body(alert) for alert in alerts]}
    return {"metadata": {"resourceVersion": ticket.version}, "spec": spec}


def _alert_body(alert: Alert) -> Body:
    body = {
        "fingerprint": alert.fingerprint,
        "name": alert.name,
        "startsAt": micro_stamp(alert.starts),  # which state is newer is told by these: no part of a second may be lost
        "endsAt": micro_stamp(alert.ended) if alert.ended else None,
        "severity": alert.severity.value,
        "summary": alert.summary,
        "runbook": alert.runbook,
        "route": alert.route,
        "labels": dict(alert.labels),
    }
    return {key: value for key, value in body.items() if value}


def ticket_status(ticket: Ticket) -> Body:
    """A merge patch of the whole status, refused if the Ticket has moved since we read it."""
    status = {
        "phase": ticket.phase.value or None,
        "issue": _issue_body(ticket.issue) if ticket.issue else None,
        "previousUrl": ticket.previous or None,
        "openedAt": _time(ticket.opened),
        "creatingSince": _time(ticket.creating),
        "creatingIn": ticket.creating_in or None,
        "closedAt": _time(ticket.closed),
        "closedBy": ticket.closed_by.value or None,
        "closingCommented": ticket.closing_commented,
        "lastWriteHash": ticket.written_hash or None,
        "lastWriteAt": _time(ticket.written),
        "severity": ticket.severity.value if ticket.severity else None,
        "causes": [_cause_body(cause) for cause in ticket.reported[:CAUSES]],
        "conditions": [_condition_body(condition) for condition in ticket.conditions],
    }
    return {"metadata": {"resourceVersion": ticket.version}, "status": status}


def _issue_body(issue: IssueRef) -> Body:
    return {"repository": issue.repository, "number": issue.number, "url": issue.url}


def _cause_body(cause: ReportedCause) -> Body:
    return {"key": cause.key, "state": cause.state.value, "since": micro_stamp(cause.since)}


def _condition_body(condition: TicketCondition) -> Body:
    return {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message[:4096],
        "lastTransitionTime": stamp(condition.since),
    }


def _time(at: datetime | None) -> str | None:
    return stamp(at) if at else None
