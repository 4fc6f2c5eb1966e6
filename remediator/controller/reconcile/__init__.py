"""One pass over one object, a module per kind: observe, decide, act."""

from datetime import datetime
from typing import Protocol


class Reconciler(Protocol):
    """Passes over the objects of one kind."""

    async def reconcile(self, name: str, now: datetime) -> float | None:
        """One pass over one object; returns seconds until the next one, None where an event will ask for it."""
