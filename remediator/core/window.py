"""The times in which cases of a policy may start. When they open is calculated in remediator/windows.py."""

from dataclasses import dataclass
from datetime import datetime, timedelta

_MINUTE, _HOUR, _DAY = "[0-5]?[0-9]", "([01]?[0-9]|2[0-3])", "([1-9]|0[1-9]|[12][0-9]|3[01])"
_MONTH = "([1-9]|0[1-9]|1[0-2]|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)"
_WEEKDAY = "([0-7]|sun|mon|tue|wed|thu|fri|sat)"


def _list_of(value: str) -> str:
    part = f"([*]|{value}(-{value})?)(/[1-9][0-9]?)?"
    return f"{part}(,{part})*"


# Minute, hour, day of the month, month, day of the week, as a CronJob has them.
CRON = f"^{' '.join(map(_list_of, (_MINUTE, _HOUR, _DAY, _MONTH, _WEEKDAY)))}$"

# What to write instead of what is refused.
FIELDS = "minute, hour, day of the month, month and day of the week; write such as 0 2 * * 1-5"
ONE_DAY = "must leave the day of the month or the day of the week at *; write two windows instead"
OPEN = "must be from 1m to 168h; write several windows for more"
ZONES = "must be the name of a time zone; write such as Asia/Tokyo, Europe/Berlin or UTC"
SHORTEST, LONGEST = timedelta(minutes=1), timedelta(days=7)  # of one window


@dataclass(frozen=True, slots=True)
class Window:
    """Opens whenever `cron` says so, by the clocks of the time zone, and stays open for as long as `duration`."""

    cron: str
    duration: timedelta
    zone: str = "UTC"


@dataclass(frozen=True, slots=True)
class Closed:
    """No window is open; the next one opens then."""

    until: datetime


@dataclass(frozen=True, slots=True)
class InvalidWindow:
    """Nobody can tell when a window opens: `field` is the field below `spec` that is wrong."""

    field: str
    why: str


Shut = Closed | InvalidWindow
