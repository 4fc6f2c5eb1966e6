"""What Tickets should hold, from what they hold and what all Alertmanagers list. Pure."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from remediator.core.ticket import EARLIEST, About, Alert, Subject, Ticket, bounded
from remediator.prometheus.alerts import QUIET, Firing
from remediator.tickets.webhook.payload import alert_of
from remediator.tickets.webhook.subject import of_alert


@dataclass(frozen=True, slots=True)
class AlertsChange:
    """The alerts that the Ticket of a subject should hold; `ticket` is None where there is none yet."""

    subject: Subject
    ticket: Ticket | None
    alerts: tuple[Alert, ...]


@dataclass(frozen=True, slots=True)
class AlertDecision:
    """What is to be written, and since when each alert that a Ticket holds as firing is missing from every list."""

    changes: tuple[AlertsChange, ...]
    missing: Mapping[str, datetime]


def decide(
    tickets: Collection[Ticket],
    firing: Firing,
    receiver: str,
    nodes: Collection[str],
    missing: Mapping[str, datetime],
    now: datetime,
) -> AlertDecision:
    """What is to be written. `receiver`: of which alerts start something. `now`: when the lists were asked for.

    An alert that a Ticket holds as firing goes on while any list has it, silenced or sent to another receiver. It has
    ended when it was missing from whole lists for `QUIET`.
    """
    tickets = [ticket for ticket in tickets if ticket.subject.about is not About.OWNER]  # of which no list tells
    held = {alert.fingerprint: alert for ticket in tickets for alert in ticket.alerts if alert.firing}
    missing = _missing(held.values(), firing, missing, now)
    over = {fingerprint: since for fingerprint, since in missing.items() if now - since >= QUIET}
    starting = _starting(firing, receiver, nodes, held, now)
    changes = [_change(ticket, over, starting.pop(ticket.subject, ()), now) for ticket in tickets]
    changes += [AlertsChange(subject, None, bounded(alerts)) for subject, alerts in starting.items()]
    wanted = tuple(change for change in changes if change.ticket is None or change.alerts != change.ticket.alerts)
    return AlertDecision(wanted, missing)


def _missing(
    held: Iterable[Alert], firing: Firing, missing: Mapping[str, datetime], now: datetime
) -> Mapping[str, datetime]:
    """Since when each is missing; heard of again meanwhile, it counts from then. Nothing is where nobody can tell."""
    if not firing.whole:
        return {}
    since = {alert: missing.get(alert.fingerprint, now) for alert in held if alert.fingerprint not in firing.alerts}
    return {alert.fingerprint: max(first, _heard(alert, now)) for alert, first in since.items()}


def _heard(alert: Alert, now: datetime) -> datetime:
    """When it was received; a clock that is ahead of ours does not count."""
    return alert.received if alert.received and alert.received <= now else EARLIEST


def _starting(
    firing: Firing, receiver: str, nodes: Collection[str], held: Collection[str], now: datetime
) -> dict[Subject, list[Alert]]:
    """Alerts that are to be heard of, and that no Ticket holds as firing."""
    starting: dict[Subject, list[Alert]] = {}
    for listed in firing.alerts.values():
        if listed.active and receiver in listed.receivers and listed.fingerprint not in held:
            alert = alert_of(listed.fingerprint, listed.labels, listed.annotations, listed.starts)
            starting.setdefault(of_alert(listed.labels, nodes), []).append(replace(alert, received=now))
    return starting


def _change(ticket: Ticket, over: Mapping[str, datetime], starting: Iterable[Alert], now: datetime) -> AlertsChange:
    alerts = {alert.fingerprint: _ended(alert, over, now) for alert in ticket.alerts}
    alerts |= {alert.fingerprint: alert for alert in starting}
    return AlertsChange(ticket.subject, ticket, bounded(alerts.values()))


def _ended(alert: Alert, over: Mapping[str, datetime], now: datetime) -> Alert:
    """The alert, ended where it is over: when it was first missing."""
    since = over.get(alert.fingerprint) if alert.firing else None
    return alert if since is None else replace(alert, ended=max(alert.starts, since), received=now)
