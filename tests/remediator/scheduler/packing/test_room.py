"""What a task leaves of a room, whole cards and parts of one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remediator.scheduler.attributes.catalog import facts_of
from remediator.scheduler.attributes.selector import selector
from remediator.scheduler.packing.room import CARD, NodeRoom, Task, placed

GPU = "nvidia.com/gpu"
FOUR = NodeRoom(8000, (300, 700, 1000, 1000), 4, GPU)


def left(room: NodeRoom, task: Task) -> list[tuple[int, ...]]:
    return [way.rests for way in placed(room, task)]


@pytest.mark.parametrize(
    ("task", "ways"),
    [
        pytest.param(Task(1000), [(300, 700, 1000, 1000)], id="CPU alone"),
        pytest.param(Task(1000, 1, CARD, GPU), [(300, 700, 1000)], id="one card"),
        pytest.param(Task(1000, 2, CARD, GPU), [(300, 700)], id="two cards"),
        pytest.param(Task(1000, 3, CARD, GPU), [], id="more whole cards than there are"),
        pytest.param(Task(1000, 1, 700, GPU), [(300, 1000, 1000), (300, 300, 700, 1000)], id="a part: two ways"),
        pytest.param(Task(1000, 1, 200, GPU), [(100, 700, 1000, 1000), (300, 500, 1000, 1000), (300, 700, 800, 1000)]),
    ],
)
def test_a_task_may_be_placed_once_on_each_different_card_with_room(task: Task, ways: list[tuple[int, ...]]) -> None:
    assert left(FOUR, task) == ways
    assert all(way.cpu == 7000 for way in placed(FOUR, task))


@given(st.lists(st.integers(1, CARD), max_size=8), st.integers(1, 8), st.integers(1, CARD))
def test_what_is_placed_takes_as_much_as_it_asks_and_never_more_than_there_is(
    rests: list[int], cards: int, milli: int
) -> None:
    task = Task(0, cards, CARD, GPU) if cards > 1 else Task(0, 1, milli, GPU)
    room = NodeRoom(0, tuple(sorted(rests)), len(rests), GPU)
    for way in placed(room, task):
        assert room.rest - way.rest == task.cards * task.milli
        assert list(way.rests) == sorted(way.rests)
        assert all(0 < rest <= CARD for rest in way.rests)
    assert bool(placed(room, task)) is room.room(task)


def test_a_room_holds_what_has_cpu_cards_and_attributes() -> None:
    hopper = FOUR._replace(facts=facts_of({"nvidia.com/gpu.family": "hopper"}))
    asks = selector("family=hopper", None, None)
    assert hopper.holds(Task(8000, 2, CARD, GPU, asks))
    assert not hopper.holds(Task(8001, 2, CARD, GPU, asks)), "CPU"
    assert not hopper.holds(Task(8000, 3, CARD, GPU, asks)), "cards"
    assert not FOUR.holds(Task(8000, 2, CARD, GPU, asks)), "nobody knows the family"
    assert not hopper.holds(Task(8000, 1, CARD, "amd.com/gpu")), "cards of another resource"
    assert FOUR.holds(Task(8000))
