"""Durations as Go writes them: "90s", "1m30s", "1.5h", "-100ms"."""

import re

# In nanoseconds; both ways to write the micro sign.
UNITS = {"ns": 1, "us": 1e3, "µs": 1e3, "μs": 1e3, "ms": 1e6, "s": 1e9, "m": 60e9, "h": 3600e9}
_ONE = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h)"
_WHOLE = re.compile(rf"[+-]?(?:0|(?:{_ONE})+)")
_PART = re.compile(r"([0-9.]+)([a-zµμ]+)")
_LIMIT = 2.0**63  # nanoseconds


def seconds(text: str) -> float:
    """The seconds that a Go duration says. Raises ValueError for anything that Go's time.ParseDuration refuses.

    >>> seconds("1m30.5s")
    90.5
    """
    if not _WHOLE.fullmatch(text):
        raise ValueError(f'{text!r} is no duration; write it with units, like "60s" or "1m30s"')
    total = sum(float(number) * UNITS[unit] for number, unit in _PART.findall(text))
    if total >= _LIMIT:
        raise ValueError(f"{text!r} is longer than the 292 years that a duration can hold")
    return (-total if text.startswith("-") else total) / 1e9
