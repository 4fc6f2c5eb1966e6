"""Fragmentation of a node, by the definition of the paper, and what a placement does to it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remediator.scheduler.attributes.catalog import facts_of
from remediator.scheduler.attributes.selector import ANYTHING, selector
from remediator.scheduler.packing.fragmentation import Fragmentation
from remediator.scheduler.packing.placement import best
from remediator.scheduler.packing.room import CARD, NodeRoom, Task

GPU = "nvidia.com/gpu"
HOPPER, AMPERE = (facts_of({"nvidia.com/gpu.family": name}) for name in ("hopper", "ampere"))
ASKS = selector("family=hopper", None, None)


def room(cpu: int, *rests: int, facts=HOPPER) -> NodeRoom:
    return NodeRoom(cpu, rests, 8, GPU, facts)


def task(cpu: int, cards: int, milli: int = CARD, attributes=ANYTHING) -> Task:
    return Task(cpu, cards, milli, GPU if cards else "", attributes)


@pytest.mark.parametrize(
    ("of", "fragments"),
    [
        pytest.param(task(4000, 1), 800, id="it fits: the cards with too little left"),
        pytest.param(task(4000, 1, 500), 300, id="a part fits where enough is left"),
        pytest.param(task(4000, 1, 200), 0, id="it fits on each card"),
        pytest.param(task(4000, 2), 1800, id="too few whole cards: all"),
        pytest.param(task(4001, 1, 200), 1800, id="too little CPU: all"),
        pytest.param(task(100, 0), 1800, id="a Pod that needs no card turns all into fragments"),
        pytest.param(task(4000, 1, attributes=ASKS), 800, id="the right attributes"),
    ],
)
def test_fragments_are_what_a_kind_of_pods_cannot_use(of: Task, fragments: int) -> None:
    assert Fragmentation({of: 1.0}).of(room(4000, 300, 500, 1000)) == pytest.approx(fragments)


def test_cards_of_other_attributes_are_all_fragments() -> None:
    asking = Fragmentation({task(0, 1, attributes=ASKS): 1.0})
    assert asking.of(room(0, 1000, facts=AMPERE)) == 1000
    assert asking.of(room(0, 1000, facts=HOPPER)) == 0
    assert asking.of(NodeRoom(0, (1000,), 1, "amd.com/gpu", HOPPER)) == 1000


tasks = st.builds(
    task, st.integers(0, 8).map(lambda n: n * 1000), st.just(1), st.integers(1, CARD), st.sampled_from([ANYTHING, ASKS])
) | st.builds(task, st.integers(0, 8).map(lambda n: n * 1000), st.sampled_from([0, 1, 2, 4, 8]))
rooms = st.builds(
    lambda cpu, rests, facts: room(cpu, *sorted(rests), facts=facts),
    st.integers(-2000, 9000),
    st.lists(st.integers(1, CARD) | st.just(CARD), max_size=8),
    st.sampled_from([HOPPER, AMPERE]),
)


def by_definition(of: NodeRoom, asks: Task) -> int:
    if not asks.cards or not of.holds(asks):
        return sum(of.rests)
    return sum(rest for rest in of.rests if rest < asks.milli)


@given(rooms, st.dictionaries(tasks, st.floats(0.01, 1), max_size=6))
def test_fragmentation_is_the_mean_of_the_definition_over_the_workload(
    of: NodeRoom, workload: dict[Task, float]
) -> None:
    wanted = sum(share * by_definition(of, asks) for asks, share in workload.items())
    found = Fragmentation(workload)
    assert found.of(of) == pytest.approx(wanted)
    assert found.of(of) == found.of(of), "the same when it is remembered"


def test_a_part_of_a_card_goes_where_it_breaks_up_the_least() -> None:
    workload = Fragmentation({task(0, 1): 0.5, task(0, 1, 500): 0.5})
    placement = best(room(0, 600, 1000), task(0, 1, 500), workload)
    assert placement is not None
    assert placement.room.rests == (100, 1000), "the whole card stays whole"


def test_a_small_pod_takes_the_node_that_is_broken_up_already() -> None:
    workload = Fragmentation({task(0, 1): 0.5, task(0, 8): 0.5})
    whole, broken = room(0, *[CARD] * 8), room(0, *[CARD] * 7)
    gains = [placement.outcome.gain for of in (whole, broken) if (placement := best(of, task(0, 1), workload))]
    assert gains[0] < 0 < gains[1]
