"""A connection for commands that have begun something: a server that sheds load, or is away, is asked again."""

import asyncio
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from remediator.cli.common import err
from remediator.clock import SYSTEM

if TYPE_CHECKING:
    from remediator.kube.wire.transport import Reply, Transport

EVERY = 1.0  # seconds, unless the server says when to ask again
BUSY, AWAY = 429, 500


@dataclass(slots=True)
class PatientTransport:
    """Repeats each request until it is answered or the time is over; only for requests that may be made twice."""

    inner: "Transport"
    until: datetime
    announced: bool = False

    async def request(self, method: str, path: str, **options: Any) -> "Reply":
        """As `Transport`: once the time is over, the last refusal."""
        from remediator.kube.wire import errors

        while True:
            wait, why = EVERY, ""
            try:
                reply = await self.inner.request(method, path, **options)
                if (reply.status != BUSY and reply.status < AWAY) or SYSTEM.now() > self.until:
                    return reply
                why, after = f"HTTP {reply.status}", reply.headers.get("retry-after", "")
                wait = max(EVERY, float(after) if after.isdecimal() else 0.0)
            except errors.Unavailable as failed:
                if SYSTEM.now() > self.until:
                    raise
                why = failed.message
            self._tell(why)
            await asyncio.sleep(min(wait, max(0.0, (self.until - SYSTEM.now()).total_seconds())))

    def _tell(self, why: str) -> None:
        if not self.announced:
            err.print(f"remediator: the API server is busy or away ({why}): it is asked again")
        self.announced = True

    def stream(self, path: str, **options: Any) -> Any:
        """As `Transport`."""
        return self.inner.stream(path, **options)

    async def close(self) -> None:
        """As `Transport`."""
        await self.inner.close()
