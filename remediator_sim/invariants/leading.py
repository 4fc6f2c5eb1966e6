"""I1 and I3: only who holds the Lease writes what is ours, and nobody whose clock is far from the API server's."""

from collections.abc import Iterator

from remediator_sim.invariants.contract import clock
from remediator_sim.invariants.event import Event
from remediator_sim.invariants.history import History


def holds_the_lease(history: History, event: Event) -> Iterator[str]:
    """A replica wrote what only the leader writes, or took the Lease. Tells of what is wrong with that."""
    if event.obj["lease"]:
        yield f"{event.obj['lease']} at {clock(event.at)}"


def knows_the_time(history: History, event: Event) -> Iterator[str]:
    """The same by the clock of the replica."""
    if event.obj["clock"]:
        yield f"{event.obj['clock']} at {clock(event.at)}"
