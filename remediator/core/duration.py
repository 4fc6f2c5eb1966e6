"""How a length of time is written for a person. Pure."""

from datetime import timedelta

_UNITS = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))


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
