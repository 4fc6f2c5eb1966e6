"""Issues are opened one after the other: what the leader remembers of those that wait for their turn.

Losing it costs their order for a moment: every pass asks again.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from remediator.core.ticket import About, Subject, Ticket
from remediator.tickets.floods.limits import FloodLimits
from remediator.tickets.floods.turns import HOUR, STALE, Backlog, OpeningPlace, OpeningWait, Planned, backlog, plan

OVERFLOW = Subject(About.OVERFLOW)
FEW = 200  # with more places, the plan is made once a second
YOUNG = timedelta(minutes=1)  # who begins to lead does not know yet who waits
LOOK = timedelta(minutes=2)  # when others look again while nothing can be opened
SOON, LATEST = timedelta(seconds=5), timedelta(minutes=10)  # when a place looks again: woken by others it looks sooner
ONE = timedelta(seconds=1)


@dataclass(slots=True)
class Rest:
    """Nothing is opened in a repository until then; `first` is tried first, and is the only one that looks then."""

    until: datetime
    first: OpeningPlace


class OpeningQueue:
    """Those who want to open an issue. `wake` asks for a pass over a subject."""

    def __init__(self, limits: FloodLimits, wake: Callable[[Subject], None]) -> None:
        self._limits, self._wake = limits, wake
        self.forget()

    def forget(self) -> None:
        """Another has led meanwhile."""
        self._places: dict[str, OpeningPlace] = {}
        self._rests: dict[str, Rest] = {}  # by repository
        self._granted: dict[str, datetime] = {}
        self._began: datetime | None = None
        self._busy = ""
        self._plan: tuple[Planned, ...] = ()
        self._planned: datetime | None = None
        self._changed = False  # since it was planned

    def young(self, now: datetime) -> timedelta:
        """How long it takes until all who wait have asked; zero or less: they have."""
        self._began = self._began or now
        return self._began + YOUNG - now

    def wait(self, place: OpeningPlace, tickets: Iterable[Ticket], now: datetime) -> OpeningWait | None:
        """How long this place waits at least; None: it is its turn, until `done` is called."""
        self.young(now)
        name = place.subject.name
        known = self._places.get(name)
        self._places[name] = known.again(place) if known else place
        self._changed = self._changed or known is None or known.order != place.order
        if place.subject == OVERFLOW:
            return None
        settled = self._places[name].asked + self._limits.settle
        if (rest := self._rests.get(place.repository)) and rest.until > now:
            rest.first = min(rest.first, place, key=lambda other: other.order)
            return OpeningWait(max(rest.until, settled) - now if rest.first.subject == place.subject else LOOK)
        if settled > now:
            return OpeningWait(settled - now)
        opens = next(
            (planned.opens for planned in self._current(tickets, now) if planned.place.subject.name == name), now + SOON
        )
        if opens > now:
            self._wake(OVERFLOW)
            return OpeningWait(min(opens - now, LATEST), full=True)
        if self._busy or self._plan[0].place.subject.name != name:
            return OpeningWait(SOON)
        self._busy, self._granted[name] = name, now
        return None

    def done(self, name: str, *, begun: bool) -> None:
        """The turn is over. Where no issue was begun, it does not count; else its place is free."""
        if name == self._busy:
            self._busy, self._changed = "", True
            if not begun:
                self._granted.pop(name, None)
        if begun:
            self.leave(name)

    def failed(self, name: str, until: datetime, *, refused: bool) -> None:
        """Nothing was opened. What is refused holds no other up; else the repository is tried again then."""
        if refused:
            self.leave(name)
        elif known := self._places.get(name):
            rest = self._rests.get(known.repository)
            self._rests[known.repository] = Rest(max(until, rest.until) if rest else until, known)

    def leave(self, name: str) -> None:
        """No issue is to be opened for it now; whoever is next is woken."""
        if self._places.pop(name, None) is None:
            return
        self._plan = tuple(planned for planned in self._plan if planned.place.subject.name != name)
        if self._plan:
            self._wake(self._plan[0].place.subject)
        if name != OVERFLOW.name:
            self._wake(OVERFLOW)

    def backlog(self, tickets: Iterable[Ticket], now: datetime) -> Backlog | None:
        """What is not opened for now."""
        return backlog(self._current(tickets, now), self._limits, now)

    def _current(self, tickets: Iterable[Ticket], now: datetime) -> tuple[Planned, ...]:
        """The plan; where many wait it may be a second old."""
        old = self._planned is None or not timedelta(0) <= now - self._planned < ONE
        if old or (self._changed and len(self._places) <= FEW):
            ready = (place for place in self._places.values() if self._is_ready(place, now))
            self._plan = plan(ready, self._opened(tickets, now), self._limits, now)
            self._planned, self._changed = now, False
        return self._plan

    def _is_ready(self, place: OpeningPlace, now: datetime) -> bool:
        """Whether only its turn and the number of an hour keep it; one that does not ask any more keeps nobody."""
        rest = self._rests.get(place.repository)
        from_then = max(rest.until if rest else now, place.asked + self._limits.settle)
        return place.subject != OVERFLOW and from_then <= now < place.seen + STALE

    def _opened(self, tickets: Iterable[Ticket], now: datetime) -> list[datetime]:
        """When issues were begun within the last hour."""
        self._granted = {name: at for name, at in self._granted.items() if now - at < HOUR}
        begun = {ticket.name: at for ticket in tickets if (at := ticket.creating or ticket.opened) and now - at < HOUR}
        return list((begun | self._granted).values())
