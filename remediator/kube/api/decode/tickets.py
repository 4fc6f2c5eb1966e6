"""Tickets as we read them."""

from remediator.core import names
from remediator.core.chat import ChatThread
from remediator.core.command import Keep
from remediator.core.ticket import (
    EARLIEST,
    NOWHERE,
    Alert,
    Destination,
    IssueRef,
    ReportedCause,
    Subject,
    Ticket,
    TicketCondition,
)
from remediator.kube import api
from remediator.kube.api.decode.times import moment


def ticket(wire: api.Ticket) -> Ticket:
    """A Ticket."""
    meta, status = wire.metadata, wire.status
    return Ticket(
        name=meta.name,
        uid=meta.uid,
        subject=_subject(wire.spec.subject),
        alerts=tuple(_alert(alert) for alert in wire.spec.alerts),
        created=moment(meta.creation_timestamp) or EARLIEST,
        version=meta.resource_version,
        phase=status.phase,
        issue=IssueRef(status.issue.repository, status.issue.number, status.issue.url) if status.issue else None,
        previous=status.previous_url,
        opened=moment(status.opened_at),
        creating=moment(status.creating_since),
        creating_in=status.creating_in,
        closed=moment(status.closed_at),
        closed_by=status.closed_by,
        closing_commented=status.closing_commented,
        written_hash=status.last_write_hash,
        written=moment(status.last_write_at),
        severity=status.severity,
        reported=tuple(ReportedCause(cause.key, cause.state, moment(cause.since)) for cause in status.causes),
        conditions=tuple(_condition(condition) for condition in status.conditions),
        hinted=_number(meta.annotations.get(names.HINT, "")),
        chat=tuple(_thread(thread) for thread in status.chat),
        keeps=tuple(Keep(keep.target, moment(keep.until), keep.set_by) for keep in wire.spec.keeps),
    )


def _thread(wire: api.ChatThread) -> ChatThread:
    return ChatThread(
        room=wire.room,
        opened=moment(wire.opened_at),
        began=moment(wire.began_at),
        tries=wire.tries,
        id=wire.id,
        crowd=wire.crowd,
        place=wire.place,
        written_hash=wire.last_write_hash,
        written=moment(wire.last_write_at),
        given_up=wire.given_up,
    )


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else 0


def _subject(wire: api.TicketSubject) -> Subject:
    return Subject(
        about=wire.kind,
        node=wire.node_name,
        policy=wire.policy_name,
        condition=wire.condition,
        message=wire.message,
        alert=wire.alert_name,
        cluster=wire.cluster,
        owner=wire.owner_name,
    )


def _alert(wire: api.TicketAlert) -> Alert:
    return Alert(
        fingerprint=wire.fingerprint,
        name=wire.name,
        starts=moment(wire.starts_at),
        ended=moment(wire.ends_at),
        severity=wire.severity,
        summary=wire.summary,
        runbook=wire.runbook,
        route=wire.route,
        labels=tuple(sorted(wire.labels.items())),
        received=moment(wire.received_at),
        destination=_destination(wire.destination) if wire.destination else NOWHERE,
        keep_open=wire.keep_open,
    )


def _destination(wire: api.IssueDestination) -> Destination:
    return Destination(wire.repository, wire.labels, wire.assignees, wire.milestone, wire.board)


def _condition(wire: api.Condition) -> TicketCondition:
    return TicketCondition(
        wire.type, wire.status, wire.reason, wire.message, moment(wire.last_transition_time) or EARLIEST
    )
