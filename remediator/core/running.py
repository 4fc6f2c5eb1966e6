"""How the replica that leads was started, as far as others must know it; and whether one leads. Pure."""

import json
from dataclasses import dataclass
from datetime import datetime, timedelta

from remediator.core.absence import NEVER_AWAY, Absences
from remediator.core.breaker import Breaker
from remediator.core.duration import in_words

APART = timedelta(seconds=30)  # that the clocks of a leader and of the API server may differ, and ours from either


@dataclass(frozen=True, slots=True)
class Running:
    """Options of the replica that leads. As text it stands on its Lease."""

    breaker: Breaker
    api_pods_node_selector: str

    def __str__(self) -> str:
        options = {
            "starts": self.breaker.starts,
            "window": int(self.breaker.window.total_seconds()),
            "apiPodsNodeSelector": self.api_pods_node_selector,
        }
        return json.dumps(options)


def read(text: str) -> Running | None:
    """What str() of it has written; None for anything else.

    >>> read('{"starts": 3, "window": 60, "apiPodsNodeSelector": "!gpu"}')
    Running(breaker=Breaker(starts=3, window=datetime.timedelta(seconds=60)), api_pods_node_selector='!gpu')
    """
    try:
        options = json.loads(text)
        breaker = Breaker(int(options["starts"]), timedelta(seconds=int(options["window"])))
        return Running(breaker, str(options["apiPodsNodeSelector"]))
    except (ValueError, KeyError, TypeError, OverflowError):
        return None


@dataclass(frozen=True, slots=True)
class Leading:
    """What the Lease says of who leads. `running` None: an older version, which does not tell how it was started."""

    holder: str = ""
    renewed: datetime | None = None
    lasts: timedelta = timedelta(0)
    running: Running | None = None
    absences: Absences = NEVER_AWAY

    def leads(self, now: datetime) -> bool:
        """Whether some replica leads, as far as anybody can tell whose clock is not the server's."""
        return bool(self.holder) and self.renewed is not None and now - self.renewed <= self.lasts + APART

    def described(self, now: datetime) -> str:
        """In one phrase.

        >>> Leading().described(datetime(2026, 1, 1))
        'no replica of the controller has led yet'
        """
        if self.renewed is None:
            return "no replica of the controller has led yet"
        ago = in_words(now - self.renewed)
        if self.leads(now):
            return f"{self.holder} leads, last heard of {ago} ago"
        since = f"(for {ago}, since {self.renewed:%Y-%m-%d %H:%M:%S} UTC)"
        return f"no replica leads {since}: nothing starts or ends until one does"
