"""Time in which we could not act: paused, without a leader or news of the cluster. It counts against no deadline."""

from dataclasses import dataclass
from datetime import datetime, timedelta

MOST_GAPS = 64
APART = timedelta(minutes=1)  # the clocks of two leaders: each may be half a minute from the server's


@dataclass(frozen=True, slots=True)
class Gap:
    """From `begin` to `end` nothing could be done."""

    begin: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class Absences:
    """Gaps, oldest first; none touches another. Of too many, those that lie nearest to each other are one."""

    gaps: tuple[Gap, ...] = ()

    @property
    def regained(self) -> datetime | None:
        """When we last could act again; None where we always could."""
        return self.gaps[-1].end if self.gaps else None

    def including(self, begin: datetime, end: datetime) -> "Absences":
        """With one more gap; gaps that touch become one."""
        if begin >= end:
            return self
        apart = [gap for gap in self.gaps if gap.end < begin or gap.begin > end]
        touching = [gap for gap in self.gaps if gap not in apart]
        whole = Gap(min([begin, *(gap.begin for gap in touching)]), max([end, *(gap.end for gap in touching)]))
        gaps = sorted([*apart, whole], key=lambda gap: gap.begin)
        return Absences(tuple(gaps if len(gaps) <= MOST_GAPS else _joined(gaps)))

    def until(self, now: datetime) -> "Absences":
        """Those of them that are over or began before `now`, cut at it: a clock that was ahead has seen the others."""
        return Absences(tuple(Gap(gap.begin, min(gap.end, now)) for gap in self.gaps if gap.begin < now))

    def deadline(self, start: datetime, time: timedelta) -> datetime:
        """When we will have been able to act for so long since `start`, if there is no other gap.

        >>> from datetime import UTC
        >>> noon, minute = datetime(2026, 1, 1, 12, tzinfo=UTC), timedelta(minutes=1)
        >>> paused = Absences().including(noon + 10 * minute, noon + 40 * minute)
        >>> [f"{paused.deadline(noon + begin * minute, 30 * minute):%H:%M}" for begin in (0, 20, 50)]
        ['13:00', '13:10', '13:20']
        """
        end = start + time
        for gap in self.gaps:
            if gap.begin < end:
                end += max(gap.end - max(gap.begin, start), timedelta(0))
        return end

    def time_for_news(self, otherwise: datetime, staleness: timedelta) -> datetime:
        """Until when evidence may be missing only because we were away; `otherwise` where we never were."""
        return self.regained + staleness if self.regained else otherwise

    def __str__(self) -> str:
        return ",".join(f"{gap.begin.isoformat()}/{gap.end.isoformat()}" for gap in self.gaps)


def _joined(gaps: list[Gap]) -> list[Gap]:
    """One gap fewer: the time between the two nearest ones counts as absence, too. So a deadline only moves on."""
    left = min(range(len(gaps) - 1), key=lambda number: gaps[number + 1].begin - gaps[number].end)
    return [*gaps[:left], Gap(gaps[left].begin, gaps[left + 1].end), *gaps[left + 2 :]]


NEVER_AWAY = Absences()


def read(text: str, now: datetime) -> Absences:
    """What str() of it has written, as far as it is over: who wrote it may have a clock that is ahead of ours."""
    absences = Absences()
    for gap in text.split(",")[:MOST_GAPS]:
        try:
            begin, end = (datetime.fromisoformat(time) for time in gap.split("/"))
        except ValueError:
            continue
        if begin.tzinfo and end.tzinfo and end <= now + APART:
            absences = absences.including(begin, min(end, now))
    return absences
