"""Tickets as we write them."""

from collections.abc import Iterable

from msgspec import UNSET

from remediator.core import names
from remediator.core.chat import ChatThread
from remediator.core.command import Keep
from remediator.core.node import Status
from remediator.core.ticket import CAUSES, About, Alert, Destination, Subject, Ticket, TicketCondition
from remediator.kube import api
from remediator.kube.api.encode.objects import body, second, second_or_none, status_patch
from remediator.kube.api.patch import Body, MergePatch, MetaPatch


def new_ticket(subject: Subject, alerts: Iterable[Alert] = ()) -> Body:
    """A Ticket under the name of its subject."""
    about = api.TicketSubject(
        kind=subject.about,
        node_name=subject.node,
        policy_name=subject.policy,
        condition=subject.condition,
        message=subject.message,
        alert_name=subject.alert,
        cluster=subject.cluster,
        owner_name=subject.owner,
    )
    spec = api.TicketSpec(subject=about, alerts=tuple(_alert(alert) for alert in alerts))
    labels = {names.ABOUT: subject.about.value} if subject.about is About.OWNER else {}
    return body(api.Ticket(metadata=api.ObjectMeta(name=subject.name, labels=labels), spec=spec))


def with_alerts(ticket: Ticket, alerts: Iterable[Alert]) -> Body:
    """A merge patch of what Alertmanager says, refused if the Ticket has moved since we read it."""
    spec = api.TicketAlerts(alerts=tuple(_alert(alert) for alert in alerts))
    return body(MergePatch(metadata=MetaPatch(resource_version=ticket.version), spec=spec))


def with_keeps(ticket: Ticket, keeps: Iterable[Keep], alerts: Iterable[Alert] | None = None) -> Body:
    """A merge patch of what comments ask to keep, and of notices where they are given; refused in the same way."""
    kept = tuple(api.TicketKeep(target=keep.target, until=second(keep.until), set_by=keep.user) for keep in keeps)
    written = UNSET if alerts is None else tuple(_alert(alert) for alert in alerts)
    spec = api.TicketAlerts(alerts=written, keeps=kept)
    return body(MergePatch(metadata=MetaPatch(resource_version=ticket.version), spec=spec))


def _alert(alert: Alert) -> api.TicketAlert:
    return api.TicketAlert(
        fingerprint=alert.fingerprint,
        name=alert.name,
        starts_at=alert.starts,  # which state is newer is told by these: no part of a second may be lost
        ends_at=alert.ended,
        received_at=second_or_none(alert.received),
        severity=alert.severity,
        summary=alert.summary,
        runbook=alert.runbook,
        route=alert.route,
        labels=dict(alert.labels),
        destination=_destination(alert.destination) if alert.destination.repository else None,
        keep_open=alert.keep_open,
    )


def _destination(to: Destination) -> api.IssueDestination:
    return api.IssueDestination(
        repository=to.repository,
        labels=to.labels,
        assignees=to.assignees,
        milestone=to.milestone,
        board=to.board,
    )


def ticket_status(ticket: Ticket) -> Body:
    """A merge patch of the status but for `chat`, refused if the Ticket has moved since we read it."""
    issue = ticket.issue
    status = api.TicketStatus(
        phase=ticket.phase,
        issue=api.IssueReference(repository=issue.repository, number=issue.number, url=issue.url) if issue else None,
        previous_url=ticket.previous,
        opened_at=second_or_none(ticket.opened),
        creating_since=second_or_none(ticket.creating),
        creating_in=ticket.creating_in,
        closed_at=second_or_none(ticket.closed),
        closed_by=ticket.closed_by,
        closing_commented=ticket.closing_commented,
        last_write_hash=ticket.written_hash,
        last_write_at=second_or_none(ticket.written),
        severity=ticket.severity,
        causes=tuple(
            api.ReportedCause(key=cause.key, state=cause.state, since=cause.since) for cause in ticket.reported[:CAUSES]
        ),
        conditions=tuple(_ticket_condition(condition) for condition in ticket.conditions),
    )
    return status_patch(ticket.version, status, "chat")


def ticket_chat(ticket: Ticket, threads: Iterable[ChatThread]) -> Body:
    """A merge patch of `chat` alone, refused if the Ticket has moved since we read it."""
    status = api.TicketChat(chat=tuple(_thread(thread) for thread in threads))
    return body(MergePatch(metadata=MetaPatch(resource_version=ticket.version), status=status))


def _thread(thread: ChatThread) -> api.ChatThread:
    return api.ChatThread(
        room=thread.room,
        opened_at=second(thread.opened),
        began_at=second(thread.began),
        tries=thread.tries,
        id=thread.id,
        crowd=thread.crowd,
        place=thread.place,
        last_write_hash=thread.written_hash,
        last_write_at=second_or_none(thread.written),
        given_up=thread.given_up,
    )


def _ticket_condition(condition: TicketCondition) -> api.Condition:
    return api.Condition(
        type=condition.type,
        status=Status(condition.status),
        reason=condition.reason,
        message=condition.message[:4096],
        last_transition_time=second(condition.since),
    )
