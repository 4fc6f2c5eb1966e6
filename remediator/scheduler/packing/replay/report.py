"""What a replay has shown: how much of the cards was given away, and how much of the rest is fragments."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from random import Random
from statistics import fmean, stdev

from remediator.scheduler.packing.fragmentation import Fragmentation
from remediator.scheduler.packing.replay.engine import ReplayFleet, ScoringPolicy
from remediator.scheduler.packing.replay.trace import Trace, tuned
from remediator.scheduler.packing.workload import Workload, shares

MARKS = (90, 100, 130)  # what has arrived, in per cent of the cards
FIRST_SEED = 42


@dataclass(frozen=True, slots=True)
class Run:
    """One policy, one order of nodes and Pods. Per cent of all cards, at each mark."""

    allocated: Mapping[int, float]
    fragmented: Mapping[int, float]
    largest_refused: int  # Pods of as many cards as the largest nodes have
    largest: int


@dataclass(frozen=True, slots=True)
class Summary:
    """The mean of runs."""

    list: str
    policy: str
    seeds: int
    allocated: Mapping[int, float]
    fragmented: Mapping[int, float]
    deviation: float  # of what is allocated at the last mark, from run to run
    largest_refused: float
    largest: float


def workload_of(trace: Trace) -> Workload:
    """Of the whole list: what nobody knows beforehand outside a replay."""
    return shares(Counter(arrival.task for arrival in trace.arrivals))


def play(trace: Trace, policy: ScoringPolicy, seed: int) -> Run:
    """All Pods arrive, none leaves; one that fits nowhere is left out. Fragments are counted by the whole list."""
    chance = Random(seed)
    machines, arrivals = tuned(trace, chance)
    fleet, measured, capacity = ReplayFleet(machines, policy, chance), Fragmentation(workload_of(trace)), trace.capacity
    fragments = sum(measured.of(room) for room in fleet.rooms)
    largest = max(machine.room.cards for machine in machines)
    arrived = allocated = refused = asked = 0
    allocated_at: dict[int, float] = {}
    fragmented_at: dict[int, float] = {}
    for arrival in arrivals:
        arrived += arrival.milli
        placed = fleet.place(arrival)
        asked += arrival.task.cards == largest
        refused += placed is None and arrival.task.cards == largest
        if placed is not None:
            at, before = placed
            allocated += arrival.milli
            fragments += measured.of(fleet.rooms[at]) - measured.of(before)
        for mark in MARKS[:-1]:
            if mark not in allocated_at and arrived * 100 >= mark * capacity:
                allocated_at[mark], fragmented_at[mark] = allocated, fragments
    allocated_at[MARKS[-1]], fragmented_at[MARKS[-1]] = allocated, fragments
    return Run(_percent(allocated_at, trace), _percent(fragmented_at, trace), refused, asked)


def _percent(millis: Mapping[int, float], trace: Trace) -> dict[int, float]:
    return {mark: 100 * value / trace.capacity for mark, value in millis.items()}


def summary(name: str, policy: str, runs: Iterable[Run]) -> Summary:
    """The mean of at least one run."""
    runs = list(runs)
    last = [run.allocated[MARKS[-1]] for run in runs]
    return Summary(
        name,
        policy,
        len(runs),
        {mark: round(fmean(run.allocated[mark] for run in runs), 2) for mark in MARKS},
        {mark: round(fmean(run.fragmented[mark] for run in runs), 2) for mark in MARKS},
        round(stdev(last), 2) if len(last) > 1 else 0.0,
        round(fmean(run.largest_refused for run in runs), 1),
        round(fmean(run.largest for run in runs), 1),
    )
