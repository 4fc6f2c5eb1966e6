"""I11: bad data harms only its own object."""

from collections.abc import Iterator

from remediator_sim.invariants.contract import clock
from remediator_sim.invariants.event import Event
from remediator_sim.invariants.history import History
from remediator_sim.invariants.results import HELD


def written(history: History, event: Event) -> Iterator[str]:
    """Somebody wrote an object that cannot be read, or that says what cannot be. Counts each; harm tells of itself."""
    yield HELD


def harmed(history: History, event: Event) -> Iterator[str]:
    """A pass failed in a way that nobody expected, or a replica ended by itself."""
    yield f"{event.obj['text']} at {clock(event.at)}"
