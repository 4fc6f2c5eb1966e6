"""Lists of nodes and Pods that are made up: as mixed as those of large clusters, and small enough to play at once."""

from random import Random

from remediator.scheduler.packing.replay.trace import Arrival, Trace, TraceNode, arrival, machine
from remediator.scheduler.packing.room import CARD, CORE

NAME = "synthetic"
SEED = 7
GIB = 1024  # MiB
# how many, cores, memory in GiB, cards, their model
NODES: tuple[tuple[int, int, int, int, str], ...] = (
    (40, 96, 768, 8, "A100"),
    (12, 128, 1024, 8, "H100"),
    (30, 64, 256, 4, "L40S"),
    (24, 16, 64, 2, "T4"),
)
# weight, cores, memory in GiB, cards, thousandths of each, models
PODS: tuple[tuple[int, int, int, int, int, tuple[str, ...]], ...] = (
    (20, 8, 32, 1, CARD, ()),
    (12, 12, 64, 1, CARD, ()),
    (6, 4, 16, 1, CARD, ("T4", "L40S")),
    (4, 16, 96, 1, CARD, ("A100", "H100")),
    (14, 4, 16, 1, 500, ()),
    (10, 6, 24, 1, 250, ()),
    (5, 8, 32, 1, 700, ()),
    (3, 16, 128, 2, CARD, ()),
    (2, 40, 256, 4, CARD, ()),
    (2, 80, 640, 8, CARD, ()),
    (6, 8, 32, 0, 0, ()),
    (4, 24, 96, 0, 0, ()),
)
COUNT = 900  # Pods


def synthetic() -> Trace:
    """The same lists each time."""
    chance = Random(SEED)
    rows = chance.choices(PODS, [row[0] for row in PODS], k=COUNT)
    return Trace(NAME, _machines(), tuple(_arrival(row, chance.choice((0, 1, 2))) for row in rows))


def _machines() -> tuple[TraceNode, ...]:
    kinds = [row for row in NODES for _ in range(row[0])]
    return tuple(
        machine(f"node-{index:03}", cores * CORE, memory * GIB, cards, model)
        for index, (_, cores, memory, cards, model) in enumerate(kinds)
    )


def _arrival(row: tuple[int, int, int, int, int, tuple[str, ...]], more: int) -> Arrival:
    """`more`: cores beyond those of the kind."""
    _, cores, memory, cards, milli, models = row
    return arrival((cores + more) * CORE, memory * GIB, cards, milli, models)
