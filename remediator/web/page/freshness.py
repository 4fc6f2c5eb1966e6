"""Of which moment what a replica shows is, and why it is not of now. Pure."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from remediator.core.duration import in_words

UNREACHED = "the API server cannot be reached"


@dataclass(frozen=True, slots=True)
class Freshness:
    """`as_of` None: something was never read. `why` "": it is of now."""

    now: datetime
    as_of: datetime | None
    why: str = ""

    @property
    def sentence(self) -> str:
        """For a reader; "" where nothing is to be said.

        >>> Freshness(datetime(2026, 1, 1, 14, 4), datetime(2026, 1, 1, 14, 3, 13), UNREACHED).sentence
        'Not live: what you see is of 14:03:13 UTC, 47 s ago: the API server cannot be reached.'
        """
        if not self.why:
            return ""
        if self.as_of is None:
            return f"Not live: not everything was read yet: {self.why}."
        day = "" if self.as_of.date() == self.now.date() else f"{self.as_of:%Y-%m-%d} "
        ago = in_words(self.now - self.as_of)
        return f"Not live: what you see is of {day}{self.as_of:%H:%M:%S} UTC, {ago} ago: {self.why}."


def freshness(now: datetime, silent: Mapping[str, float], answered: float, *, reached: bool) -> Freshness:
    """What the signs of life say.

    `silent`: by kind the seconds since the last sign of each watch that says nothing; `answered`: the seconds since the
    API server answered a read; `reached`: whether it answered the last one. Of several the oldest moment counts.
    """
    whys = () if reached else (UNREACHED,)
    if silent:
        whys = (*whys, f"the API server says nothing of {', '.join(sorted(silent))}")
    oldest = max([0.0, *silent.values(), *(() if reached else (answered,))])
    as_of = now - timedelta(seconds=oldest) if math.isfinite(oldest) else None
    return Freshness(now, as_of, " and ".join(whys))


def freshness_data(fresh: Freshness) -> dict[str, Any]:
    """As JSON."""
    return {"live": not fresh.why, "asOf": fresh.as_of, "sentence": fresh.sentence}
