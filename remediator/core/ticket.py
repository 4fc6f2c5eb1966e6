"""Tickets: what an issue is about, what was last reported in it, and what is stored between two passes."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from heapq import nlargest

from remediator.core import names
from remediator.core.chat import ChatThread
from remediator.core.command import Keep
from remediator.core.policy import Severity

ALERTS = 64  # alerts that one Ticket holds
CAUSES = 96  # causes that it remembers
# How long after an alert has ended a delivery made before its end may still arrive: Alertmanager repeats a delivery, as
# it was made, for up to its group_interval (5 minutes unless set), and its peers wait for each other.
RESEND_WINDOW = timedelta(minutes=10)
EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)


class About(StrEnum):
    """The kind of thing that one issue is about."""

    NODE = "Node"
    CAUSE = "SharedCause"  # one thing that many nodes suffer from
    ALERT = "Alert"  # an alert that names no node, or that many nodes have
    OWNER = "Owner"  # the work of one owner of which the janitor has given notice
    OVERFLOW = "Overflow"  # the issues that are not opened yet


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
    owner: str = ""

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
            case About.OWNER:
                return names.name(_slug(self.owner), "owner", self.owner)
            case About.OVERFLOW:
                return names.name("issues", "overflow")
        return names.name(_slug(self.alert), "alert", self.alert, self.cluster)


def _slug(text: str) -> str:
    """A piece of an object's name: the name of a node stays as it is, what an alert says becomes harmless."""
    if re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", text):
        return text
    return re.sub(r"[^a-z0-9]+", "-", text.lower())[:30].strip("-") or "x"


@dataclass(frozen=True, slots=True, order=True)
class Destination:
    """Where the parameters of a post ask its issues to go; empty where they do not say. `board`: owner/number."""

    repository: str = ""
    labels: tuple[str, ...] = ()
    assignees: tuple[str, ...] = ()
    milestone: str = ""
    board: str = ""

    @property
    def board_number(self) -> int | None:
        """The number of the project, None where it has none."""
        match = re.fullmatch(r"[A-Za-z0-9-]{1,39}/([1-9][0-9]{0,8})", self.board)
        return int(match[1]) if match else None


NOWHERE = Destination()


@dataclass(frozen=True, slots=True, order=True)
class Alert:
    """One alert as last received. `ended` is None while it fires; severity is that of a ticket.

    `keep_open`: whoever wrote its rule wants no issue of it closed by us.

    `received` is when we received this state first, and no part of it: None where an older version stored it.
    """

    fingerprint: str
    name: str
    starts: datetime
    ended: datetime | None = None
    severity: Severity = Severity.WARNING
    summary: str = ""
    runbook: str = ""
    route: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    destination: Destination = NOWHERE
    keep_open: bool = False
    received: datetime | None = field(default=None, compare=False)

    @property
    def firing(self) -> bool:
        """Whether it fires."""
        return self.ended is None

    @property
    def age(self) -> tuple[datetime, datetime, tuple[str, ...]]:
        """Greater is newer. The words at the end settle ties, so that the order of deliveries cannot matter."""
        words = (self.severity.value, self.summary, self.runbook, self.route, self.name, repr(self.labels))
        to = repr(self.destination) if self.destination.repository else ""
        return self.starts, self.ended or EARLIEST, (*words, to, str(self.keep_open))


class NewestAlerts:
    """The newest state of each fingerprint, whatever the order and repetition of deliveries, and the parts of one.

    An alert that is received firing at `now`, more than `RESEND_WINDOW` after its end, fires again, whatever its start:
    Prometheus sends the same start when it could not reach Alertmanager for a while, and another Prometheus sends its
    own. None is left out before all are received: one that would be too old may be among the youngest when others have
    ended.
    """

    def __init__(self, known: Iterable[Alert], now: datetime) -> None:
        self._alerts, self._now = {alert.fingerprint: alert for alert in known}, now

    def add(self, received: Iterable[Alert]) -> None:
        """Keep what is newer than what is known."""
        for alert in received:
            other = self._alerts.get(alert.fingerprint)
            if other is None or alert.age > other.age or _refired(alert, other, self._now):
                self._alerts[alert.fingerprint] = replace(alert, received=self._now)

    def same(self, alerts: Iterable[Alert]) -> list[Alert]:
        """Its state of these alerts, of those that it has."""
        return [self._alerts[alert.fingerprint] for alert in alerts if alert.fingerprint in self._alerts]

    def __iter__(self) -> Iterator[Alert]:
        return iter(self._alerts.values())


def bounded(alerts: Iterable[Alert], most: int = ALERTS) -> tuple[Alert, ...]:
    """What one Ticket holds of these alerts, by fingerprint: so many, firing before ended, younger before older.

    The same where they come in parts, each beside what was kept of those before.
    """
    # No sort of all: of 180,000 alerts that is one step of half a second, in which no thread has its turn.
    kept = nlargest(most, alerts, key=lambda alert: (alert.firing, alert.age, alert.fingerprint))
    return tuple(sorted(kept, key=lambda alert: alert.fingerprint))


def _refired(alert: Alert, other: Alert, now: datetime) -> bool:
    return alert.firing and other.ended is not None and now - other.ended > RESEND_WINDOW


def late_refires(known: Iterable[Alert], received: Iterable[Alert], now: datetime) -> tuple[Alert, ...]:
    """Those of `known` that ended at most `RESEND_WINDOW` ago and are received firing at `now`.

    Either the delivery is an old one that comes late, or they fire again. Only the sender can tell: it sends the
    present state again, and after the window that state is believed.
    """
    over = {alert.fingerprint: alert for alert in known if not alert.firing}
    pairs = ((over[alert.fingerprint], alert) for alert in received if alert.firing and alert.fingerprint in over)
    return tuple(end for end, alert in pairs if alert.age < end.age and not _refired(alert, end, now))


class CauseState(StrEnum):
    """Whether a cause of an issue still calls for it."""

    ACTIVE = "Active"
    ESCALATED = "Escalated"
    OVER = "Over"


@dataclass(frozen=True, slots=True)
class ReportedCause:
    """What the issue last said of one cause: an alert, a case, or what many nodes share.

    `key` is alert:NAME, case:NAME or "cause"; `since` is when its youngest part began.
    """

    key: str
    state: CauseState
    since: datetime


class TicketPhase(StrEnum):
    """What users see of the state of the issue."""

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
class TicketCondition:
    """One condition of a Ticket: type, status "True" or "False", reason, sentence."""

    type: str
    status: str
    reason: str
    message: str
    since: datetime


@dataclass(frozen=True, slots=True)
class Ticket:
    """One issue that should be, with what we remember of it.

    `opened` tells this issue from all others of the subject. `creating` is when we last began to create it without
    knowing how that ended, and `creating_in` in which repository. `chat` is written by whoever posts in rooms,
    apart from all else: it makes no two Tickets differ. Nor does `keeps`: what comments ask the janitor to keep.
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
    reported: tuple[ReportedCause, ...] = ()
    conditions: tuple[TicketCondition, ...] = ()
    hinted: int = 0  # the id of the newest comment below the issue that the tracker has told us of
    chat: tuple[ChatThread, ...] = field(default=(), compare=False)
    keeps: tuple[Keep, ...] = field(default=(), compare=False)

    def thread(self, room: str) -> ChatThread | None:
        """The thread in one room of a chat."""
        return next((thread for thread in self.chat if thread.room == room), None)

    def condition(self, type: str) -> TicketCondition | None:
        """The condition of this type."""
        return next((condition for condition in self.conditions if condition.type == type), None)

    def with_condition(self, new: TicketCondition, *, keep_message: bool = False) -> "Ticket":
        """The Ticket with one condition set, which keeps its time while its status stays.

        `keep_message` keeps the first message as long as status and reason stay: some messages hold seconds and
        addresses, and would be written anew each time.
        """
        old = self.condition(new.type)
        same = old is not None and (old.status, old.reason) == (new.status, new.reason)
        message = old.message if old and same and keep_message else new.message[:1024]
        since = old.since if old and old.status == new.status else new.since
        kept = replace(new, message=message, since=since)
        if kept == old:
            return self
        return replace(self, conditions=(*self.without_condition(new.type).conditions, kept))

    def without_condition(self, type: str) -> "Ticket":
        """The Ticket without the condition of this type."""
        return replace(self, conditions=tuple(held for held in self.conditions if held.type != type))
