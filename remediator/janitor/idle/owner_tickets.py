"""What the Tickets of owners should hold, from the notices that stand after a pass. Pure."""

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from remediator.core.idle_policy import IdleTicket
from remediator.core.owner_work import as_alert
from remediator.core.ticket import Alert, Subject, Ticket, bounded
from remediator.janitor.directory import Directory
from remediator.janitor.idle.policy_report import PolicyReport


@dataclass(frozen=True, slots=True)
class OwnerTicketChange:
    """The alerts that the Ticket of an owner should hold; `ticket` is None where there is none yet."""

    subject: Subject
    ticket: Ticket | None
    alerts: tuple[Alert, ...]


def changes(
    reports: Iterable[PolicyReport], tickets: Collection[Ticket], directory: Directory, now: datetime, *, whole: bool
) -> list[OwnerTicketChange]:
    """What is to be written. What a policy cannot tell of goes on; without `whole` nobody knows all policies."""
    reports = list(reports)
    unsure = {report.policy.name for report in reports if report.problems}
    standing = _standing(reports, directory, now)
    by_subject = {ticket.subject: ticket for ticket in tickets}
    wanted = []
    for subject in dict.fromkeys([*by_subject, *standing]):
        ticket, alerts = by_subject.get(subject), standing.get(subject, {})
        known = ticket.alerts if ticket else ()
        alerts_now = [_now(alert, alerts, now) if whole and _policy(alert) not in unsure else alert for alert in known]
        held = {alert.fingerprint for alert in alerts_now if alert.firing}
        new = [alert for fingerprint, alert in alerts.items() if fingerprint not in held]
        change = OwnerTicketChange(
            subject, ticket, bounded({alert.fingerprint: alert for alert in [*alerts_now, *new]}.values())
        )
        if change.alerts != known:
            wanted.append(change)
    return wanted


def _standing(
    reports: Iterable[PolicyReport], directory: Directory, now: datetime
) -> defaultdict[Subject, dict[str, Alert]]:
    """By Ticket: the notices of policies that ask for one, as alerts by fingerprint."""
    standing: defaultdict[Subject, dict[str, Alert]] = defaultdict(dict)
    for report in reports:
        asks = report.enforces and report.policy.ticket is IdleTicket.EACH_OWNER
        for notice in report.standing.values() if asks else ():
            who = directory.contact(notice.owner, notice.namespace)
            standing[notice.subject][notice.fingerprint] = as_alert(notice, who.team, who.github, now)
    return standing


def _policy(alert: Alert) -> str:
    return dict(alert.labels).get("policy", "")


def _now(alert: Alert, alerts: Collection[str], now: datetime) -> Alert:
    """It has ended where the notice stands no more."""
    over = alert.firing and alert.fingerprint not in alerts
    return replace(alert, ended=max(now, alert.starts), received=now) if over else alert
