"""How far our wall clock is from the API server's: by the header Date of its last answer, and how it moved since."""

from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import lru_cache

from remediator.clock import Clock
from remediator.kube.wire.transport import JSON, Query, Reply, Stream, Transport

MOST_SKEW = timedelta(seconds=30)
RESOLUTION = timedelta(seconds=1)  # of the header Date


class ServerClock:
    """Compares clocks with each answer to a request that goes through `request`."""

    def __init__(self, transport: Transport, clock: Clock) -> None:
        self._transport, self._wall, self._monotonic = transport, clock.wall, clock.monotonic
        self._compare(timedelta(0), clock.wall())

    @property
    def skew(self) -> timedelta:
        """How far the server's clock is ahead of ours, at least; negative where it is behind.

        Where our clock was set since the last answer, it has moved otherwise than monotonic time. Where an answer had
        no Date its part is zero: what cannot be told stops nobody.
        """
        passed = timedelta(0, self._monotonic() - self._answered_at)
        moved = self._wall() - self._answered - passed
        return self._skew if -RESOLUTION <= moved <= RESOLUTION else self._skew - moved

    @property
    def differs(self) -> bool:
        """Whether the clocks differ so much that times of objects cannot be compared with ours."""
        return not -MOST_SKEW <= self.skew <= MOST_SKEW

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Query = (),
        body: bytes = b"",
        content_type: str = JSON,
        accept: str = JSON,
        timeout: float = 30.0,
    ) -> Reply:
        """The same as that of a Transport."""
        asked = self._wall()
        reply = await self._transport.request(
            method, path, query=query, body=body, content_type=content_type, accept=accept, timeout=timeout
        )
        answered = self._wall()
        self._compare(_skew(reply.headers.get("date", ""), asked, answered), answered)
        return reply

    def _compare(self, skew: timedelta, answered: datetime) -> None:
        self._skew, self._answered, self._answered_at = skew, answered, self._monotonic()

    def stream(
        self, path: str, *, query: Query = (), idle_timeout: float = 75.0
    ) -> AbstractAsyncContextManager[Stream]:
        """The same as that of a Transport."""
        return self._transport.stream(path, query=query, idle_timeout=idle_timeout)

    async def close(self) -> None:
        """The same as that of a Transport."""
        await self._transport.close()


_dated = lru_cache(maxsize=4)(parsedate_to_datetime)  # whoever renews a Lease looks at it within the same second


def _skew(date: str, asked: datetime, answered: datetime) -> timedelta:
    """The answer was dated between question and answer, so only what lies outside of them is a difference."""
    try:
        dated = _dated(date)
        return max(dated - answered, timedelta(0)) + min(dated - asked + RESOLUTION, timedelta(0))
    except (TypeError, ValueError, OverflowError):  # no date, or one without a time zone
        return timedelta(0)
