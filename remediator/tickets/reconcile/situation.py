"""What stands behind one ticket at one instant: its causes, its cases, its alerts. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from remediator.core.case import Case, Phase
from remediator.core.policy import Policy, Severity
from remediator.core.ticket import CAUSES, EARLIEST, About, Alert, CauseState, ReportedCause, Subject, Ticket
from remediator.tickets.reconcile.subject import concerns, keeps, wants

SHARED = "cause"
CLOCK_SLACK = timedelta(hours=1)  # how late we may have heard of what had begun, or of its end


@dataclass(frozen=True, slots=True)
class LinkedCase:
    """One case with its policy; `wanted` says that it is a cause of the ticket."""

    case: Case
    policy: Policy | None
    wanted: bool

    @property
    def escalated(self) -> bool:
        """Whether a person has to repair the node."""
        return self.case.phase is Phase.ESCALATED and self.case.open


@dataclass(frozen=True, slots=True)
class Situation:
    """All that is so about one subject. `causes` are those that stand, by key; `kept` says that a case is open."""

    subject: Subject
    cases: tuple[LinkedCase, ...]
    alerts: tuple[Alert, ...]
    causes: tuple[ReportedCause, ...]
    kept: bool

    @property
    def stands(self) -> bool:
        """Whether the issue should be open."""
        return bool(self.causes)

    @property
    def severity(self) -> Severity:
        """The most severe of what stands; Info where nothing does."""
        found = [linked.policy.severity for linked in self.cases if linked.wanted and linked.policy]
        found += [alert.severity for alert in self.alerts if alert.firing]
        return min(found, key=lambda severity: severity.rank, default=Severity.INFO)

    @property
    def route(self) -> str:
        """The route that the most severe case, else the first alert that has an opinion, asks for."""
        asked = [linked for linked in self.cases if linked.wanted and linked.policy and linked.policy.route]
        asked.sort(key=lambda linked: (linked.policy.severity.rank if linked.policy else 9, linked.case.created))
        by_case = next((linked.policy.route for linked in asked if linked.policy), "")
        return by_case or next((alert.route for alert in self.alerts if alert.firing and alert.route), "")


def situation(ticket: Ticket, cases: Iterable[tuple[Case, Policy | None]]) -> Situation:
    """What is so now. What has ended is shown where the ticket's present issue saw it end."""
    since = ticket.opened - CLOCK_SLACK if ticket.opened else None
    ours = [pair for pair in cases if concerns(*pair, ticket.subject) and _recent(pair[0].ended, since)]
    linked = tuple(LinkedCase(case, policy, wants(case, policy)) for case, policy in sorted(ours, key=_order))
    alerts = sorted((alert for alert in ticket.alerts if _recent(alert.ended, since)), key=lambda alert: alert.starts)
    kept = any(keeps(case, policy) for case, policy in ours)
    return Situation(ticket.subject, linked, tuple(alerts), _causes(ticket, linked), kept)


def _order(pair: tuple[Case, Policy | None]) -> tuple[bool, datetime, str]:
    return not pair[0].open, pair[0].created, pair[0].name


def _recent(ended: datetime | None, since: datetime | None) -> bool:
    return ended is None or (since is not None and ended >= since)


def _causes(ticket: Ticket, cases: Iterable[LinkedCase]) -> tuple[ReportedCause, ...]:
    wanted = [linked for linked in cases if linked.wanted]
    return (*_shared(ticket.subject, wanted), *_by_case(ticket.subject, wanted), *_by_alert(ticket.alerts))


def _shared(subject: Subject, wanted: list[LinkedCase]) -> tuple[ReportedCause, ...]:
    """Many nodes are one cause: a node more or less is no news."""
    if subject.about is not About.CAUSE or not wanted:
        return ()
    escalated = any(linked.escalated for linked in wanted)
    return (ReportedCause(SHARED, CauseState.ESCALATED if escalated else CauseState.ACTIVE, EARLIEST),)


def _by_case(subject: Subject, wanted: list[LinkedCase]) -> tuple[ReportedCause, ...]:
    if subject.about is About.CAUSE:
        return ()
    return tuple(
        ReportedCause(
            f"case:{linked.case.name}",
            CauseState.ESCALATED if linked.escalated else CauseState.ACTIVE,
            linked.case.created,
        )
        for linked in wanted
    )


def _by_alert(alerts: Iterable[Alert]) -> tuple[ReportedCause, ...]:
    """Alerts of one name are one cause, as old as the youngest of them that fires."""
    newest: dict[str, datetime] = {}
    for alert in alerts:
        if alert.firing:
            newest[alert.name] = max(alert.starts, newest.get(alert.name, EARLIEST))
    return tuple(ReportedCause(f"alert:{name}", CauseState.ACTIVE, since) for name, since in sorted(newest.items()))


def known(told: Iterable[ReportedCause]) -> dict[str, ReportedCause]:
    """What was told, by key."""
    return {one.key: one for one in told}


def fresh(told: Iterable[ReportedCause], causes: Iterable[ReportedCause]) -> tuple[ReportedCause, ...]:
    """Causes that began after what was last told of them, or were never told."""
    before = known(told)
    return tuple(cause for cause in causes if cause.key not in before or cause.since > before[cause.key].since)


def remembered(told: Iterable[ReportedCause], causes: Iterable[ReportedCause]) -> tuple[ReportedCause, ...]:
    """What is told once everything has been said: what stands, and that the rest is over. Bounded: the old goes first.

    A cause never grows younger: when the youngest of several alerts of a name ends, the others are no news.
    """
    before, now = known(told), known(causes)
    standing = [
        ReportedCause(key, cause.state, max(cause.since, before[key].since if key in before else EARLIEST))
        for key, cause in now.items()
    ]
    over = [ReportedCause(key, CauseState.OVER, one.since) for key, one in before.items() if key not in now]
    over.sort(key=lambda one: one.since, reverse=True)
    return tuple([*standing, *over][:CAUSES])


def lasting(told: Iterable[ReportedCause], causes: Iterable[ReportedCause]) -> tuple[ReportedCause, ...]:
    """What was told and still stands: all that matters of an issue that a person closed."""
    now = known(causes)
    return tuple(one for one in told if one.key in now and one.state is not CauseState.OVER)
