"""When each issue that waits is opened: so many within an hour, the most severe first. Pure."""

from bisect import insort
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from remediator.core.policy import Severity
from remediator.core.ticket import Subject
from remediator.tickets.floods.limits import FloodLimits

HOUR = timedelta(hours=1)
RESERVED = 5  # one issue in so many may only be Critical: a storm of warnings holds no node up that has failed
SHOWN = 100  # issues that wait and are listed
STALE = timedelta(hours=1)  # who has not asked for so long holds nobody up


@dataclass(frozen=True, slots=True)
class OpeningPlace:
    """One issue that is to be opened: since when it is needed, where, and when its pass has asked first and last."""

    subject: Subject
    severity: Severity
    since: datetime
    repository: str
    asked: datetime
    seen: datetime

    @property
    def order(self) -> tuple[int, datetime, str]:
        """Who has the lesser goes first."""
        return self.severity.rank, self.since, self.subject.name

    def again(self, other: "OpeningPlace") -> "OpeningPlace":
        """The same place as it is now."""
        return replace(other, asked=self.asked)


def place(subject: Subject, severity: Severity, since: datetime, repository: str, now: datetime) -> OpeningPlace:
    """The place of who asks now."""
    return OpeningPlace(subject, severity, since, repository, now, now)


@dataclass(frozen=True, slots=True)
class OpeningWait:
    """How long a place waits at least; `full`: because enough were opened within an hour."""

    after: timedelta
    full: bool = False


@dataclass(frozen=True, slots=True)
class Planned:
    """One place, and when its issue is opened."""

    place: OpeningPlace
    opens: datetime


@dataclass(frozen=True, slots=True)
class Backlog:
    """Issues that are not opened for now: how many, the most severe of them, and the first of them."""

    count: int
    severity: Severity
    per_hour: int
    shown: tuple[Planned, ...]


def plan(
    places: Iterable[OpeningPlace], opened: Iterable[datetime], limits: FloodLimits, now: datetime
) -> tuple[Planned, ...]:
    """When each is opened, in that order. `opened`: when the others were, those of the last hour at least."""
    made = sorted(at for at in opened if now - at < HOUR)
    plans = []
    for place in sorted(places, key=lambda place: place.order):
        most = limits.per_hour if place.severity is Severity.CRITICAL else _for_others(limits)
        opens = max(now, made[-most] + HOUR) if len(made) >= most else now
        insort(made, opens)
        plans.append(Planned(place, opens))
    return tuple(plans)


def _for_others(limits: FloodLimits) -> int:
    return max(1, limits.per_hour - limits.per_hour // RESERVED)


def backlog(plans: Iterable[Planned], limits: FloodLimits, now: datetime) -> Backlog | None:
    """Those that are not opened now; None where all are."""
    late = [planned for planned in plans if planned.opens > now]
    if not late:
        return None
    severest = min((planned.place.severity for planned in late), key=lambda severity: severity.rank)
    return Backlog(len(late), severest, limits.per_hour, tuple(map(_listed, late[:SHOWN])))


def _listed(planned: Planned) -> Planned:
    """Without what changes while nothing happens: the same list is the same text."""
    place = replace(planned.place, asked=planned.place.since, seen=planned.place.since)
    return Planned(place, planned.opens.replace(second=0, microsecond=0))
