"""Scores: health before what a Pod prefers, that before packing, packing tight, integers only."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remediator.core.shared_gpus import Ask
from remediator.scheduler.attributes.catalog import facts_of
from remediator.scheduler.attributes.selector import ANYTHING, selector
from remediator.scheduler.packing.fragmentation import Fragmentation
from remediator.scheduler.packing.points import Score
from remediator.scheduler.packing.room import CARD, Task
from remediator.scheduler.reasons import FAILED, UNRESOLVABLE, VerdictReason
from remediator.scheduler.row import NodeState
from remediator.scheduler.score import TIER, Scorer
from remediator.scheduler.shared.cards import Cards
from remediator.scheduler.verdict import Shape

GPU = "nvidia.com/gpu"
R = VerdictReason
ORDER = (R.FIT, R.REPAIRED, R.SOME_FAILURES, R.HEALTH_UNKNOWN, R.WAITING)


SCORERS = {score: Scorer(score) for score in Score}
RANGE = {Score.FGD: (0, 4_999_999), Score.BLEND: (0, 99), Score.PACKING: (-44, 10)}
NARROW = {Score.BLEND: 19, Score.PACKING: 10}  # points of packing
every = st.sampled_from(Score)


def of(reason: VerdictReason, total: int, used: int, asked: int, by: Score = Score.FGD) -> int:
    row = NodeState(reason, ((GPU, total),) if total else (), ((GPU, used),))
    return SCORERS[by].of(reason, row, Shape(((GPU, asked),)))


PREFERS = selector(None, "family=hopper, memory>=80G", None)
HOPPER = facts_of({"nvidia.com/gpu.family": "hopper", "nvidia.com/gpu.memory": "81559"})
counts = st.integers(0, 10_000)
asks = st.builds(lambda each, cards: Ask(each * cards, cards), counts, st.integers(1, 4))
sizes_of_cards = st.lists(counts.filter(bool), min_size=1, max_size=4).map(tuple)
cards = st.builds(
    lambda sizes, used: Cards(tuple((at, size - used) for at, size in enumerate(sizes)), sizes, sizes),
    sizes_of_cards,
    counts,
)
anything = st.tuples(
    st.sampled_from(VerdictReason),
    st.builds(
        NodeState,
        st.just(R.FIT),
        st.just(()) | counts.map(lambda n: ((GPU, n),)),
        counts.map(lambda n: ((GPU, n),)),
        cards=st.none() | cards,
    ),
    st.builds(
        Shape,
        st.just(()) | counts.map(lambda n: ((GPU, n),)),
        st.booleans(),
        st.sampled_from([ANYTHING, PREFERS]),
        memory=asks,
    ),
)


@pytest.mark.slow
@given(anything, every)
def test_a_score_is_an_integer_within_its_range(asked: tuple[VerdictReason, NodeState, Shape], by: Score) -> None:
    found = SCORERS[by].of(*asked)
    assert type(found) is int
    assert RANGE[by][0] <= found <= RANGE[by][1]


@given(every, st.integers(1, 64), st.data())
def test_the_healthier_node_wins_however_full_the_other_is(by: Score, total: int, data: st.DataObject) -> None:
    better, worse = data.draw(st.sampled_from(list(pairwise(ORDER))))
    asked = data.draw(st.integers(1, total))
    fuller = data.draw(st.integers(0, total - asked))
    assert of(better, total, 0, asked, by) > of(worse, total, fuller, asked, by)


@given(st.sampled_from(ORDER), st.integers(1, 16), st.data())
def test_of_two_nodes_alike_the_fuller_one_wins(reason: VerdictReason, total: int, data: st.DataObject) -> None:
    used = data.draw(st.integers(0, total - 1))
    asked = data.draw(st.integers(1, total - used))
    if used:
        assert of(reason, total, used, asked) > of(reason, total, used - 1, asked)
        for by in {Score.BLEND} if total <= 8 else {Score.PACKING} if total <= 10 else set():
            assert of(reason, total, used, asked, by) > of(reason, total, used - 1, asked, by)


def test_a_node_that_a_pod_fills_beats_a_larger_one_that_it_does_not() -> None:
    for by in Score:
        assert of(R.FIT, 4, 0, 4, by) > of(R.FIT, 8, 0, 4, by)
        assert of(R.FIT, 8, 4, 4, by) == of(R.FIT, 4, 0, 4, by)


def test_packing_gives_ten_and_five_where_a_pod_of_two_fills_a_node_of_two_or_half_of_one_of_four() -> None:
    assert (of(R.FIT, 2, 0, 2, Score.PACKING), of(R.FIT, 4, 0, 2, Score.PACKING)) == (10, 5)


@pytest.mark.parametrize("by", Score)
def test_a_pod_without_gpus_rather_goes_where_there_are_none_but_not_to_a_node_that_waits(by: Score) -> None:
    plain, gpus, score = NodeState(R.FIT), NodeState(R.FIT, ((GPU, 8),)), SCORERS[by].of
    assert score(R.FIT, plain, Shape()) > score(R.FIT, gpus, Shape())
    assert score(R.FIT, gpus, Shape()) > score(R.WAITING, plain, Shape())


def test_a_node_whose_gpus_are_gone_is_like_one_without() -> None:
    score = SCORERS[Score.FGD].of
    assert score(R.FIT, NodeState(R.FIT, ((GPU, 0),)), Shape()) == score(R.FIT, NodeState(R.FIT), Shape())


@pytest.mark.parametrize("by", Score)
@pytest.mark.parametrize("reason", [*FAILED, *UNRESOLVABLE])
def test_what_is_refused_gets_the_least(reason: VerdictReason, by: Score) -> None:
    assert of(reason, 8, 7, 1, by) == RANGE[by][0]


def test_a_node_that_a_pod_breaks_up_loses_against_a_node_that_is_broken_up_already() -> None:
    large = Task(0, 8, CARD, GPU)
    learnt = Scorer(Score.FGD, Fragmentation({large: 1.0}))
    whole, broken = (NodeState(R.FIT, ((GPU, 8),), ((GPU, used),)) for used in (0, 1))
    for cpu in (0, 96_000):
        scores = [learnt.of(R.FIT, row._replace(cpu=cpu), Shape(((GPU, 1),))) for row in (whole, broken)]
        assert scores[0] < scores[1]


def test_a_pod_that_leaves_gpus_without_cpu_goes_to_a_node_that_has_none_left() -> None:
    one = Task(8000, 1, CARD, GPU)
    learnt, greedy = Scorer(Score.FGD, Fragmentation({one: 1.0})), Shape(((GPU, 1),), cpu=60_000)
    free, used = NodeState(R.FIT, ((GPU, 8),), cpu=64_000), NodeState(R.FIT, ((GPU, 8),), ((GPU, 7),), cpu=64_000)
    assert learnt.of(R.FIT, used, greedy) > learnt.of(R.FIT, free, greedy)


def test_a_node_that_nobody_has_told_us_of_is_as_good_as_one_that_is_unclear() -> None:
    assert TIER[R.UNKNOWN_NODE] == TIER[R.HEALTH_UNKNOWN]


MET = [
    pytest.param({"family": "hopper", "memory": "81559"}, 2, id="both are met"),
    pytest.param({"family": "hopper", "memory": "40960"}, 1, id="one is met"),
    pytest.param({"family": "ampere"}, 0, id="none is met, or nobody knows"),
]


@pytest.mark.parametrize(("labels", "met"), MET)
@pytest.mark.parametrize("by", NARROW)
def test_what_a_pod_prefers_counts_as_much_as_packing_in_a_narrow_range(labels, met, by) -> None:
    facts = facts_of({f"nvidia.com/gpu.{name}": value for name, value in labels.items()})
    row, shape = NodeState(R.FIT, ((GPU, 8),), ((GPU, 7),), facts), Shape(((GPU, 1),), False, PREFERS)
    score, lowest = SCORERS[by].of, RANGE[by][1] - NARROW[by]
    packing = score(R.FIT, row, shape._replace(attributes=ANYTHING)) - lowest
    assert score(R.FIT, row, shape) - lowest == (NARROW[by] * met // 2 + packing) // 2
    assert score(R.REPAIRED, row._replace(facts=HOPPER), shape) < score(R.FIT, row, shape)


@pytest.mark.parametrize(("labels", "met"), MET)
def test_what_a_pod_prefers_comes_before_packing_and_after_health(labels, met) -> None:
    facts = facts_of({f"nvidia.com/gpu.{name}": value for name, value in labels.items()})
    shape, score = Shape(((GPU, 1),), False, PREFERS), SCORERS[Score.FGD].of
    empty, full = (NodeState(R.FIT, ((GPU, 8),), ((GPU, used),), facts) for used in (0, 7))
    assert score(R.FIT, empty, shape) // 100_000 == score(R.FIT, full, shape) // 100_000 == 40 + (0, 4, 9)[met]
    assert score(R.REPAIRED, full._replace(facts=HOPPER), shape) < score(R.FIT, empty, shape)


def _shared(*free: int, size: int = 16) -> NodeState:
    """A node whose cards of one size have so much free."""
    return NodeState(R.FIT, cards=Cards(tuple(enumerate(free)), (size,) * len(free), (size,) * len(free)))


@pytest.mark.parametrize("by", Score)
def test_memory_of_gpus_is_packed_by_card_the_fullest_that_fits_first(by: Score) -> None:
    best_first = {
        "fills a card": _shared(4, 16),
        "leaves 2 of 16": _shared(6, 6),
        "leaves 2 of 16 on an emptier node": _shared(6, 16),
        "the fullest card is too full": _shared(2, 8),
        "an empty card": _shared(16, 16),
    }
    scores = [SCORERS[by].of(R.FIT, row, Shape(memory=Ask(4))) for row in best_first.values()]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] > scores[-1]
    if by is Score.FGD:
        assert len(set(scores)) == len(scores), "kube-scheduler breaks ties at random"
    worst = SCORERS[by].of(R.WAITING, _shared(4), Shape(memory=Ask(4)))
    assert scores[-1] > worst, "health comes first"


def test_several_cards_of_one_pod_are_packed_together_and_a_node_without_room_gets_the_least() -> None:
    wide = Shape(memory=Ask(8, 2))
    scores = [SCORERS[Score.FGD].of(R.FIT, row, wide) for row in (_shared(4, 4), _shared(4, 16), _shared(4, 3))]
    assert scores == sorted(scores, reverse=True)
    assert scores[-1] == SCORERS[Score.FGD].worst(R.FIT)
