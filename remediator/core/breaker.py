"""The breaker of the whole fleet: when too many attempts start, it stops new ones. It never stops a recovery."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from remediator.core.case import Case


class DisruptiveStart(NamedTuple):
    """When something disruptive was started, the uid of the case, and the node; "" where nobody knows it."""

    at: datetime
    case: str
    node: str = ""


@dataclass(frozen=True, slots=True)
class Breaker:
    """At most `starts` disruptive attempts in any `window`."""

    starts: int = 10
    window: timedelta = timedelta(minutes=10)

    def opens(self, starts: Iterable[datetime], now: datetime) -> datetime | None:
        """None where one more start is allowed; else when the oldest that counts leaves the window."""
        return self.opened(self.recent(starts, now))

    def opened(self, recent: Sequence[datetime]) -> datetime | None:
        """The same by the starts that count alone, the oldest first."""
        return recent[len(recent) - self.starts] + self.window if len(recent) >= self.starts else None

    def recent(self, starts: Iterable[datetime], now: datetime) -> list[datetime]:
        """The starts that count, the oldest first."""
        return sorted(start for start in starts if start > now - self.window)

    def admitted(self, case: Case, now: datetime) -> bool:
        """Whether the next attempt of a case was admitted with its claim: the first one, while that claim counts.

        A first attempt that comes later, since its case was stopped or its diagnosis took long, is asked about again.
        """
        asked = _asked(case)
        return asked is not None and asked > now - self.window


def starts(cases: Iterable[Case]) -> list[DisruptiveStart]:
    """When and where each disruptive attempt of these cases was started.

    One that a user stopped has disturbed somebody, too. A claim counts as the start that it asked for until its first
    attempt is there.
    """
    known = list(cases)
    tries = (
        (attempt, case)
        for case in known
        for attempt in case.attempts
        if attempt.counts and not (attempt.follows or attempt.probe)
    )
    coming = [DisruptiveStart(claimed, case.uid, case.node) for case in known if (claimed := _asked(case)) is not None]
    return [*(DisruptiveStart(attempt.started, case.uid, case.node) for attempt, case in tries), *coming]


def _asked(case: Case) -> datetime | None:
    """When the claim was admitted whose first attempt is still to come; None where there is none."""
    coming = case.claimed and not case.attempts and not case.unreadable and case.takes_capacity
    return case.started or case.created if coming else None
