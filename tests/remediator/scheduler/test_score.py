"""Scores: health before packing, packing tight, integers only."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remediator.scheduler.score import TIER, score
from remediator.scheduler.verdict import FAILED, UNRESOLVABLE, NodeState, Shape, VerdictReason

GPU = "nvidia.com/gpu"
R = VerdictReason
ORDER = (R.FIT, R.REPAIRED, R.HEALTH_UNKNOWN, R.WAITING)


def of(reason: VerdictReason, total: int, used: int, asked: int) -> int:
    return score(reason, NodeState(reason, ((GPU, total),) if total else (), ((GPU, used),)), Shape(((GPU, asked),)))


counts = st.integers(0, 10_000)
anything = st.builds(
    score,
    st.sampled_from(VerdictReason),
    st.builds(
        NodeState, st.just(R.FIT), st.just(()) | counts.map(lambda n: ((GPU, n),)), counts.map(lambda n: ((GPU, n),))
    ),
    st.builds(Shape, st.just(()) | counts.map(lambda n: ((GPU, n),)), st.booleans()),
)


@given(anything)
def test_a_score_is_an_integer_from_0_to_99(found: int) -> None:
    assert type(found) is int
    assert 0 <= found <= 99


@given(st.integers(1, 64), st.data())
def test_the_healthier_node_wins_however_full_the_other_is(total: int, data: st.DataObject) -> None:
    better, worse = data.draw(st.sampled_from(list(pairwise(ORDER))))
    asked = data.draw(st.integers(1, total))
    fuller = data.draw(st.integers(0, total - asked))
    assert of(better, total, 0, asked) > of(worse, total, fuller, asked)


@given(st.sampled_from(ORDER), st.integers(1, 16), st.data())
def test_of_two_nodes_alike_the_fuller_one_wins(reason: VerdictReason, total: int, data: st.DataObject) -> None:
    used = data.draw(st.integers(0, total - 1))
    asked = data.draw(st.integers(1, total - used))
    if used:
        assert of(reason, total, used, asked) > of(reason, total, used - 1, asked)


def test_a_node_that_a_pod_fills_beats_a_larger_one_that_it_does_not() -> None:
    assert of(R.FIT, 4, 0, 4) > of(R.FIT, 8, 0, 4)
    assert of(R.FIT, 8, 4, 4) == of(R.FIT, 4, 0, 4) == 99


def test_a_pod_without_gpus_rather_goes_where_there_are_none_but_not_to_a_node_that_waits() -> None:
    plain, gpus = NodeState(R.FIT), NodeState(R.FIT, ((GPU, 8),))
    assert score(R.FIT, plain, Shape()) > score(R.FIT, gpus, Shape())
    assert score(R.FIT, gpus, Shape()) > score(R.WAITING, plain, Shape())


def test_a_node_whose_gpus_are_gone_is_like_one_without() -> None:
    assert score(R.FIT, NodeState(R.FIT, ((GPU, 0),)), Shape()) == score(R.FIT, NodeState(R.FIT), Shape())


@pytest.mark.parametrize("reason", [*FAILED, *UNRESOLVABLE])
def test_what_is_refused_gets_nothing(reason: VerdictReason) -> None:
    assert of(reason, 8, 7, 1) == 0


def test_a_node_that_nobody_has_told_us_of_is_as_good_as_one_that_is_unclear() -> None:
    assert TIER[R.UNKNOWN_NODE] == TIER[R.HEALTH_UNKNOWN]
