"""The breaker of the whole fleet: when too many attempts start, it stops new ones. It never stops a recovery."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from remediator.core.case import Case


@dataclass(frozen=True, slots=True)
class Breaker:
    """At most `starts` disruptive attempts in any `window`."""

    starts: int = 10
    window: timedelta = timedelta(minutes=10)

    def opens(self, starts: Iterable[datetime], now: datetime) -> datetime | None:
        """None where one more start is allowed; else when the oldest that counts leaves the window."""
        recent = sorted(start for start in starts if start > now - self.window)
        return recent[len(recent) - self.starts] + self.window if len(recent) >= self.starts else None


def starts(cases: Iterable[Case]) -> list[datetime]:
    """When each disruptive attempt of these cases was started; one that a user stopped has disturbed somebody, too."""
    tries = (attempt for case in cases for attempt in case.attempts if attempt.counts and not attempt.follows)
    return [attempt.started for attempt in tries]
