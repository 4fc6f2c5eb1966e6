"""Times to live and expiry times as people write them in annotations and rules. Pure."""

import re
from datetime import UTC, datetime, timedelta

FOREVER = "forever"
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
LONGEST = timedelta(days=36_500)
YEARS = range(1970, 3000)  # sums with the longest TTL stay inside of what a time can be
TTL_FORM = f"write a number with s, m, h, d or w, such as 90m, 1h30m or 7d, or {FOREVER}"
EXPIRY_FORM = "write a time in UTC, such as 2026-12-31, 2026-12-31T18:00 or 2026-12-31T18:00:00Z"
_PARTS = re.compile(r"(?:[0-9]+[smhdw])+")
_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]+)?)?(Z|[+-][0-9]{2}:?[0-9]{2})?)?"
)


class UnreadableTime(ValueError):
    """A text that names no time, and what to write instead."""


def parse_ttl(text: str) -> timedelta | None:
    """How long something may live; None is for ever. Raises Unreadable.

    >>> parse_ttl("1h30m")
    datetime.timedelta(seconds=5400)
    """
    word = text.strip()
    if word == FOREVER:
        return None
    if not _PARTS.fullmatch(word):
        raise UnreadableTime(f"{text[:64]!r} is no length of time: {TTL_FORM}")
    seconds = sum(int(number[:12]) * UNITS[unit] for number, unit in re.findall(r"([0-9]+)([smhdw])", word))
    if seconds == 0:
        raise UnreadableTime(f"{text[:64]!r} would delete at once: {TTL_FORM}")
    if seconds > LONGEST.total_seconds():
        raise UnreadableTime(f"{text[:64]!r} is longer than 100 years: write {FOREVER}")
    return timedelta(seconds=seconds)


def parse_expiry(text: str) -> datetime:
    """A moment; without a zone it is in UTC, and without a time of day the day's first. Raises Unreadable."""
    word = text.strip()
    if not _TIME.fullmatch(word):
        raise UnreadableTime(f"{text[:64]!r} is no time: {EXPIRY_FORM}")
    moment = _moment(word)
    if moment is None or moment.year not in YEARS:
        raise UnreadableTime(f"{text[:64]!r} is no time that can be meant: {EXPIRY_FORM}")
    return moment


def _moment(word: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(word)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def in_units(length: timedelta) -> str:
    """A length of time as a TTL is written.

    >>> in_units(timedelta(hours=25)), in_units(timedelta(days=14))
    ('1d1h', '2w')
    """
    seconds = int(length.total_seconds())
    if seconds <= 0:
        return f"{seconds}s"
    parts = []
    for unit, size in reversed(UNITS.items()):
        count, seconds = divmod(seconds, size)
        parts += [f"{count}{unit}"] if count else []
    return "".join(parts)
