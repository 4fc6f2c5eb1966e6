"""Times and durations as we read them: whatever the wire says, arithmetic with them never overflows."""

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import overload

from remediator.kube import api

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LATEST = datetime(9000, 1, 1, tzinfo=UTC)  # a century before the end of what datetime can say
LONGEST = timedelta(days=36_500)  # and so is this after LATEST, and before EPOCH
LONGEST_TIME, TIMES = 64, 16_384  # characters of a time, and how many times are kept
NEWEST = 32  # of the times that were read last, each is one object


@overload
def moment(at: datetime) -> datetime: ...
@overload
def moment(at: None) -> None: ...
def moment(at: datetime | None) -> datetime | None:
    """A time of the wire in UTC, none before EPOCH or after LATEST; one without a zone is UTC."""
    return None if at is None else _moment(at)


@lru_cache(NEWEST)
def _moment(at: datetime) -> datetime:
    """The times of one object, and of those that are read with it, are often the same: each is kept once."""
    aware = at if at.tzinfo else at.replace(tzinfo=UTC)
    return min(max(aware, EPOCH), LATEST).astimezone(UTC)


def moment_of_node(text: str | None) -> datetime | None:
    """A time that a node's programs wrote. LATEST, which nobody believes, for what is no time or before EPOCH.

    A node writes the same time into dozens of conditions: it is read, and kept, once.
    """
    if not text:
        return None
    return _moment_of_node(text) if len(text) <= LONGEST_TIME else LATEST


@lru_cache(TIMES)
def _moment_of_node(text: str) -> datetime:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return LATEST
    return moment(at) if at.tzinfo and at >= EPOCH else LATEST


def duration(text: str) -> timedelta:
    """ "1h30m" as a timedelta, LONGEST at most."""
    return min(timedelta(seconds=api.seconds(text)), LONGEST)


def limited(text: str, field: str) -> timedelta:
    """The duration of a field. Raises ValueError, with its name, for one that was stored when it could be longer."""
    if api.too_long(text):
        raise ValueError(f"{field} is {text}: {api.AT_MOST.message}")
    return duration(text)
