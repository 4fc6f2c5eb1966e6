"""GitHub's rate limits: an hour's for REST and for GraphQL, a minute's for search, and how much content may be made."""

import math
from collections import deque
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from remediator_sim.github.refusal import Refusal

SECONDARY = (
    "You have exceeded a secondary rate limit. Please wait a few minutes before you try again. "
    "If you reach out to GitHub Support for help, please include the request ID."
)
PRIMARY = "API rate limit exceeded for user ID 1."


@dataclass(slots=True)
class _Quota:
    """So many requests in a window that starts with the first of them."""

    limit: int
    seconds: int
    used: int = 0
    reset: float = 0.0

    def roll(self, now: float) -> None:
        if now >= self.reset:
            self.used, self.reset = 0, now + self.seconds

    @property
    def left(self) -> int:
        return max(0, self.limit - self.used)

    def shown(self) -> dict[str, int]:
        return {"limit": self.limit, "remaining": self.left, "reset": math.ceil(self.reset), "used": self.used}


@dataclass(slots=True)
class TokenLimits:
    """What one token has left. Change the numbers at will: `core`, `graphql`, `search`, `creations` as (count, s)."""

    core: _Quota = field(default_factory=lambda: _Quota(5000, 3600))
    search: _Quota = field(default_factory=lambda: _Quota(30, 60))
    graphql: _Quota = field(default_factory=lambda: _Quota(5000, 3600))
    creations: tuple[tuple[int, float], ...] = ((80, 60.0), (500, 3600.0))
    _made: deque[float] = field(default_factory=lambda: deque(maxlen=1000))

    def quota(self, resource: str, now: datetime) -> _Quota:
        """The quota of that name (core, search, graphql), as it is now."""
        rate = {"search": self.search, "graphql": self.graphql}.get(resource, self.core)
        rate.roll(now.timestamp())
        return rate

    def spend(self, resource: str, now: datetime, *, creates: bool) -> None:
        """Count one request.

        Raises:
            Refusal: 403, over the quota or over what may be created.
        """
        quota = self.quota(resource, now)
        if not quota.left:
            raise Refusal(403, PRIMARY)
        quota.used += 1
        if creates:
            self._create(now.timestamp())

    def _create(self, now: float) -> None:
        waits = [self._made[-n] + seconds - now for n, seconds in self.creations if len(self._made) >= n]
        if waits and max(waits) > 0:
            raise Refusal(403, SECONDARY, headers={"retry-after": str(math.ceil(max(waits)))})
        self._made.append(now)

    def headers(self, resource: str, now: datetime) -> dict[str, str]:
        """As every answer carries them."""
        shown = self.quota(resource, now).shown()
        return {f"x-ratelimit-{name}": str(value) for name, value in shown.items()} | {"x-ratelimit-resource": resource}

    def overview(self, now: datetime) -> dict[str, Any]:
        """The body of GET /rate_limit."""
        core, search = (self.quota(name, now).shown() for name in ("core", "search"))
        return {"resources": {"core": core, "search": search}, "rate": core}
