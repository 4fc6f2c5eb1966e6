"""What one ticket is about at one instant: its cases, its alerts, and which of them need an issue. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from remediator.core import manual
from remediator.core.case import Case, Phase, slim
from remediator.core.policy import Policy, Severity
from remediator.core.reasons import Reason
from remediator.core.ticket import (
    EARLIEST,
    NOWHERE,
    About,
    Alert,
    CauseState,
    Destination,
    ReportedCause,
    Subject,
    Ticket,
)
from remediator.tickets.floods.fold import NodeAlert, Spread, spread
from remediator.tickets.floods.turns import Backlog
from remediator.tickets.reconcile.causes import SHARED
from remediator.tickets.reconcile.wanted import concerns, keeps_open, wants

NEW = frozenset({Reason.NEW_CRITERION, Reason.CRITERION_MUTED})
CLOCK_SLACK = timedelta(hours=1)  # how much later than it happened we may have received a beginning or an end


@dataclass(frozen=True, slots=True)
class LinkedCase:
    """One case with its policy; `wanted` says that it is a cause of the ticket."""

    case: Case
    policy: Policy | None
    wanted: bool

    @property
    def severity(self) -> Severity:
        """That of its policy; of a case that a user asked for the one of all such cases; Info by what is new only."""
        if any(block.reason in NEW for block in self.case.blocks):
            return Severity.INFO
        return self.policy.severity if self.policy else manual.SEVERITY

    @property
    def escalated(self) -> bool:
        """Whether a user has to repair the node."""
        return self.case.phase is Phase.ESCALATED and self.case.open


@dataclass(frozen=True, slots=True)
class TicketInput:
    """All that a ticket is made of. `causes` are the active ones; `case_open` says that a case keeps the issue open.

    `elsewhere` are the fingerprints of alerts that an issue for many nodes tells of, and `spread` what such an issue
    tells. `backlog`: the issues that are not opened yet.
    """

    subject: Subject
    cases: tuple[LinkedCase, ...]
    alerts: tuple[Alert, ...]
    causes: tuple[ReportedCause, ...]
    case_open: bool
    elsewhere: frozenset[str] = frozenset()
    spread: Spread | None = None
    backlog: Backlog | None = None

    @property
    def active(self) -> bool:
        """Whether a cause needs an issue."""
        return bool(self.causes)

    @property
    def severity(self) -> Severity:
        """The most severe of the active causes; Info where there is none."""
        severities = [linked.severity for linked in self.cases if linked.wanted]
        severities += [alert.severity for alert in self.alerts if alert.firing and self.tells(alert)]
        severities += [many.severity for many in (self.spread, self.backlog) if many]
        return min(severities, key=lambda severity: severity.rank, default=Severity.INFO)

    @property
    def kept_open(self) -> bool:
        """Whether an alert keeps the issue open, though it may have ended."""
        return any(alert.keep_open for alert in self.alerts)

    @property
    def destination(self) -> Destination:
        """Where the first alert whose post had parameters asks the issue to go."""
        alerts = (alert for alert in self.alerts if alert.firing or not self.active)
        return next((alert.destination for alert in alerts if alert.destination.repository), NOWHERE)

    @property
    def route(self) -> str:
        """The route of the most severe case whose policy names one, else of the first alert that names one.

        Where no cause is left, of those that were: the issue keeps its text.
        """
        wanted = [linked for linked in self.cases if linked.wanted] if self.active else self.cases
        policies = [(linked.policy, linked.case) for linked in wanted if linked.policy]
        routed = [(policy.severity.rank, case.created, policy.route) for policy, case in policies if policy.route]
        if routed:
            return min(routed)[2]
        alerts = (alert for alert in self.alerts if (alert.firing and self.tells(alert)) or not self.active)
        of_many = self.spread.route if self.spread else ""
        return of_many or next((alert.route for alert in alerts if alert.route), "")

    def tells(self, alert: Alert) -> bool:
        """Whether this issue is the one that tells of the alert."""
        return alert.fingerprint not in self.elsewhere


def ticket_input(
    ticket: Ticket,
    cases: Iterable[tuple[Case, Policy | None]],
    elsewhere: frozenset[str] = frozenset(),
    nodes: tuple[NodeAlert, ...] = (),
    backlog: Backlog | None = None,
) -> TicketInput:
    """What is so now. A case or an alert that ended is in it where the present issue was open at its end.

    `nodes`: those on which the alert of this ticket fires, where it tells of many; the rest as in TicketInput.
    """
    since = ticket.opened - CLOCK_SLACK if ticket.opened else None
    ours = [pair for pair in cases if concerns(*pair, ticket.subject) and _recent(pair[0].ended, since)]
    linked = tuple(LinkedCase(slim(case), policy, wants(case, policy)) for case, policy in sorted(ours, key=_order))
    alerts = sorted((alert for alert in ticket.alerts if _recent(alert.ended, since)), key=lambda alert: alert.starts)
    case_open = any(keeps_open(case, policy) for case, policy in ours)
    causes = _causes(ticket, linked, elsewhere)
    if nodes or backlog:
        causes = (ReportedCause(SHARED, CauseState.ACTIVE, EARLIEST), *causes)
    of_many = spread(nodes)
    return TicketInput(ticket.subject, linked, tuple(alerts), causes, case_open, elsewhere, of_many, backlog)


def _order(pair: tuple[Case, Policy | None]) -> tuple[bool, datetime, str]:
    return not pair[0].open, pair[0].created, pair[0].name


def _recent(ended: datetime | None, since: datetime | None) -> bool:
    return ended is None or (since is not None and ended >= since)


def _causes(ticket: Ticket, cases: Iterable[LinkedCase], elsewhere: frozenset[str]) -> tuple[ReportedCause, ...]:
    wanted = [linked for linked in cases if linked.wanted]
    by_case = _shared(wanted) if ticket.subject.about is About.CAUSE else _by_case(wanted)
    return (*by_case, *_by_alert(alert for alert in ticket.alerts if alert.fingerprint not in elsewhere))


def _shared(wanted: list[LinkedCase]) -> tuple[ReportedCause, ...]:
    """Many nodes are one cause: a node more or less is not reported."""
    escalated = any(linked.escalated for linked in wanted)
    return (ReportedCause(SHARED, _state(escalated), EARLIEST),) if wanted else ()


def _by_case(wanted: list[LinkedCase]) -> tuple[ReportedCause, ...]:
    return tuple(
        ReportedCause(f"case:{linked.case.name}", _state(linked.escalated), linked.case.created) for linked in wanted
    )


def _by_alert(alerts: Iterable[Alert]) -> tuple[ReportedCause, ...]:
    """Alerts of one name are one cause, as old as the youngest of them that fires."""
    newest: dict[str, datetime] = {}
    for alert in alerts:
        if alert.firing:
            newest[alert.name] = max(alert.starts, newest.get(alert.name, EARLIEST))
    return tuple(ReportedCause(f"alert:{name}", CauseState.ACTIVE, since) for name, since in sorted(newest.items()))


def _state(escalated: bool) -> CauseState:
    return CauseState.ESCALATED if escalated else CauseState.ACTIVE
