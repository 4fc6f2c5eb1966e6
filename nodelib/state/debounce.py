"""Since when, and in how many runs in a row, each thing that a detector watches has been bad in this boot. Pure."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple


class Streak(NamedTuple):
    """`since`: when it was first seen bad, in seconds since boot; `runs`: in how many runs in a row by now."""

    since: float
    runs: int


def stand(bad: Iterable[str], before: Mapping[str, Streak], now: float) -> dict[str, Streak]:
    """Return how long each thing of `bad` has been so; what is not among them has its end, and begins anew one day."""
    found = {}
    for key in bad:
        last = before.get(key)
        found[key] = Streak(last.since, last.runs + 1) if last and last.since <= now else Streak(now, 1)
    return found


def lasts(standing: Streak | None, now: float, seconds: float, runs: int) -> bool:
    """Tell whether it has been so for `seconds`, and in so many runs."""
    return standing is not None and now - standing.since >= seconds and standing.runs >= runs
