"""The clocks of a simulation: one monotonic time, and a wall clock for each host that may be wrong."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from remediator.clock import Clock

BEGIN = datetime(2026, 11, 20, 9, tzinfo=UTC)


def now() -> float:
    """Seconds since the simulation began."""
    return asyncio.get_running_loop().time()


def true_time() -> datetime:
    """What a clock shows that is right: that of the loop, where it has one."""
    loop = asyncio.get_running_loop()
    wall = getattr(loop, "wall", None)
    return _at(loop.time()) if wall is None else wall()


@lru_cache(maxsize=1)
def _at(seconds: float) -> datetime:
    """The time so many seconds after the begin: what one turn asks again and again."""
    return BEGIN + timedelta(0, seconds)


async def until(holds: Callable[[], bool], every: float) -> None:
    """Wait for something, looking every so many seconds, which are virtual."""
    while not holds():  # noqa: ASYNC110
        await asyncio.sleep(every)


class HostClock:
    """A wall clock; `ahead` is by how many seconds it is fast."""

    def __init__(self, ahead: float = 0.0) -> None:
        self._ahead, self.moved = ahead, float("-inf")

    @property
    def ahead(self) -> float:
        """By how many seconds it is fast; `moved` is when that last changed."""
        return self._ahead

    @ahead.setter
    def ahead(self, seconds: float) -> None:
        self._ahead, self.moved = seconds, now()

    def wall(self) -> datetime:
        """The time that it shows, aware UTC."""
        return true_time() + timedelta(seconds=self._ahead) if self._ahead else true_time()

    @property
    def clock(self) -> Clock:
        """What the product is given. It is asked without end: in a loop, monotonic time comes from that one itself."""
        try:
            return Clock(self.wall, asyncio.get_running_loop().time)
        except RuntimeError:
            return Clock(self.wall, now)
