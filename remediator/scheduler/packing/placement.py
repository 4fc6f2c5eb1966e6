"""The best way to place a task in a room, and what it does there."""

from operator import itemgetter
from typing import NamedTuple

from remediator.scheduler.packing.fragmentation import Fragmentation
from remediator.scheduler.packing.points import Outcome
from remediator.scheduler.packing.room import Room, Task, placed


class Placement(NamedTuple):
    """What is left, and how that compares."""

    room: Room
    outcome: Outcome


def best(room: Room, task: Task, fragmentation: Fragmentation) -> Placement | None:
    """On the card that leaves the least fragments; of equal ones that with the least free. None where none has room."""
    before = fragmentation.of(room)
    ways = [(before - fragmentation.of(way), way) for way in placed(room, task)]
    if not ways:
        return None
    gain, way = ways[0] if len(ways) == 1 else max(ways, key=itemgetter(0))
    return Placement(way, Outcome(gain, way.cpu, way.rest, way.cards))
