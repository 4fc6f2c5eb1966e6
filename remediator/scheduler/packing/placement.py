"""The best way to place a task in a room, and what it does there."""

from typing import NamedTuple

from remediator.scheduler.packing.fragmentation import Fragmentation
from remediator.scheduler.packing.points import PlacementOutcome
from remediator.scheduler.packing.room import NodeRoom, Task, placed


class Placement(NamedTuple):
    """What is left, and how that compares."""

    room: NodeRoom
    outcome: PlacementOutcome


def best(room: NodeRoom, task: Task, fragmentation: Fragmentation) -> Placement | None:
    """On the card that leaves the least fragments; of equal ones that with the least free. None where none has room."""
    ways = placed(room, task)
    if not ways:
        return None
    before = fragmentation.of(room)
    way = ways[0] if len(ways) == 1 else max(ways, key=lambda way: before - fragmentation.of(way))
    return Placement(way, PlacementOutcome(before - fragmentation.of(way), way.cpu, way.rest, way.cards))
