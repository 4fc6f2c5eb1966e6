"""Tickets: what an issue is about, what was last told in it, and what we remember between two passes."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from remediator.core import names
from remediator.core.policy import Severity

ALERTS = 64  # alerts that one Ticket holds
CAUSES = 96  # causes that it remembers
# How long after an end a delivery made before it may still arrive: Alertmanager repeats one, as it was made, for up to
# its group_interval (5 minutes unless set), and its peers wait for each other.
LATE = timedelta(minutes=10)
EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)


class About(StrEnum):
    """The kind of thing that one issue is about."""

    NODE = "Node"
    CAUSE = "SharedCause"  # one thing that many nodes suffer from
    ALERT = "Alert"  # an alert that names no node


@dataclass(frozen=True, slots=True)
class Subject:
    """What one issue is about; only the fields of its kind are set. Its name is the name of its Ticket."""

    about: About
    node: str = ""
    policy: str = ""
    condition: str = ""
    message: str = ""
    alert: str = ""
    cluster: str = ""

    @property
    def name(self) -> str:
        """The same for whoever asks, so that two writers cannot make two Tickets.

        >>> Subject(About.NODE, node="gpu-17").name
        'gpu-17-ticket-efce7fdb8a'
        """
        match self.about:
            case About.NODE:
                return names.name(_slug(self.node), "ticket", self.node)
            case About.CAUSE:
                return names.name(_slug(self.policy), "cause", self.policy, self.condition, self.message)
        return names.name(_slug(self.alert), "alert", self.alert, self.cluster)


def _slug(text: str) -> str:
    """A piece of an object's name: the name of a node stays as it is, what an alert says becomes harmless."""
    if re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", text):
        return text
    return re.sub(r"[^a-z0-9]+", "-", text.lower())[:30].strip("-") or "x"


@dataclass(frozen=True, slots=True, order=True)
class Alert:
    """One alert as last heard of. `ended` is None while it fires; severity is that of a ticket."""

    fingerprint: str
    name: str
    starts: datetime
    ended: datetime | None = None
    severity: Severity = Severity.WARNING
    summary: str = ""
    runbook: str = ""
    route: str = ""
    labels: tuple[tuple[str, str], ...] = ()

    @property
    def firing(self) -> bool:
        """Whether it fires."""
        return self.ended is None

    @property
    def age(self) -> tuple[datetime, datetime, tuple[str, ...]]:
        """Greater is newer. The words at the end settle ties, so that the order of deliveries cannot matter."""
        words = (self.severity.value, self.summary, self.runbook, self.route, self.name, repr(self.labels))
        return self.starts, self.ended or EARLIEST, words


def merged(known: Iterable[Alert], heard: Iterable[Alert], now: datetime) -> tuple[Alert, ...]:
    """The newest state of each fingerprint, by fingerprint, whatever the order and repetition of deliveries.

    What is heard firing at `now`, more than `LATE` after its end, fires again, whatever its start: Prometheus names the
    same start when it has only been away from Alertmanager for a while, and another Prometheus names its own. Beyond
    `ALERTS` those that fire stay before those that ended, younger before older.
    """
    newest = {alert.fingerprint: alert for alert in known}
    for alert in heard:
        other = newest.get(alert.fingerprint)
        if other is None or alert.age > other.age or _again(alert, other, now):
            newest[alert.fingerprint] = alert
    kept = sorted(newest.values(), key=lambda alert: (alert.firing, alert.age, alert.fingerprint), reverse=True)
    return tuple(sorted(kept[:ALERTS], key=lambda alert: alert.fingerprint))


def _again(alert: Alert, other: Alert, now: datetime) -> bool:
    return alert.firing and other.ended is not None and now - other.ended > LATE


def doubtful(known: Iterable[Alert], heard: Iterable[Alert], now: datetime) -> tuple[Alert, ...]:
    """Those of `known` that ended at most `LATE` ago and are heard firing at `now`: a late word, or they fire again.

    Only who sent it can tell, by sending what is so when it is too late for late words.
    """
    over = {alert.fingerprint: alert for alert in known if not alert.firing}
    pairs = ((over[alert.fingerprint], alert) for alert in heard if alert.firing and alert.fingerprint in over)
    return tuple(end for end, alert in pairs if alert.age < end.age and not _again(alert, end, now))


class Standing(StrEnum):
    """How a cause stands."""

    STANDS = "Stands"
    ESCALATED = "Escalated"
    OVER = "Over"


@dataclass(frozen=True, slots=True)
class Told:
    """What was last told of one cause; `since` is when its youngest part began."""

    key: str
    standing: Standing
    since: datetime


class TicketPhase(StrEnum):
    """Where the issue stands, for people."""

    NEW = ""
    PENDING = "Pending"
    OPEN = "Open"
    CLOSED = "Closed"


class ClosedBy(StrEnum):
    """Who closed the issue."""

    NOBODY = ""
    US = "Remediator"
    USER = "User"


@dataclass(frozen=True, slots=True)
class IssueRef:
    """One issue of a tracker."""

    repository: str
    number: int
    url: str


@dataclass(frozen=True, slots=True)
class Note:
    """One condition of a Ticket: type, status "True" or "False", reason, sentence."""

    type: str
    status: str
    reason: str
    message: str
    since: datetime


@dataclass(frozen=True, slots=True)
class Ticket:
    """One issue that should be, with what we remember of it.

    `opened` names the issue among all that the subject ever had. `creating` is when a create was last begun whose
    end we have not seen, or not trusted, and `creating_in` in which repository. `closing_commented` says that
    the closing comment was sent.
    """

    name: str
    uid: str
    subject: Subject
    alerts: tuple[Alert, ...] = ()
    created: datetime = EARLIEST
    version: str = ""
    phase: TicketPhase = TicketPhase.NEW
    issue: IssueRef | None = None
    previous: str = ""
    opened: datetime | None = None
    creating: datetime | None = None
    creating_in: str = ""
    closed: datetime | None = None
    closed_by: ClosedBy = ClosedBy.NOBODY
    closing_commented: bool = False
    written_hash: str = ""
    written: datetime | None = None
    severity: Severity | None = None
    told: tuple[Told, ...] = ()
    notes: tuple[Note, ...] = ()

    def note(self, type: str) -> Note | None:
        """The condition of this type."""
        return next((note for note in self.notes if note.type == type), None)
