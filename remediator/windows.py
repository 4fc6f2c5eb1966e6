"""When windows of policies are open, by the cron triggers of apscheduler. Pure: cron, zone and time in, a value out."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

from apscheduler.triggers.cron import CronTrigger

from remediator.core.window import (
    CRON,
    FIELDS,
    LONGEST,
    ONE_DAY,
    OPEN,
    SHORTEST,
    ZONES,
    Closed,
    InvalidWindow,
    Shut,
    Window,
)

MOMENT, SECOND = timedelta(microseconds=1), timedelta(seconds=1)  # triggers know whole seconds
# A clock that is set forward skips no more than this. What would begin in between, begins as much later by that clock.
SKIPPED = timedelta(hours=3)
DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
ORDINARY_YEAR, OPENINGS = datetime(2026, 1, 1, tzinfo=UTC), 1000
LEAP_YEARS = "2000-2008"  # every day that there is comes in them
KEPT = 1024
FOR_EVER = datetime.max.replace(tzinfo=UTC)


class WrongCron(ValueError):
    """What is wrong with a cron expression, and what to write instead."""


class _Spell(NamedTuple):
    """What windows say until a moment; at that moment they say something else."""

    shut: Shut | None
    until: datetime


def shut(windows: tuple[Window, ...], now: datetime) -> Shut | None:
    """Whether windows let nothing start now; None where one is open, or where there are none.

    A window is open from the moment that its cron names, and that moment itself, until its duration is over. Of
    windows that overlap one is enough.
    """
    spell = _spell(windows, now.replace(second=0, microsecond=0))  # every pass asks: once a minute it is worked out
    while spell.until <= now:
        spell = _spell(windows, spell.until)
    return spell.shut


@lru_cache(KEPT)
def _spell(windows: tuple[Window, ...], now: datetime) -> _Spell:
    wrong = next(problems(windows), None)
    if wrong is not None or not windows:
        return _Spell(wrong, FOR_EVER)
    opens = [(_first_after(window, now - window.duration), window.duration) for window in windows]
    closes = [at + duration for at, duration in opens if at <= now]
    if closes:
        return _Spell(None, max(closes))
    first = min(at for at, _ in opens)
    return _Spell(Closed(first), first)


@lru_cache(KEPT)
def opened(window: Window, now: datetime) -> datetime | None:
    """Since when the window is open; None where it is closed, or nobody can tell. Of openings that overlap the first
    one that lasts counts.
    """
    if next(problems((window,)), None) is not None:
        return None
    at = _first_after(window, now - window.duration)
    return at if at <= now else None


@lru_cache(KEPT)
def _problems(windows: tuple[Window, ...]) -> tuple[InvalidWindow, ...]:
    invalid = (
        InvalidWindow(f"windows[{index}].{field}", why)
        for index, window in enumerate(windows)
        for field, why in _wrong(window)
    )
    return tuple(invalid)


def problems(windows: tuple[Window, ...]) -> Iterator[InvalidWindow]:
    """All that is wrong with windows, each with its field and what to do."""
    return iter(_problems(windows))


def _wrong(window: Window) -> Iterator[tuple[str, str]]:
    if not SHORTEST <= window.duration <= LONGEST:
        yield "duration", OPEN
    try:
        zone(window.zone)
    except WrongCron as wrong:
        yield "timeZone", str(wrong)
    try:
        _trigger(window.cron, "UTC")
    except WrongCron as wrong:
        yield "cron", str(wrong)


def zone(name: str) -> ZoneInfo:
    """A time zone of the IANA database. Raises WrongCron."""
    try:
        return ZoneInfo(name)
    except (LookupError, OSError, ValueError):
        raise WrongCron(f"{name!r} is unknown: {ZONES}") from None


def always_open(window: Window) -> bool:
    """Whether the window never closes the first 1,000 times that it opens. Only for one that has no problems."""
    at = _first_after(window, ORDINARY_YEAR)
    for _ in range(OPENINGS):
        after = _first_after(window, at)
        if after - at > window.duration:
            return False
        at = after
    return True


def _first_after(window: Window, when: datetime) -> datetime:
    """When the window opens for the first time after `when`, in UTC.

    The trigger knows of a beginning that a clock skips only when it is asked from before the jump.
    """
    trigger, place = _trigger(window.cron, window.zone), zone(window.zone)
    jumped = _offset(when + SECOND, place) > _offset(when - SKIPPED, place)
    at = _next(trigger, when - SKIPPED if jumped else when)
    while at <= when:
        at = _next(trigger, at)
    return at


def _offset(when: datetime, place: ZoneInfo) -> timedelta:
    return when.astimezone(place).utcoffset() or timedelta()


def _next(trigger: CronTrigger, after: datetime) -> datetime:
    at: datetime = trigger.get_next_fire_time(None, after + MOMENT)
    return at.astimezone(UTC)


@lru_cache(KEPT)
def _trigger(cron: str, name: str) -> CronTrigger:
    """The trigger of a cron expression. Raises WrongCron for one that cannot be read, or that never comes."""
    if not re.match(CRON, cron):
        raise WrongCron(f"{cron!r} is not {FIELDS}")
    minute, hour, day, month, weekday = cron.split(" ")
    if "*" not in (day, weekday):
        raise WrongCron(ONE_DAY)
    words = {"minute": minute, "hour": hour, "day": day, "month": month, "day_of_week": _weekdays(weekday)}
    try:
        known = CronTrigger(year=LEAP_YEARS, **words, timezone=UTC)
        if known.get_next_fire_time(None, datetime(2000, 1, 1, tzinfo=UTC)) is None:
            raise WrongCron(f"{cron!r} never comes; correct the day and the month")
        return CronTrigger(year="*", **words, timezone=zone(name))
    except WrongCron:
        raise
    except (ValueError, OverflowError) as wrong:
        raise WrongCron(f"{cron!r} cannot be read ({wrong}); write such as 0 2 * * 1-5") from None


def _weekdays(field: str) -> str:
    """The days by name: the trigger counts from Monday, where cron counts from Sunday. Raises WrongCron."""
    if field == "*":
        return field
    days = {day for part in field.split(",") for day in _days(part)}
    return ",".join(DAYS[day] for day in sorted(days))


def _days(part: str) -> list[int]:
    """The numbers of the days, 0 for Sunday, that one part of a list names: 5, fri, 1-5, mon-fri, */2, 1-5/2."""
    days, _, step = part.partition("/")
    first, _, last = ("0-6" if days == "*" else days).partition("-")
    begin, end = _day(first), _day(last) if last else 6 if step else _day(first)
    if end < begin and end == 0:
        end = 7  # fri-sun
    if end < begin:
        raise WrongCron(f"{part!r} names no days of the week; write such as 1-5 or mon,wed")
    return [day % 7 for day in range(begin, end + 1, int(step or 1))]


def _day(word: str) -> int:
    return DAYS.index(word) if word in DAYS else int(word)
