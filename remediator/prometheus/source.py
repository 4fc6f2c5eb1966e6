"""What the parts of a replica ask Prometheus through; without its client, which takes 6 MiB."""

from datetime import timedelta
from typing import Protocol

from remediator.prometheus.reading import Reading

AT_ONCE = 4  # questions


class Source(Protocol):
    """What answers questions in PromQL."""

    async def instant(self, query: str, within: timedelta) -> Reading:
        """The samples of a query now, none older than `within`; or why nobody can tell."""
