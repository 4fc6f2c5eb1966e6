"""So many starts in any window, then none until the oldest leaves it."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remediator.core.breaker import Breaker, starts
from remediator.core.case import Phase
from tests.builders import a_case, an_attempt, at, minutes

THREE = Breaker(3, minutes(10))


def times(cases):
    return [start.at for start in starts(cases)]


@pytest.mark.parametrize(
    ("started", "minute", "closed_until"),
    [
        pytest.param([], 20, None, id="nothing was started"),
        pytest.param([12, 15], 20, None, id="two of three"),
        pytest.param([12, 15, 18], 20, 22, id="three of three: until the oldest is 10 minutes old"),
        pytest.param([18, 12, 15], 20, 22, id="in whatever order they come"),
        pytest.param([10, 15, 18], 20, None, id="one exactly as old as the window has left it"),
        pytest.param([12, 13, 15, 18], 20, 23, id="more than three: until so many have left that one may start"),
    ],
)
def test_when_one_more_may_start(started, minute, closed_until):
    opens = THREE.opens([at(start) for start in started], at(minute))
    assert opens == (None if closed_until is None else at(closed_until))


@given(st.lists(st.integers(0, 60), max_size=30), st.integers(1, 5))
def test_following_it_never_starts_too_many_in_any_window(wishes, most):
    breaker, given_ = Breaker(most, minutes(10)), []
    for wish in sorted(wishes):
        if breaker.opens(given_, at(wish)) is None:
            given_.append(at(wish))
    for end in given_:
        assert sum(end - timedelta(minutes=10) < start <= end for start in given_) <= most


@given(st.lists(st.integers(0, 30), min_size=3, max_size=12))
def test_at_the_time_it_names_one_more_may_start(started):
    times = [at(start) for start in started]
    until = THREE.opens(times, at(30))
    assert until is None or THREE.opens(times, until) is None


def test_a_claim_counts_as_a_start_at_its_time_until_its_first_attempt_which_is_asked_about_again_when_it_is_late():
    """Cases stopped in the middle of a storm hold no other for longer than the window."""
    claims = [a_case(name, phase=Phase.DRAINING, started=at(1)) for name in "abc"]
    assert THREE.opens(times(claims), at(10)) == at(11)
    assert [THREE.admitted(claims[0], at(minute)) for minute in (1, 10, 11)] == [True, True, False]
    assert THREE.opens(times(claims), at(11)) is None
    begun = [a_case("d", phase=Phase.DRAINING, started=at(1), attempts=(an_attempt(started=9),))]
    assert times(begun) == [at(9)]
    assert not THREE.admitted(begun[0], at(10))


def test_each_attempt_of_each_case_is_a_start():
    cases = [a_case("a", attempts=(an_attempt(started=1), an_attempt(started=5))), a_case("b")]
    assert times(cases) == [at(1), at(5)]


def test_a_probe_is_no_start():
    case = a_case(
        started=at(1), phase=Phase.VERIFYING, attempts=(an_attempt(started=2), an_attempt(started=5, probe=True))
    )
    assert times([case]) == [at(2)]
