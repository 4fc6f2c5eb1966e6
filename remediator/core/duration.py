"""How a length of time is written: by people in options and objects, and for people. Pure."""

import re
from datetime import timedelta

FORM = "([0-9]{1,6}(ms|s|m|h|d))+"
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_UNITS = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))


def part_seconds(text: str) -> list[float]:
    """The seconds of each part: "1h30m" is 3600.0 and 1800.0. Raises ValueError for what is not of FORM."""
    if not re.fullmatch(FORM, text):
        raise ValueError(f"not a duration: {text!r}")
    return [int(count) * _SECONDS[unit] for count, unit in re.findall(r"([0-9]+)(ms|s|m|h|d)", text)]


def in_words(length: timedelta) -> str:
    """The two largest units of a length of time, rounded down; "0 s" for none and for less than none.

    >>> in_words(timedelta(hours=3, minutes=20, seconds=59))
    '3 h 20 min'
    """
    left, parts = max(0, int(length.total_seconds())), []
    for unit, size in _UNITS:
        count, left = divmod(left, size)
        parts.append(f"{count} {unit}" if count else "")
    first = next((index for index, part in enumerate(parts) if part), len(parts) - 1)
    return " ".join(part for part in parts[first : first + 2] if part) or "0 s"
