"""Events that give way: of claims and holds whose status is written, while others have theirs still to be written.

They are kept in memory only. Who leads next creates what the one before may not have got to; an Event that is there
already stays as it is, since its name follows from what it says.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from remediator.controller.effects import CreateEvents
from remediator.controller.perform import Performer
from remediator.core.case import Case

WAITS = timedelta(minutes=2)  # longer than any Event gives way


class PendingEvents:
    """Events that are still to be created, of one change of each open case at most."""

    def __init__(self) -> None:
        self._events: dict[str, CreateEvents] = {}  # by the name of the case

    def __contains__(self, case: object) -> bool:
        return case in self._events

    def add(self, events: CreateEvents) -> None:
        """Create these with the next pass over their case; the ones before must have been created."""
        if events.events:
            self._events[events.case.name] = events

    def resume(self, cases: Iterable[Case], renewed: datetime | None) -> None:
        """We lead, and who led before has renewed the lease at this time last; None where nobody did."""
        if renewed is None:
            return
        for case in cases:
            self.add(CreateEvents(case, tuple([event for event in case.timeline if event.at + WAITS >= renewed])))

    async def create(self, case: str, performer: Performer) -> None:
        """Create those of the case of this name."""
        events = self._events.pop(case, None)
        if events is not None:
            await performer.all([events])

    def clear(self) -> None:
        """Forget all."""
        self._events.clear()
