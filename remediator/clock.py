"""The only module that reads the time. All other code gets a Clock as an argument and can run in virtual time."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime


@dataclass(frozen=True, slots=True)
class Clock:
    """Wall time and monotonic time of one process. `wall` gives aware UTC; `monotonic` gives seconds."""

    wall: Callable[[], datetime]
    monotonic: Callable[[], float]

    def now(self) -> datetime:
        """The wall time in whole seconds, as the API keeps it."""
        return self.wall().replace(microsecond=0)


def _utc() -> datetime:
    return datetime.now(UTC)


SYSTEM = Clock(_utc, time.monotonic)
